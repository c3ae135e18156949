// Blocks to which records of this owner are to move. A kTxnPrepare makes them, and they are in no index until the
// transaction that asked for them is installed. If its coordinator dies, nothing else leads to them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/thread.h"
#include "rdma/global_address.h"
#include "txn/peer/request_ledger.h"

namespace gannet::txn {

// Thread-safe.
class PendingMoves {
 public:
  // `block` has been made for a worker of `coordinator`.
  void Add(rdma::NodeId coordinator, const Unmaking& block);
  // The block is a record now, or free. No effect if it is not here.
  void Remove(rdma::GlobalAddress block);
  // All blocks for workers of `coordinator`, in the order of their addresses. They stay here.
  std::vector<Unmaking> Of(rdma::NodeId coordinator) const;

 private:
  struct Move {
    rdma::NodeId coordinator;
    Unmaking block;
  };

  mutable Mutex mutex_;
  std::map<uint64_t, Move> moves_;  // by address
};

}  // namespace gannet::txn
