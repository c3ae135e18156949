#include "base/home_process.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "base/runtime.h"

namespace gannet {
namespace {

// The forking thread holds the mutex during the fork, so the child's copy is complete, and held by the only thread that
// the child has. No simulation is involved: a simulated thread holds the mutex only for moments.
struct Descriptors {
  std::mutex mutex;
  std::vector<int> open;  // guarded by mutex
};

Descriptors& All() {
  static auto* const all = new Descriptors;  // never destroyed: a process may fork while it exits
  return *all;
}

void BeforeFork() {
  All().mutex.lock();
}
void InParent() {
  All().mutex.unlock();
}
void InChild() {
  internal::forks.count.fetch_add(1, std::memory_order_relaxed);
  for (const int descriptor : All().open) close(descriptor);
  All().open.clear();
  All().mutex.unlock();
}

void NoticeForks() {
  static const int error = pthread_atfork(&BeforeFork, &InParent, &InChild);
  GANNET_CHECK(error == 0, "pthread_atfork fails: errno %d", error);
}

}  // namespace

HomeProcess::HomeProcess() {
  NoticeForks();
  forks_ = Runtime::Current() != nullptr ? kEach : internal::forks.count.load(std::memory_order_relaxed);
}

void CloseInForkedChildren(int descriptor) {
  if (Runtime::Current() != nullptr) return;  // its children go on with all that it has
  NoticeForks();
  const std::lock_guard lock(All().mutex);
  All().open.push_back(descriptor);
}

void ForgetInForkedChildren(int descriptor) {
  const std::lock_guard lock(All().mutex);
  if (const auto at = std::ranges::find(All().open, descriptor); at != All().open.end()) {
    *at = All().open.back();
    All().open.pop_back();
  }
}

}  // namespace gannet
