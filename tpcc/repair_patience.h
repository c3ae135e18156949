// Runs transactions again while survivors repair. Run itself waits for records that a dead client has locked, for some
// time (LockedTooLong of txn/peer/peers.h). A transaction that is Unavailable after that, or because a connection
// broke, did nothing, though its data is there, so it is run again. It is not run again if a server is dead, because
// that server's data does not come back.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "rdma/fabric.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::tpcc {

// The patience of one transaction.
class RepairPatience {
 public:
  static constexpr uint64_t kTryAgainNanos = 1'000'000;

  explicit RepairPatience(txn::Database* database) : database_(database) {}

  // Called after the transaction ended with `status`: true if it is worth another try.
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
  uint64_t since_ = 0;  // 0: no repair is awaited yet
};

// Session::RunBlocking, with RepairPatience.
inline Status RunPatiently(txn::Session& session, absl::FunctionRef<coro::Task<Status>(txn::Transaction&)> body) {
  RepairPatience patience(&session.database());
  for (;;) {
    Status status = session.RunBlocking(body);
    if (!patience.RunAgain(status)) return status;
    SleepForNanos(RepairPatience::kTryAgainNanos);
  }
}

}  // namespace gannet::tpcc
