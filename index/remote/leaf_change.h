// The changes of shared leaves with integer keys, written once: each is one posting under the locks of the leaves that
// it changes (leaf.h). For clients, and for the owner over a channel of its own.
#pragma once

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/remote/block_source.h"
#include "index/remote/leaf.h"
#include "index/remote/leaf_channel.h"

namespace gannet::index::remote {

// A leaf as it was READ.
struct LeafPlace {
  rdma::GlobalAddress address;
  LeafImage image;

  Witness witness() const { return {address, image.head.state}; }
};

// Not thread-safe; coroutines of the channel's worker may use it at once. All return false, with nothing changed, if a
// leaf has changed since its place was READ, or is being changed. Errors: as those of LeafChannel; then it is not known
// whether the change was made.
class LeafChanger {
 public:
  // Both must outlive this.
  LeafChanger(LeafChannel* leaves, BlockSource* blocks) : leaves_(leaves), blocks_(blocks) {}

  // Adds an entry to a leaf that has room and covers its key, which it does not have.
  coro::Task<StatusOr<bool>> Add(const LeafPlace& place, IntegerEntry entry, Change* change);
  // The same for a full leaf. *right: the new leaf, with its low fence as key. Also the errors of BlockSource::Take.
  coro::Task<StatusOr<bool>> Split(const LeafPlace& place, IntegerEntry entry, Change* change, IntegerEntry* right);
  // Empties a slot. Then place->image is the leaf as it is now.
  coro::Task<StatusOr<bool>> Remove(LeafPlace* place, int slot, Change* change);
  coro::Task<StatusOr<bool>> Replace(const LeafPlace& place, int slot, IntegerEntry entry);
  // Moves the entries of `right` to `left`, its left neighbour, which has room for them. `right` is dead then, and its
  // block is given back.
  coro::Task<StatusOr<bool>> Absorb(const LeafPlace& left, const LeafPlace& right, Change* change);
  // Makes the changes of a draft, whose leaf is not locked.
  coro::Task<StatusOr<bool>> Publish(LeafDraft* draft);

 private:
  LeafChannel* leaves_;
  BlockSource* blocks_;
};

}  // namespace gannet::index::remote
