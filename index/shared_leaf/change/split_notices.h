// SplitNotices: makes the leaves that a transaction's inserts have made (leaf_insert.h) known to other clients, in the
// postings of these inserts. So it takes no round trip of its own. All are hints: without them the index works as
// before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/fabric.h"

namespace gannet::index::shared_leaf {

// The steps come in the order of InsertBatch's (index.h); only Prepare and Finish suspend. Not thread-safe.
template <class Keys>
class SplitNotices {
 public:
  using IndexEntry = typename Keys::IndexEntry;

  virtual ~SplitNotices() = default;
  // Forgets what was added. Verbs go over `connection`.
  virtual void Begin(uint64_t connection) = 0;
  // Before the READs of leaves: adds READs of what Prepare needs, if the leaf seems to have no room for so many keys,
  // of which this is one.
  virtual void AppendReads(rdma::GlobalAddress /*leaf*/, const typename Keys::Key& /*key*/, size_t /*added*/,
                           std::vector<rdma::Operation>* /*reads*/) {}
  // Before Add of a leaf that is to be made, with this low fence: READs what Add needs and is not cached.
  virtual coro::Task<void> Prepare(typename Keys::Key /*low*/) { co_return; }
  // A leaf that is to become known, with its low fence as key. False: that takes more than these postings.
  virtual bool Add(const IndexEntry& leaf) = 0;
  // The steps that go with the locks of leaves.
  virtual void AppendLocks(std::vector<rdma::Operation>* operations) = 0;
  virtual coro::Task<void> TakeLocks(Status posted, std::span<const rdma::Operation> operations) = 0;
  // The steps that go with the changes of leaves, and behind them. `is_made`: whether a leaf is there then.
  virtual void AppendChanges(absl::FunctionRef<bool(const IndexEntry&)> is_made,
                             std::vector<rdma::Operation>* operations) = 0;
  virtual coro::Task<void> TakeChanges(Status posted) = 0;
  // What remains to be done, by postings of its own. No leaf is locked.
  virtual coro::Task<void> Finish() { co_return; }
};

}  // namespace gannet::index::shared_leaf
