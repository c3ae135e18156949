// Worker: a thread's coroutine scheduler. It resumes ready coroutines and, between two rounds, polls (the channel's
// completions, the node's RPC rings).
//
// A Worker belongs to the thread that calls Run or BlockOn; nothing here is thread-safe but Unpark.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "base/ring_queue.h"

namespace gannet::coro {

class Worker {
 public:
  // Delivers what has completed since the last call and returns the number of completions. Must not block.
  using Poller = std::function<size_t()>;

  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Destroys the tasks that have not finished.
  ~Worker();

  // Pollers are called in the order they were added, once per round. Returns an id for RemovePoller.
  int AddPoller(Poller poller);
  void RemovePoller(int id);

  // Sets a function that is called instead of sched_yield when nothing has happened for a while. It may sleep, but no
  // longer than any poller or sleeping coroutine may wait.
  void SetIdle(std::function<void()> idle) { idle_ = std::move(idle); }

  // Takes ownership of `task`; it runs within Run() or BlockOn(). It is not awaited: an exception that leaves it ends
  // the process (std::terminate).
  void Spawn(Task<void> task);

  // Runs until every spawned task has finished.
  void Run();

  // Runs `task`, and concurrently every spawned task, until `task` has finished. Throws the exception that left `task`,
  // if any.
  template <class T>
  T BlockOn(Task<T> task) {
    std::optional<T> result;
    RunUntilDone(Store(std::move(task), &result));
    return std::move(*result);
  }
  void BlockOn(Task<void> task) { RunUntilDone(std::move(task)); }

  // Makes `handle` ready; it is resumed in a later step of Run(). For awaiters and pollers.
  void Resume(std::coroutine_handle<> handle) { ready_.push_back(handle); }

  // A suspended coroutine of this worker that another thread will make ready. It lies in the coroutine's frame, and is
  // used once for each suspension.
  struct Parked {
    std::coroutine_handle<> handle;
    Parked* next = nullptr;  // the worker's
  };
  // Makes it ready, as Resume does, from any thread: for coroutines that wait for coroutines of other workers. A worker
  // that is not running resumes it when it runs again. *parked and the worker must not go before that; the caller
  // touches neither afterwards.
  void Unpark(Parked* parked);

  // co_await worker.Yield(): lets all other ready coroutines run first.
  struct YieldAwaiter {
    Worker* worker;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) const { worker->Resume(handle); }
    void await_resume() const noexcept {}
  };
  YieldAwaiter Yield() { return YieldAwaiter{this}; }

  // co_await worker.SleepUntil(NowNanos() + ns): resumes at the first round after that time.
  struct SleepAwaiter {
    Worker* worker;
    uint64_t deadline_ns;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) const { worker->AddSleeper(deadline_ns, handle); }
    void await_resume() const noexcept {}
  };
  SleepAwaiter SleepUntil(uint64_t deadline_ns) { return SleepAwaiter{this, deadline_ns}; }

  // SleepUntil as a task, for BlockOn.
  Task<void> Sleep(uint64_t deadline_ns);

  // Number of spawned tasks that have not finished.
  size_t unfinished() const { return tasks_.size(); }

 private:
  struct Sleeper {
    uint64_t deadline_ns;
    std::coroutine_handle<> handle;
    // The earliest is the greatest.
    bool operator<(const Sleeper& other) const { return deadline_ns > other.deadline_ns; }
  };

  template <class T>
  static Task<void> Store(Task<T> task, std::optional<T>* result) {
    result->emplace(co_await task);
  }

  void AddSleeper(uint64_t deadline_ns, std::coroutine_handle<> handle);
  void RunUntilDone(Task<void> task);
  // Makes ready what other threads have unparked. Returns their number.
  size_t TakeUnparked();
  // One step: resumes ready coroutines, wakes sleepers, polls. Relaxes the CPU if there was nothing to do. False if
  // nothing was resumed: then no task has finished either.
  bool Round();
  void ReapFinished();

  RingQueue<std::coroutine_handle<>> ready_;
  std::vector<Sleeper> sleeping_;  // a heap: the earliest is the first
  std::vector<Task<void>> tasks_;
  std::vector<std::pair<int, Poller>> pollers_;
  int next_poller_id_ = 0;
  std::function<void()> idle_;
  uint32_t idle_rounds_ = 0;
  std::atomic<Parked*> unparked_{nullptr};  // the last one first
};

}  // namespace gannet::coro
