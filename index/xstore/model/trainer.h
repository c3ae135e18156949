// Trainer: the background thread that trains the models of a node's XStore indexes. It starts with the first task, so a
// node whose models no client asks for pays nothing.
#pragma once

#include <deque>

#include "base/thread.h"

namespace gannet::index::xstore {

// Thread-safe.
class Trainer {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    // Does the work that is due. Runs on the trainer's thread, one task at a time.
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

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task*> waiting_;
  Task* running_ = nullptr;
  bool stop_ = false;
  Thread thread_;
};

}  // namespace gannet::index::xstore
