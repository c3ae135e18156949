// RecordStock: the blocks for records that the sessions of this database have borrowed from other nodes
// (node/lent_records.h). All sessions take from it, so that a session leaves nothing behind when it ends.
//
// Blocks are lent over a connection. When that has ended, the owner takes them back, so the stock forgets them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/thread.h"
#include "rdma/fabric.h"
#include "txn/node/lent_records.h"

namespace gannet::txn {

// Thread-safe.
class RecordStock {
 public:
  // `node` must outlive this.
  explicit RecordStock(const rdma::Node* node) : node_(node) {}

  // All: `connection` is the one by which this node has joined at the owner. Where it has ended, nothing is taken or
  // kept. `bytes`: of the record.

  // False: there is none.
  bool Take(rdma::NodeId owner, uint64_t connection, size_t bytes, LentBlock* block);
  // Adds blocks that were lent, or taken and not used. If one was written, block.word is what a new record goes on
  // from.
  void Add(rdma::NodeId owner, uint64_t connection, size_t bytes, std::span<const LentBlock> blocks);
  void NoteUsed(rdma::NodeId owner, uint64_t connection, std::span<const UsedBlock> used);
  // Returns at most `most` of those that were noted, which the owner is to be told of.
  std::vector<UsedBlock> TakeUsed(rdma::NodeId owner, uint64_t connection, size_t most);

 private:
  struct PerOwner {
    uint64_t connection = 0;
    std::map<size_t, std::vector<LentBlock>> free;  // by size of the block
    std::vector<UsedBlock> used;
  };
  // Null if the connection has ended. The mutex is held.
  PerOwner* Of(rdma::NodeId owner, uint64_t connection);

  const rdma::Node* const node_;
  Mutex mutex_;  // guards the next member
  std::map<rdma::NodeId, PerOwner> owners_;
};

}  // namespace gannet::txn
