// BulkLoader: fills an empty table without transactions.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "index/key.h"
#include "txn/run/session.h"
#include "txn/store/payload.h"
#include "txn/store/table.h"

namespace gannet::txn {

// Fills this node's part of an empty table without transactions. Nothing else may use the table before Finish has
// returned.
//
// A load is not logged. In a database with a directory it becomes durable by a checkpoint of this node that begins to
// write the table after Finish (Database::Checkpoint, a periodic checkpoint, or that of Close). After a crash either
// all of the load is there or nothing of it. Until the load is durable, its rows can be read, but a transaction of any
// node that changes rows of this node, or that read some of them and changes others, does not commit:
// FailedPrecondition, which names the node. This holds for all of this node's tables, not only for the loaded one,
// because a change to one table may depend on rows read in another. Each node of a cluster loads and checkpoints its
// own part. So a program that loads on several nodes knows that everything is durable when each has taken its
// checkpoint, and may then commit a row that says so. (With DurabilityMode::kNone nothing is logged, so nothing is
// refused.)
class BulkLoader {
 public:
  // Both must outlive this.
  BulkLoader(Session* session, const Table* table);
  // Frees rows that were added and not finished.
  ~BulkLoader();
  // Keys of an ordered table must come in strictly ascending order, those of other tables in any order. The key must
  // belong to this node. An error ends the load: further calls return it, and Finish, too, which then loads nothing.
  // Add and Finish return Cancelled once DatabaseOptions::stop is set; nothing of this load is visible then.
  Status Add(const Key& key, PayloadBytes row);
  // Builds the index. Nothing is visible before. After an error nothing of the load is there, and a new one may begin:
  // FailedPrecondition if the table is not empty, or has a secondary index (create it after the load), or if its rows
  // of fixed length were widened after the first Add; InvalidArgument if a key was added twice, ResourceExhausted if
  // the index does not fit into the memory. After Ok the load is over: Add and Finish return FailedPrecondition.
  Status Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gannet::txn
