#include "lab/scenario/workload/client.h"

#include "base/clock.h"
#include "base/sometimes.h"
#include "base/thread.h"
#include "lab/scenario/workload/judged_transaction.h"
#include "txn/run/database_state.h"
#include "txn/run/transaction_impl.h"
#include "txn/session/session_state.h"

namespace gannet::scenario {

bool Client::MayRest() const {
  const txn::SessionState& state = session_->state();
  return state.idle_transactions.size() == state.transactions.size();
}

coro::Task<void> Client::Run() {
  constexpr uint64_t kPauseNanos = 50'000;
  while (!control_->stop && control_->broken.empty() && control_->Now() < end_nanos_) {
    bool waits = rests_ || Waits();
    if (!waits) {
      const Status status = co_await RunOne();
      waits = !status.ok() && !JudgedTransaction::IsRefusal(status);
      if (waits && control_->rest_nanos > 1 && MayRest()) {
        Sometimes<"scenario: a thread rests after an error">();
        SleepForNanos(control_->rest_nanos);
      }
    }
    if (waits) {
      co_await session_->worker().SleepUntil(NowNanos() + kPauseNanos);
    } else {
      co_await session_->worker().Yield();  // on one node nothing else would let other coroutines run
    }
  }
}

}  // namespace gannet::scenario
