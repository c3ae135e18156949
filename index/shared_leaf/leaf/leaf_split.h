// Splits and merges of shared leaves. Keys: IntegerKeys or ByteKeys.
#pragma once

#include <cstdint>
#include <span>

#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "index/shared_leaf/leaf/leaf_draft.h"
#include "index/shared_leaf/leaf/posting.h"

namespace gannet::index::shared_leaf {

// How a leaf is divided that has no room for new entries.
template <class Keys>
struct SplitPlanOf {
  uint64_t moved = 0;           // slots whose entries go to the right leaf
  typename Keys::Key border{};  // low fence of the right leaf
  size_t new_left = 0;          // number of new entries, from the first, that go to the left leaf
};
using SplitPlan = SplitPlanOf<IntegerKeys>;

// `keys`: all keys of the leaf. `added`: at least one and at most Keys::kSlots entries in ascending order, whose keys
// the leaf covers and does not have. Together with the leaf's they are more than one leaf can hold.
//
// Ascending keys are the rule in a log of orders: a plain split would leave every leaf half full. If the new keys come
// right after the entry that was inserted last, keys are being appended there. Then the part before them stays in the
// left leaf, with the new ones as far as there is room. Otherwise each leaf gets half. The right node's low fence is
// the key of its first entry, if the node is an inner one.
template <class Keys>
SplitPlanOf<Keys> PlanSplit(const typename Keys::Image& leaf, const typename Keys::EntryKeys& keys,
                            std::span<const typename Keys::IndexEntry> added);
inline SplitPlan PlanSplit(const LeafImage& leaf, std::span<const IntegerEntry> added) {
  return PlanSplit<IntegerKeys>(leaf, {}, added);
}

// Appends the verbs of the split: [right leaf, locked][left line 0, after the fence lines], then, if entries are added
// to the left leaf, [lines][line 0], then [right state word]. `left` is locked, and has no other change; `right` is a
// new leaf of the same level. Afterwards both have their published state.
template <class Keys = IntegerKeys>
void AppendSplit(const SplitPlanOf<Keys>& plan, std::span<const typename Keys::IndexEntry> added,
                 typename Keys::Draft* left, typename Keys::Draft* right, Posting* posting);

// A split for more new entries than two leaves have room for, with as many of `fresh`, new leaves that follow each
// other, as they need, each of which may be split again before it is written. [new leaves, locked][left line 0 ...],
// then [state words of the new leaves]. Integer keys only, since those of the new leaves must be known.
struct Spread {
  size_t added = 0;   // entries that have found room, from the first of `added` on
  size_t leaves = 0;  // of `fresh`
};
template <class Keys = IntegerKeys>
Spread AppendSpread(const typename Keys::Image& leaf, std::span<const typename Keys::IndexEntry> added,
                    typename Keys::Draft* left, std::span<typename Keys::Draft> fresh, Posting* posting);

// Appends the verbs that give the range and the entries of `right`, which is locked, to `left`, its left sibling, which
// is locked, too, and has room.
template <class Keys = IntegerKeys>
void AppendAbsorb(typename Keys::Draft* left, typename Keys::Draft* right, Posting* posting);

}  // namespace gannet::index::shared_leaf
