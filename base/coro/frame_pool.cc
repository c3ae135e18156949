#include <array>
#include <new>

#include "base/coro/task.h"

namespace gannet::coro {
namespace {

constexpr size_t kGranule = 64;
constexpr size_t kClasses = 64;  // frames up to 4 KiB are pooled

struct FreeFrameNode {
  FreeFrameNode* next;
};

struct Pool {
  std::array<FreeFrameNode*, kClasses + 1> free{};
  size_t allocated = 0;
  size_t from_heap = 0;

  ~Pool() {
    for (FreeFrameNode*& head : free) {
      while (head != nullptr) {
        FreeFrameNode* next = head->next;
        ::operator delete(head);
        head = next;
      }
    }
  }
};

Pool& ThisThreadsPool() {
  thread_local Pool pool;
  return pool;
}

}  // namespace

void* AllocateFrame(size_t bytes) {
  Pool& pool = ThisThreadsPool();
  ++pool.allocated;
  const size_t size_class = (bytes + kGranule - 1) / kGranule;
  if (size_class <= kClasses && pool.free[size_class] != nullptr) [[likely]] {
    FreeFrameNode* node = pool.free[size_class];
    pool.free[size_class] = node->next;
    return node;
  }
  ++pool.from_heap;
  return ::operator new(size_class* kGranule);
}

void FreeFrame(void* frame, size_t bytes) noexcept {
  const size_t size_class = (bytes + kGranule - 1) / kGranule;
  if (size_class > kClasses) {
    ::operator delete(frame);
    return;
  }
  Pool& pool = ThisThreadsPool();
  auto* node = static_cast<FreeFrameNode*>(frame);
  node->next = pool.free[size_class];
  pool.free[size_class] = node;
}

size_t FramesOfThisThread() {
  return ThisThreadsPool().allocated;
}

size_t HeapFramesOfThisThread() {
  return ThisThreadsPool().from_heap;
}

}  // namespace gannet::coro
