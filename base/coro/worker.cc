#include "base/coro/worker.h"

#include <algorithm>
#include <utility>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/runtime.h"
#include "base/thread.h"

namespace gannet::coro {
namespace {

// After this many rounds without progress the thread yields its core between rounds: with more threads than cores, the
// thread it waits for may need that core.
constexpr uint32_t kIdleRoundsBeforeYield = 64;

// A simulated worker that waits for an event without a wake-up polls again after this time.
constexpr uint64_t kLongestIdleNanos = 100'000;

}  // namespace

Worker::~Worker() = default;

int Worker::AddPoller(Poller poller) {
  pollers_.emplace_back(next_poller_id_, std::move(poller));
  return next_poller_id_++;
}

void Worker::RemovePoller(int id) {
  std::erase_if(pollers_, [id](const auto& entry) { return entry.first == id; });
}

void Worker::Spawn(Task<void> task) {
  ready_.push_back(task.handle());
  tasks_.push_back(std::move(task));
}

void Worker::Unpark(Parked* parked) {
  Parked* first = unparked_.load(std::memory_order_relaxed);
  do {
    parked->next = first;
  } while (!unparked_.compare_exchange_weak(first, parked, std::memory_order_release, std::memory_order_relaxed));
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    runtime->WakeIdle();
}

// Takes the tasks in the order in which they were unparked.
size_t Worker::TakeUnparked() {
  Parked* last = unparked_.exchange(nullptr, std::memory_order_acquire);
  Parked* first = nullptr;
  while (last != nullptr) {
    Parked* const next = std::exchange(last->next, first);
    first = std::exchange(last, next);
  }
  size_t taken = 0;
  for (; first != nullptr; first = first->next, ++taken) ready_.push_back(first->handle);
  return taken;
}

void Worker::Run() {
  while (!tasks_.empty()) {
    if (Round()) ReapFinished();
  }
}

void Worker::RunUntilDone(Task<void> task) {
  ready_.push_back(task.handle());
  while (!task.done()) {
    if (Round()) ReapFinished();
  }
  task.Take();
}

Task<void> Worker::Sleep(uint64_t deadline_ns) {
  co_await SleepUntil(deadline_ns);
}

void Worker::AddSleeper(uint64_t deadline_ns, std::coroutine_handle<> handle) {
  sleeping_.push_back({deadline_ns, handle});
  std::push_heap(sleeping_.begin(), sleeping_.end());
}

bool Worker::Round() {
  Charge(Cost::kWorkerRound);
  size_t progress = 0;
  // This resumes only the coroutines that are ready now: a coroutine that yields must not delay the pollers.
  for (size_t n = ready_.size(); n > 0; --n, ++progress) {
    ready_.pop_front().resume();
  }
  if (!sleeping_.empty()) {
    const uint64_t now = NowNanos();
    for (; !sleeping_.empty() && sleeping_.front().deadline_ns <= now; ++progress) {
      std::pop_heap(sleeping_.begin(), sleeping_.end());
      ready_.push_back(sleeping_.back().handle);
      sleeping_.pop_back();
    }
  }
  for (auto& [id, poller] : pollers_) progress += poller();
  if (unparked_.load(std::memory_order_relaxed) != nullptr) progress += TakeUnparked();

  if (progress > 0) {
    idle_rounds_ = 0;
  } else if (Runtime* runtime = Runtime::Current()) [[unlikely]] {
    const uint64_t look_again = runtime->NowNanos() + kLongestIdleNanos;
    runtime->Idle(sleeping_.empty() ? look_again : std::min(look_again, sleeping_.front().deadline_ns));
  } else if (++idle_rounds_ > kIdleRoundsBeforeYield) {
    idle_ ? idle_() : YieldThread();
  } else {
    CpuRelax();
  }
  return progress > 0;
}

void Worker::ReapFinished() {
  std::erase_if(tasks_, [](Task<void>& task) noexcept {
    if (!task.done()) return false;
    task.Take();
    return true;
  });
}

}  // namespace gannet::coro
