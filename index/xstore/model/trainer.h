// Trainer: the background thread that trains the models of a node's XStore indexes. It starts with the first task, so a
// node that no client asks for models pays nothing.
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
    // Does what is to be done now. Runs on the trainer's thread, one task at a time.
    virtual void Run() = 0;
  };

  Trainer() = default;
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Runs the task soon; once, if it is waiting already. It must live until it ran or Cancel returned.
  void Schedule(Task* task);
  // Afterwards the task neither waits nor runs.
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
