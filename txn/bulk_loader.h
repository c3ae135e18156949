// BulkLoader: fills an empty table without transactions.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/status.h"
#include "index/key.h"
#include "txn/session.h"
#include "txn/table.h"

namespace gannet::txn {

// Fills this node's part of an empty table, without transactions: nobody may use the table yet.
//
// Not logged: in a database with a directory a load becomes durable by a checkpoint of this node that begins to write
// the table after Finish (Database::Checkpoint, a periodic one, that of Close). After a crash all of the load is there
// or nothing. Until it is durable it can be read, but no transaction of any node commits that changes rows of this
// node, or that read some and changes others: FailedPrecondition, which names the node. That holds for all of this
// node's tables, not only for the one that was loaded: what a transaction did to one may rest on what it read in
// another. The nodes of a cluster load and checkpoint each for itself: a program that loads on several knows that all
// of it is durable when each has taken its checkpoint, and may then commit a row that says so. (With
// DurabilityMode::kNone nothing is logged, so nothing is refused.)
class BulkLoader {
 public:
  // Both must outlive it.
  BulkLoader(Session* session, const Table* table);
  // Gives back what was added and not finished.
  ~BulkLoader();
  // Keys of an ordered table come in strictly ascending order, those of other tables in any. The key must belong to
  // this node. Cancelled, as Finish, by DatabaseOptions::stop: nothing of this load is visible.
  Status Add(const Key& key, std::span<const std::byte> payload);
  template <PayloadType Row>
  Status Add(const Key& key, const Row& row) {
    return Add(key, std::as_bytes(std::span(&row, 1)));
  }
  // Builds the index. Nothing is visible before. After an error nothing of the load is there, and it may begin again:
  // FailedPrecondition if the table is not empty, InvalidArgument if a key was added twice, ResourceExhausted if the
  // index does not fit into the memory.
  Status Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gannet::txn
