// LeafCombiner: inserts and updates of values by a client in the shared leaves of one index of integer keys, together
// with those of the other clients of this process (leaf_queues.h). The client that leads a leaf's queue READs the leaf,
// takes its lock, and makes the changes of all that wait in one. If new entries have no room, it splits the leaf, and
// both parts get what belongs there; updates wait for the next batch then. So a run of changes of one leaf costs one
// READ, and one lock and one posting for each batch of them.
//
// Other machines may have split the leaf since the caches learned of it, which is the rule where keys ascend. Then the
// leader and those that wait go on to the right together, each to the leaf that the caches expect by then: none waits
// for the search of another. After the second leaf that was too far left, the caches catch up with the splits of other
// machines while the third one is READ (ReadExpected).
//
// What it does not decide itself, it leaves to the caller, which then makes the change alone: an insert of a key that
// the leaf has, an update of one that it has not, and a split of the root of a tree.
//
// Each insert of a batch has a version of the leaf of its own, of which only the last is ever published. So the Change
// of one never covers what another has done: for a transaction that has the leaf as a witness, the others' inserts are
// changes by others.
//
// If the posting fails, it is not known whether the changes were made, and all of the batch get the error. If
// the leader fails in another way, those that wait try again, by themselves or together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/change/leaf_change.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/leaf_client.h"
#include "ycsb/leaf_queues.h"

namespace gannet::ycsb {

// Not thread-safe; coroutines of the channel's worker may use it at once.
class LeafCombiner {
 public:
  using Entry = index::shared_leaf::IntegerEntry;
  using Leaves = index::shared_leaf::LeafClient<index::shared_leaf::IntegerKeys>;

  // All must outlive this. `worker` runs the client's coroutines.
  LeafCombiner(Leaves* index, LeafQueues* queues, coro::Worker* worker)
      : index_(index), leaves_(&index->leaves()), blocks_(&index->blocks()), queues_(queues), worker_(worker) {}

  // nullopt: nothing was done, and the caller makes the change. Errors: as those of LeafChanger.
  coro::Task<StatusOr<std::optional<index::Change>>> Insert(Entry entry) { return Make(entry, /*is_update=*/false); }
  // The key of the entry gets its target.
  coro::Task<StatusOr<std::optional<index::Change>>> Update(Entry entry) { return Make(entry, /*is_update=*/true); }

 private:
  using LeafCopy = index::shared_leaf::LeafCopy;
  using Draft = index::shared_leaf::LeafDraft;

  struct Request : LeafQueues::Waiter {
    Request(coro::Worker* worker, const Entry& of, bool updates) : Waiter(worker), entry(of), is_update(updates) {}

    const Entry entry;
    const bool is_update;
    int turns = 0;                            // those before
    std::optional<rdma::GlobalAddress> leaf;  // that covers the key: then `place` has its image
    LeafCopy place;
    Status status;
    index::Change change;
  };
  struct Batch;
  enum class Step : uint8_t { kDone, kAgain, kAlone };

  coro::Task<StatusOr<std::optional<index::Change>>> Make(Entry entry, bool is_update);
  // The leaf whose queue is for the key, by the client's caches, or by a search.
  coro::Task<StatusOr<rdma::GlobalAddress>> QueueFor(Request* request);
  // READs the queue's leaf for the leader, whose place it is if it covers the leader's key. False: it does not, but the
  // caches lead to the right of it now. If it is no leaf, or begins behind the key, the leader searches.
  coro::Task<StatusOr<bool>> ReadPlace(rdma::GlobalAddress leaf, Request* own);
  coro::Task<StatusOr<Step>> MakeAll(LeafQueues::Leader* lead, Request* own);
  // Number of new leaves that a split may need.
  size_t LeavesFor(const LeafCopy& place, size_t waiting) const;
  // What a split has made.
  struct Splits {
    std::vector<Entry> rights;
    index::shared_leaf::SplitHint hint;
  };
  // The leaf is locked. `blocks`: for a split. False: the leader's own entry has found no room.
  coro::Task<StatusOr<bool>> ChangeLocked(LeafQueues::Leader* lead, Request* own, Draft* draft,
                                          std::span<const index::shared_leaf::FreeBlock> blocks, Splits* splits);
  // Those that wait for a leaf that does not cover their keys go on at once: the caches lead them elsewhere.
  static void SendOthersAway(LeafQueues::Leader* lead, const LeafCopy& place);

  Leaves* index_;
  index::shared_leaf::LeafChannel* leaves_;
  index::shared_leaf::BlockSource* blocks_;
  LeafQueues* queues_;
  coro::Worker* worker_;
};

}  // namespace gannet::ycsb
