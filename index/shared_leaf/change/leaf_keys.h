// Entries of shared leaves by their keys, for leaves of both formats. Keys: IntegerKeys or ByteKeys.
#pragma once

#include <bit>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::shared_leaf {

// Reads the keys of the entries in `slots` (bits) of a whole leaf or inner node, by one posting. Those that cannot be
// read, or that the node does not cover, are not known afterwards: the node has changed since its image, or a client
// does not keep the rules. The caller is inside the epoch. With `sure`, a key of an inner node is known only if its
// child was at rest, as a split needs it; others can use a separator that is only probably right (blink.h).
// Errors: those of the channel.
coro::Task<Status> ReadKeys(LeafChannel* leaves, const ByteKeys::Schema& schema, TaggedCopy* place, uint64_t slots,
                            bool sure = false);

// Does what ReadKeys does, by the owner's CPU. `blocks`: of the index.
void LoadOwnKeys(const LeafBlocks& blocks, const ByteKeys::Schema& schema, TaggedCopy* place, uint64_t slots,
                 bool sure = false);

// True if the owner's record at `offset` holds the key. The offset may be anything.
bool OwnRecordHolds(const LeafBlocks& blocks, uint64_t offset, const ByteKey& key);

// The used slot that has exactly this entry, or -1.
template <class Keys>
int SlotOf(const typename Keys::Image& node, const typename Keys::Entry& entry) {
  for (uint64_t used = node.template used<typename Keys::Entry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    if (node.template entry<typename Keys::Entry>(slot) == entry) return slot;
  }
  return -1;
}

// The point for the keys right below `key`, which is not the least one.
template <class Keys>
typename Keys::Point PointBelow(const typename Keys::Key& key) {
  return Keys::PointOf(Keys::Behind(key, /*reverse=*/true), /*reverse=*/true);
}

// The first element of a map by low fences that begins right of the point.
template <class Keys, class Map>
auto FirstRightOf(Map& map, const typename Keys::Point& point) {
  if constexpr (Keys::kKeysElsewhere) {
    return point.below ? map.lower_bound(point.key) : map.upper_bound(point.key);
  } else {
    return map.upper_bound(point);
  }
}

// The slot of a whole leaf that has the key; -1: none has. Byte keys: READs the records whose tags match.
template <class Keys>
coro::Task<StatusOr<int>> FindKey(LeafChannel* leaves, const typename Keys::Schema& schema, typename Keys::Key key,
                                  LeafCopyOf<Keys>* leaf) {
  if constexpr (Keys::kKeysElsewhere) {
    uint64_t same = MatchTag(leaf->image, schema.TagOf(key));
    if (same == 0) co_return -1;
    const Status read = co_await ReadKeys(leaves, schema, leaf, same);
    GANNET_CO_RETURN_IF_ERROR(read);
    for (same &= leaf->keys.known; same != 0; same &= same - 1) {
      const int slot = std::countr_zero(same);
      if (Keys::KeyAt(leaf->image, leaf->keys, slot) == key) co_return slot;
    }
    co_return -1;
  } else {
    co_return Keys::SlotOf(leaf->image, key);
  }
}
// Does what FindKey does, by the owner's CPU.
template <class Keys>
int FindOwnKey(const LeafBlocks& blocks, const typename Keys::Schema& schema, const typename Keys::Key& key,
               const LeafCopyOf<Keys>& leaf) {
  if constexpr (Keys::kKeysElsewhere) {
    for (uint64_t same = MatchTag(leaf.image, schema.TagOf(key)); same != 0; same &= same - 1) {
      const int slot = std::countr_zero(same);
      if (OwnRecordHolds(blocks, leaf.image.template entry<typename Keys::Entry>(slot).offset(), key)) return slot;
    }
    return -1;
  } else {
    return Keys::SlotOf(leaf.image, key);
  }
}

// Reads all keys of a whole leaf, as far as they are not in the image (ReadKeys).
template <class Keys>
coro::Task<Status> ReadAllKeys(LeafChannel* leaves, const typename Keys::Schema& schema, LeafCopyOf<Keys>* leaf,
                               bool sure = false) {
  if constexpr (Keys::kKeysElsewhere) {
    const Status read =
        co_await ReadKeys(leaves, schema, leaf, leaf->image.template used<typename Keys::Entry>(), sure);
    co_return read;
  }
  co_return absl::OkStatus();
}
// All keys of the leaf are known, as a split needs them.
template <class Keys>
bool KnowsAll(const LeafCopyOf<Keys>& leaf) {
  if constexpr (Keys::kKeysElsewhere) {
    return (leaf.image.template used<typename Keys::Entry>() & ~leaf.keys.known) == 0;
  }
  return true;
}
// Loads all keys by the owner's CPU.
template <class Keys>
void LoadAllKeys(const LeafBlocks& blocks, const typename Keys::Schema& schema, LeafCopyOf<Keys>* leaf) {
  if constexpr (Keys::kKeysElsewhere) {
    LoadOwnKeys(blocks, schema, leaf, leaf->image.template used<typename Keys::Entry>());
  }
}

// The result for a key that this whole leaf covers. Byte keys: if one entry has the key's tag, it is returned without a
// look at its record, and the witness of the leaf with it (FindResult); nullopt, if there are several.
template <class Keys>
std::optional<FindResult> ResultOf(const typename Keys::Schema& schema, const LeafCopyOf<Keys>& leaf,
                                   const typename Keys::Key& key) {
  int slot = -1;
  FindResult result;
  if constexpr (Keys::kKeysElsewhere) {
    const uint64_t same = MatchTag(leaf.image, schema.TagOf(key));
    if (std::popcount(same) > 1) return std::nullopt;
    if (same != 0) slot = std::countr_zero(same);
    result.witness = leaf.witness();
  } else {
    slot = Keys::SlotOf(leaf.image, key);
    if (slot < 0) result.witness = leaf.witness();
  }
  if (slot >= 0) {
    result.record = Keys::TargetOf(leaf.image.template entry<typename Keys::Entry>(slot), leaf.address.node());
  }
  return result;
}

// The error of a change of a key that the index does not map to this record.
template <class Keys>
Status NotMapped(const typename Keys::Key& key, rdma::GlobalAddress record) {
  return absl::NotFoundError(absl::StrCat("the key ", Keys::ToString(key), " is not mapped to ", record.ToString()));
}

}  // namespace gannet::index::shared_leaf
