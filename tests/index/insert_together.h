// InsertTogether: one round of an InsertBatch, as a transaction makes it (txn/commit/one_sided_inserts.h), but its
// thread may do other things meanwhile.
#pragma once

#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "rdma/fabric.h"

namespace gannet::index {

// What became of the insertions is noted in them. `changes` (if not null): the operations of the last posting. Returns
// the first error.
inline coro::Task<Status> InsertTogether(rdma::Channel* channel, RemoteIndex* remote, std::span<Insertion> insertions,
                                         std::vector<rdma::Operation>* changes = nullptr) {
  const auto batch = remote->NewInsertBatch();
  std::vector<rdma::Operation> operations;
  batch->Begin(insertions, 0, &operations);
  while (!operations.empty()) {
    const Status read = co_await channel->Post(operations);
    GANNET_CO_RETURN_IF_ERROR(read);
    operations.clear();
    batch->AppendReads(&operations);
  }
  const Status found = co_await batch->Find();
  GANNET_CO_RETURN_IF_ERROR(found);
  Status first_error;
  if (batch->pending() > 0) {
    batch->AppendLocks(&operations);
    Status locked = co_await channel->Post(operations);
    first_error = co_await batch->TakeLocks(locked, operations);
    operations.clear();
    batch->AppendChanges(&operations);
    Status changed;
    if (!operations.empty()) changed = co_await channel->Post(operations);
    const Status taken = co_await batch->TakeChanges(changed);
    if (first_error.ok()) first_error = taken;
    co_await batch->Publish();
  }
  batch->Abandon();
  if (changes != nullptr) *changes = operations;
  co_return first_error;
}

}  // namespace gannet::index
