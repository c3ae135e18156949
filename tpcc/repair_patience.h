// A transaction that meets what a dead client left locked is Unavailable, though its data is there: the owners of the
// records release them within milliseconds (txn/repair/repair.h). So it is run again for a while; it did nothing. It is
// not if a server has gone: that one's data does not come back.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "rdma/fabric.h"
#include "txn/database.h"
#include "txn/session.h"

namespace gannet::tpcc {

// Of one transaction.
class RepairPatience {
 public:
  static constexpr uint64_t kTryAgainNanos = 1'000'000;

  explicit RepairPatience(txn::Database* database) : database_(database) {}

  // After it ended with `status`: is it worth another try?
  bool RunAgain(const Status& status) {
    if (!absl::IsUnavailable(status)) [[likely]]
      return false;
    for (int node = 0; node < database_->data_nodes(); ++node) {
      if (!database_->fabric().Alive(static_cast<rdma::NodeId>(node))) return false;
    }
    const uint64_t now = NowNanos();
    if (since_ == 0) since_ = now;
    return now - since_ < kPatienceNanos;
  }

 private:
  static constexpr uint64_t kPatienceNanos = 5'000'000'000;

  txn::Database* database_;
  uint64_t since_ = 0;  // 0: nothing to repair yet
};

// Session::RunBlocking, with that patience.
inline Status RunPatiently(txn::Session& session, absl::FunctionRef<coro::Task<Status>(txn::Transaction&)> body) {
  RepairPatience patience(&session.database());
  for (;;) {
    Status status = session.RunBlocking(body);
    if (!patience.RunAgain(status)) return status;
    SleepForNanos(RepairPatience::kTryAgainNanos);
  }
}

}  // namespace gannet::tpcc
