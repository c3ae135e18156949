// Threads and synchronization, in place of <thread>, <mutex>, <condition_variable> and futexes. They are those of the
// operating system or, within a simulation (runtime.h), those of the simulation. Names and semantics are those of the
// standard library.
//
//   const std::lock_guard lock(mutex_);          // Mutex
//   std::unique_lock lock(mutex_);               // for CondVar
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/runtime.h"

namespace gannet {

// Runs `body`. Must be joined before it is destroyed. `name` (of at most 15 letters) is what tools show.
class Thread {
 public:
  Thread() = default;
  Thread(std::string name, std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread();

  bool joinable() const { return real_.joinable() || simulated_ != nullptr; }
  void join();

 private:
  std::thread real_;
  Runtime::Thread* simulated_ = nullptr;
};

// A mutex is used either within simulations or outside, never both.
class Mutex {
 public:
  void lock() {
    if (Runtime* runtime = Runtime::Current()) [[unlikely]]
      return LockSimulated(runtime);
    real_.lock();
  }
  bool try_lock();
  void unlock() {
    if (Runtime* runtime = Runtime::Current()) [[unlikely]]
      return UnlockSimulated(runtime);
    real_.unlock();
  }

 private:
  friend class CondVar;
  void LockSimulated(Runtime* runtime);
  void UnlockSimulated(Runtime* runtime);

  std::mutex real_;
  bool held_ = false;  // simulated
};

class SharedMutex {
 public:
  void lock();
  void unlock();
  void lock_shared() {
    if (Runtime* runtime = Runtime::Current()) [[unlikely]]
      return LockSharedSimulated(runtime);
    real_.lock_shared();
  }
  void unlock_shared() {
    if (Runtime* runtime = Runtime::Current()) [[unlikely]]
      return UnlockSharedSimulated(runtime);
    real_.unlock_shared();
  }

 private:
  void LockSharedSimulated(Runtime* runtime);
  void UnlockSharedSimulated(Runtime* runtime);

  std::shared_mutex real_;
  int holders_ = 0;  // simulated; -1: one, exclusively
};

class CondVar {
 public:
  void notify_one() { Notify(1); }
  void notify_all() { Notify(SIZE_MAX); }

  template <class Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate predicate) {
    while (!predicate()) WaitOnce(lock, UINT64_MAX);
  }
  // Returns the last result of `predicate`.
  template <class Predicate>
  bool wait_for(std::unique_lock<Mutex>& lock, absl::Duration time, Predicate predicate) {
    const uint64_t deadline = NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(time));
    while (!predicate()) {
      if (!WaitOnce(lock, deadline)) return predicate();
    }
    return true;
  }

 private:
  void Notify(size_t most);
  // False if the deadline (of NowNanos) has passed.
  bool WaitOnce(std::unique_lock<Mutex>& lock, uint64_t deadline_nanos);

  std::condition_variable real_;
};

// Blocks threads until `count` of them have arrived.
class Latch {
 public:
  explicit Latch(size_t count) : missing_(count) {}
  void arrive_and_wait();

 private:
  Mutex mutex_;
  CondVar all_here_;
  size_t missing_;
};

// Offers the core to other threads.
void YieldThread();
// Blocks the thread. For threads that run no coroutines.
void SleepUntilNanos(uint64_t deadline_nanos);
inline void SleepForNanos(uint64_t nanos) {
  SleepUntilNanos(NowNanos() + nanos);
}

// Sleeps while word == expected, at most `nanos`. May wake spuriously. Works across threads of one process.
void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanos);
void FutexWakeAll(const std::atomic<uint32_t>& word);

// Number of threads that can run at once.
int HardwareThreads();

// Slots of Runtime::Local.
inline constexpr size_t kLeafHintSlot = 0;  // + number of the width of a key (index/xstore/tree/key_codec.h), below 10
inline constexpr size_t kNumLocalSlots = 10;

}  // namespace gannet
