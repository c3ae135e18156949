#include "index/model/trainer.h"

#include <algorithm>
#include <utility>

namespace gannet::index {
namespace {

// Pause between two tasks: changes of the same sub-models are collected, and workers get the CPU.
constexpr absl::Duration kPause = absl::Milliseconds(1);

}  // namespace

Trainer::~Trainer() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Trainer::Schedule(Task* task) {
  {
    std::lock_guard lock(mutex_);
    if (std::find(waiting_.begin(), waiting_.end(), task) != waiting_.end()) return;
    waiting_.push_back(task);
    if (!thread_.joinable()) thread_ = Thread("trainer", [this] { Loop(); });
  }
  changed_.notify_all();
}

void Trainer::Cancel(Task* task) {
  std::unique_lock lock(mutex_);
  std::erase(waiting_, task);
  changed_.wait(lock, [&] { return running_ != task; });
}

void Trainer::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    RunNext(lock);
    changed_.wait_for(lock, kPause, [this] { return stop_; });
  }
}

void Trainer::RunNext(std::unique_lock<Mutex>& lock) {
  running_ = waiting_.front();
  waiting_.pop_front();
  lock.unlock();
  running_->Run();
  lock.lock();
  running_ = nullptr;
  changed_.notify_all();
}

}  // namespace gannet::index
