#include "base/thread.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>
#include <utility>

#include "base/check.h"

namespace gannet {
namespace {

constexpr uint64_t kForEver = UINT64_MAX;
constexpr uint64_t kSecond = 1'000'000'000;

}  // namespace

Thread::Thread(std::string name, std::function<void()> body) {
  if (Runtime* runtime = Runtime::Current()) {
    simulated_ = runtime->Start(std::move(name), std::move(body));
    return;
  }
  constexpr size_t kLongestName = 15;
  real_ = std::thread([name = name.substr(0, kLongestName), body = std::move(body)] {
    pthread_setname_np(pthread_self(), name.c_str());
    body();
  });
}

Thread::Thread(Thread&& other) noexcept
    : real_(std::move(other.real_)), simulated_(std::exchange(other.simulated_, nullptr)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  GANNET_CHECK(!joinable(), "a thread that runs is overwritten");
  real_ = std::move(other.real_);
  simulated_ = std::exchange(other.simulated_, nullptr);
  return *this;
}

Thread::~Thread() {
  GANNET_CHECK(simulated_ == nullptr, "a simulated thread was not joined");
}

void Thread::join() {
  if (simulated_ == nullptr) return real_.join();
  Runtime::Current()->Join(std::exchange(simulated_, nullptr));
}

void Mutex::LockSimulated(Runtime* runtime) {
  while (held_) runtime->Park(this, kForEver);
  held_ = true;
}

void Mutex::UnlockSimulated(Runtime* runtime) {
  held_ = false;
  runtime->Unpark(this, 1);
}

bool Mutex::try_lock() {
  if (Runtime::Current() == nullptr) return real_.try_lock();
  return !std::exchange(held_, true);
}

void SharedMutex::lock() {
  Runtime* runtime = Runtime::Current();
  if (runtime == nullptr) return real_.lock();
  while (holders_ != 0) runtime->Park(this, kForEver);
  holders_ = -1;
}

void SharedMutex::unlock() {
  Runtime* runtime = Runtime::Current();
  if (runtime == nullptr) return real_.unlock();
  holders_ = 0;
  runtime->Unpark(this, SIZE_MAX);
}

void SharedMutex::LockSharedSimulated(Runtime* runtime) {
  while (holders_ < 0) runtime->Park(this, kForEver);
  ++holders_;
}

void SharedMutex::UnlockSharedSimulated(Runtime* runtime) {
  if (--holders_ == 0) runtime->Unpark(this, SIZE_MAX);
}

void CondVar::Notify(size_t most) {
  if (Runtime* runtime = Runtime::Current()) return runtime->Unpark(this, most);
  most == 1 ? real_.notify_one() : real_.notify_all();
}

bool CondVar::WaitOnce(std::unique_lock<Mutex>& lock, uint64_t deadline_nanos) {
  if (Runtime* runtime = Runtime::Current()) {
    lock.unlock();
    const bool in_time = runtime->Park(this, deadline_nanos);
    lock.lock();
    return in_time;
  }
  // The wait needs a lock of the Mutex's own std::mutex, so `lock` lends it for the duration of the wait.
  std::unique_lock<std::mutex> inner(lock.mutex()->real_, std::adopt_lock);
  bool in_time = true;
  if (deadline_nanos == kForEver) {
    real_.wait(inner);
  } else {
    const uint64_t now = NowNanos();
    in_time = now < deadline_nanos &&
              real_.wait_for(inner, std::chrono::nanoseconds(deadline_nanos - now)) == std::cv_status::no_timeout;
  }
  inner.release();
  return in_time;
}

void Latch::arrive_and_wait() {
  std::unique_lock lock(mutex_);
  if (--missing_ == 0) all_here_.notify_all();
  all_here_.wait(lock, [this] { return missing_ == 0; });
}

void YieldThread() {
  if (Runtime* runtime = Runtime::Current()) return runtime->Yield();
  sched_yield();
}

void SleepUntilNanos(uint64_t deadline_nanos) {
  if (Runtime* runtime = Runtime::Current()) return runtime->SleepUntil(deadline_nanos);
  const uint64_t now = NowNanos();
  if (now < deadline_nanos) std::this_thread::sleep_for(std::chrono::nanoseconds(deadline_nanos - now));
}

int HardwareThreads() {
  if (Runtime* runtime = Runtime::Current()) return runtime->cores();
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanos) {
  if (Runtime* runtime = Runtime::Current()) {
    if (word.load(std::memory_order_seq_cst) == expected) runtime->Park(&word, runtime->NowNanos() + nanos);
    return;
  }
  const timespec limit{.tv_sec = static_cast<time_t>(nanos / kSecond), .tv_nsec = static_cast<long>(nanos % kSecond)};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &limit, nullptr, 0);
}

void FutexWakeAll(const std::atomic<uint32_t>& word) {
  if (Runtime* runtime = Runtime::Current()) return runtime->Unpark(&word, SIZE_MAX);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace gannet
