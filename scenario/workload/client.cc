#include "scenario/workload/client.h"

#include "base/clock.h"
#include "scenario/workload/judged_transaction.h"

namespace gannet::scenario {

coro::Task<void> Client::Run() {
  constexpr uint64_t kPauseNanos = 50'000;
  while (!control_->stop && control_->broken.empty() && control_->Now() < end_nanos_) {
    bool waits = rests_ || Waits();
    if (!waits) {
      const Status status = co_await RunOne();
      waits = !status.ok() && !JudgedTransaction::IsRefusal(status);
    }
    if (waits) {
      co_await session_->worker().SleepUntil(NowNanos() + kPauseNanos);
    } else {
      co_await session_->worker().Yield();  // on one node nothing else would let other coroutines run
    }
  }
}

}  // namespace gannet::scenario
