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
  for (Thread& thread : threads_) thread.join();
}

void Trainer::StartThreads(size_t threads) {
  while (threads_.size() < threads) threads_.emplace_back("trainer", [this] { Loop(); });
}

void Trainer::Schedule(Task* task) {
  {
    std::lock_guard lock(mutex_);
    if (std::find(waiting_.begin(), waiting_.end(), task) != waiting_.end()) return;
    waiting_.push_back(task);
    StartThreads(1);
  }
  changed_.notify_all();
}

void Trainer::Cancel(Task* task) {
  std::unique_lock lock(mutex_);
  std::erase(waiting_, task);
  changed_.wait(lock, [&] { return running_ != task; });
}

void Trainer::ForEach(size_t n, int threads, const std::function<void(size_t)>& work) {
  const size_t at_once = std::min(n, static_cast<size_t>(std::max(threads, 1)));
  Job job{.work = &work, .n = n};
  std::unique_lock lock(mutex_);
  if (at_once > 1 && !stop_) {
    job.helpers_wanted = static_cast<int>(at_once - 1);
    job_ = &job;
    StartThreads(at_once);
    changed_.notify_all();
  }
  Share(lock, &job);
  job_ = nullptr;  // from here on nobody joins
  changed_.wait(lock, [&job] { return job.helpers == 0; });
}

void Trainer::Share(std::unique_lock<Mutex>& lock, Job* job) {
  while (job->next < job->n) {
    const size_t i = job->next++;
    lock.unlock();
    (*job->work)(i);
    lock.lock();
  }
}

void Trainer::Loop() {
  std::unique_lock lock(mutex_);
  const auto has_task = [this] { return running_ == nullptr && !pauses_ && !waiting_.empty(); };
  const auto has_job = [this] {
    return job_ != nullptr && job_->helpers < job_->helpers_wanted && job_->next < job_->n;
  };
  while (true) {
    changed_.wait(lock, [&] { return stop_ || has_task() || has_job(); });
    if (stop_) return;
    has_job() ? Help(lock) : RunNext(lock);
  }
}

void Trainer::RunNext(std::unique_lock<Mutex>& lock) {
  running_ = waiting_.front();
  waiting_.pop_front();
  lock.unlock();
  running_->Run();
  lock.lock();
  running_ = nullptr;
  pauses_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, kPause, [this] { return stop_; });
  pauses_ = false;
  changed_.notify_all();
}

// The job lives until its ForEach has seen that nobody helps any more.
void Trainer::Help(std::unique_lock<Mutex>& lock) {
  Job* const job = job_;
  ++job->helpers;
  Share(lock, job);
  --job->helpers;
  changed_.notify_all();
}

}  // namespace gannet::index
