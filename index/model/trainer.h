// Trainer: the background threads that train the models of a node's learned indexes. They start when there is work for
// them, so a node whose models no client asks for pays nothing.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "base/thread.h"

namespace gannet::index {

// Thread-safe.
class Trainer {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    // Does the work that is due. Runs on a thread of the trainer, one task at a time.
    virtual void Run() = 0;
  };

  Trainer() = default;
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Runs the task soon; only once, if it is queued already. It must live until it has run or Cancel has returned.
  void Schedule(Task* task);
  // When this returns, the task is neither queued nor running.
  void Cancel(Task* task);

  // Called by a task that runs. Calls work(i) for each i < n, on the task's thread and up to `threads` - 1 others.
  // Returns when all calls have returned. What they wrote is visible to the caller then.
  void ForEach(size_t n, int threads, const std::function<void(size_t)>& work);

 private:
  // A ForEach. Guarded by mutex_.
  struct Job {
    const std::function<void(size_t)>* work;
    size_t n;
    size_t next = 0;
    int helpers_wanted = 0;
    int helpers = 0;  // at work
  };

  void StartThreads(size_t threads);
  void Loop();
  void RunNext(std::unique_lock<Mutex>& lock);
  void Help(std::unique_lock<Mutex>& lock);
  // Takes calls of the job until none is left.
  static void Share(std::unique_lock<Mutex>& lock, Job* job);

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task*> waiting_;
  Task* running_ = nullptr;
  bool pauses_ = false;  // between two tasks
  Job* job_ = nullptr;   // of running_
  bool stop_ = false;
  std::vector<Thread> threads_;
};

}  // namespace gannet::index
