#include "txn/peer/pending_moves.h"

#include <mutex>

namespace gannet::txn {

void PendingMoves::Add(rdma::NodeId coordinator, const Unmaking& block) {
  std::lock_guard lock(mutex_);
  moves_.insert_or_assign(block.record.bits(), Move{coordinator, block});
}

void PendingMoves::Remove(rdma::GlobalAddress block) {
  std::lock_guard lock(mutex_);
  moves_.erase(block.bits());
}

std::vector<Unmaking> PendingMoves::Of(rdma::NodeId coordinator) const {
  std::lock_guard lock(mutex_);
  std::vector<Unmaking> result;
  for (const auto& [address, move] : moves_) {
    if (move.coordinator == coordinator) result.push_back(move.block);
  }
  return result;
}

}  // namespace gannet::txn
