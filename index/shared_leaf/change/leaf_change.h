// The changes of shared leaves, written once: each is one posting under the locks of the leaves that it changes
// (leaf.h). For clients, and for the owner over a channel of its own. Keys: IntegerKeys or ByteKeys.
#pragma once

#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "rdma/fabric.h"

namespace gannet::index::shared_leaf {

// An FAA that goes out with the posting of a split, behind it: it takes the places where other clients will find the
// new leaves sooner than by right links. nullopt: none. It gets its result by the posting; before, the result is what
// the index has set.
using SplitHint = std::optional<rdma::Operation>;

template <class Keys>
class SplitHints {
 public:
  // `rights`: the new leaves, with their low fences as keys. Called when the leaf that is split is locked.
  virtual SplitHint HintOf(std::span<const typename Keys::IndexEntry> rights) = 0;

 protected:
  ~SplitHints() = default;
};

// Not thread-safe; coroutines of the channel's worker may use it at once. All return false, with nothing changed, if a
// leaf has changed since its place was READ, or is being changed. Errors: as those of LeafChannel; then it is not known
// whether the change was made.
template <class Keys>
class BasicLeafChanger {
 public:
  using LeafCopy = LeafCopyOf<Keys>;
  using Entry = typename Keys::Entry;
  using IndexEntry = typename Keys::IndexEntry;
  using Draft = typename Keys::Draft;

  // Both must outlive this.
  BasicLeafChanger(LeafChannel* leaves, BlockSource* blocks) : leaves_(leaves), blocks_(blocks) {}

  // Adds an entry to a leaf that has room and covers its key, which it does not have.
  coro::Task<StatusOr<bool>> Add(const LeafCopy& place, Entry entry, Change* change);
  // Splits a full leaf, all of whose keys the place knows, and adds an entry. *right: the new leaf, with its low fence
  // as key. Also the errors of BlockSource::Take. `hints` (null: none) gives the FAA that goes out with the split,
  // *hint is that as it was posted.
  coro::Task<StatusOr<bool>> Split(const LeafCopy& place, IndexEntry entry, Change* change, IndexEntry* right,
                                   SplitHints<Keys>* hints = nullptr, SplitHint* hint = nullptr);
  // Empties a slot. Then place->image is the leaf as it is now.
  coro::Task<StatusOr<bool>> Remove(LeafCopy* place, int slot, Change* change);
  coro::Task<StatusOr<bool>> Replace(const LeafCopy& place, int slot, Entry entry);
  // Moves the entries of `right` to `left`, its left neighbour, which has room for them. `right` is dead then, and its
  // block is given back. `only_if` (nullopt: none) is called when both are locked, and must not wait for a lock. If it
  // returns false or an error, so does this, and nothing is changed.
  using Condition = absl::FunctionRef<coro::Task<StatusOr<bool>>()>;
  coro::Task<StatusOr<bool>> Absorb(const LeafCopy& left, const LeafCopy& right, Change* change,
                                    std::optional<Condition> only_if = std::nullopt);
  // Makes the changes of a draft, whose leaf is not locked.
  coro::Task<StatusOr<bool>> Publish(Draft* draft);

 private:
  LeafChannel* leaves_;
  BlockSource* blocks_;
};

using LeafChanger = BasicLeafChanger<IntegerKeys>;

}  // namespace gannet::index::shared_leaf
