// RecordWalk: all records of this node's part of a table, some at a time. An index that clients change may lead
// to anything (index_damage.h): the check is here. (Repair goes on where this one ends, so it walks by itself.)
//
//   RecordWalk walk(local, table);
//   while (walk.has_more()) {
//     const index::IndexService::Guard guard(&local.indexes);
//     const auto records = walk.Next();
//     if (!records.ok()) return records.status();
//     ...
//   }
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/index.h"
#include "rdma/global_address.h"
#include "txn/node/local_node.h"
#include "txn/store/table.h"

namespace gannet::txn {

// Used by one thread.
class RecordWalk {
 public:
  // At an address where there is no record of the table the walk ends, or goes on. It notes the damage in both cases.
  enum class Strays : uint8_t { kEndIt, kAreLeftOut };

  // All must outlive it. `index`: that of the table, or one that was the table's.
  RecordWalk(const LocalNode& local, const Table& table, Strays strays = Strays::kEndIt)
      : RecordWalk(local, table, table.local_index(), strays) {}
  RecordWalk(const LocalNode& local, const Table& table, index::LocalIndex& index, Strays strays)
      : local_(local), table_(table), index_(index), strays_(strays) {}

  bool has_more() const { return more_; }
  // The next ones, maybe none: valid until the next call, and as long as the caller stays in the epoch, in which it
  // must be. A walk beside changes finds all that were there from its begin to its end, and some twice
  // (LocalIndex::Walk). DataLoss: the index is damaged.
  StatusOr<std::span<const rdma::GlobalAddress>> Next();

 private:
  const LocalNode& local_;
  const Table& table_;
  index::LocalIndex& index_;
  const Strays strays_;
  index::WalkPosition position_;
  std::vector<rdma::GlobalAddress> records_;
  bool more_ = true;
};

}  // namespace gannet::txn
