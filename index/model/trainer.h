// Trainer: the background thread that trains the models of a node's learned indexes. It starts when there is work for
// it, so a node whose models no client asks for pays nothing.
#pragma once

#include <deque>
#include <mutex>

#include "base/thread.h"

namespace gannet::index {

// Thread-safe.
class Trainer {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    // Does the work that is due. Runs on the thread of the trainer.
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

 private:
  void Loop();
  void RunNext(std::unique_lock<Mutex>& lock);

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task*> waiting_;
  Task* running_ = nullptr;
  bool stop_ = false;
  Thread thread_;  // from the first task on
};

}  // namespace gannet::index
