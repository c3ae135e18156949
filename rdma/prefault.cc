#include "rdma/prefault.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "base/runtime.h"

namespace gannet::rdma {
namespace {

constexpr size_t kStep = 2 << 20;  // a huge page
constexpr size_t kMostAhead = 16 << 20;
constexpr size_t kLeastUsed = 16 << 20;

size_t AheadOf(size_t used) {
  return std::min(used / 8, kMostAhead);
}

}  // namespace

Prefaulter::Prefaulter(std::byte* begin, size_t bytes) : begin_(begin), bytes_(bytes), wake_at_(kLeastUsed) {}

Prefaulter::~Prefaulter() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Prefaulter::Wake(size_t used) {
  const size_t ahead = AheadOf(used);
  wake_at_ = used + ahead / 2;
  {
    std::lock_guard lock(mutex_);
    got_ = std::max(got_, std::min(used, bytes_));  // memory in use is mapped already, or soon will be
  }
  Reserve(used + ahead);
}

void Prefaulter::Reserve(size_t end) {
  if (Runtime::Current() != nullptr) return;  // simulated: page faults take no virtual time
  {
    std::lock_guard lock(mutex_);
    if (stop_) return;
    wanted_ = std::max(wanted_, std::min(bytes_, end));
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  }
  changed_.notify_all();
}

size_t Prefaulter::Drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || got_ >= wanted_; });
  return got_;
}

// Populates one huge page of address space at a time, without the mutex. The last one may lie beyond `wanted_`.
void Prefaulter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || got_ < wanted_; });
    if (stop_) return;
    const auto base = reinterpret_cast<uintptr_t>(begin_);
    const uintptr_t from = (base + got_) / kStep * kStep;
    const uintptr_t to = std::min(from + kStep, base + bytes_);
    lock.unlock();
    bool ok = true;
#ifdef MADV_POPULATE_WRITE
    constexpr uintptr_t kPage = 4096;
    const uintptr_t first = std::max(from, (base + kPage - 1) / kPage * kPage);
    const uintptr_t last = to / kPage * kPage;
    ok = last <= first || madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE) == 0;
#else
    ok = false;
#endif
    lock.lock();
    got_ = std::max(got_, to - base);
    if (!ok) stop_ = true;  // an old kernel, or no memory: pages are mapped at their first touch
    changed_.notify_all();
  }
}

}  // namespace gannet::rdma
