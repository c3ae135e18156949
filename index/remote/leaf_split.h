// Splits of shared leaves with integer keys.
#pragma once

#include <cstdint>
#include <span>

#include "index/remote/leaf.h"
#include "index/remote/leaf_draft.h"
#include "index/remote/posting.h"

namespace gannet::index::remote {

// How a leaf is divided that has no room for new entries.
struct SplitPlan {
  uint64_t moved = 0;   // slots whose entries go to the right leaf
  uint64_t high = 0;    // new high fence of the left leaf
  size_t new_left = 0;  // number of new entries, from the first, that go to the left leaf
};

// `added`: at least one and at most IntegerEntry::kSlots entries in ascending order, whose keys the leaf covers and
// does not have. Together with the leaf's they are more than one leaf can hold.
//
// Ascending keys are the rule in a log of orders: a plain split would leave every leaf half full. If the new keys come
// right after the entry that was inserted last, keys are being appended there. Then the part before them stays in the
// left leaf, with the new ones as far as there is room. Otherwise each leaf gets half. The right node's low fence is
// the key of its first entry, if the node is an inner one.
SplitPlan PlanSplit(const LeafImage& leaf, std::span<const IntegerEntry> added);

// Appends the verbs of the split: [right leaf, locked][left line 0], then, if entries are added to the left leaf,
// [lines][line 0], then [right state word]. `left` is locked, and has no other change; `right` is a new leaf of the
// same level. Afterwards both have their published state.
void AppendSplit(const SplitPlan& plan, std::span<const IntegerEntry> added, LeafDraft* left, LeafDraft* right,
                 Posting* posting);

// Appends the verbs that give the range and the entries of `right`, which is locked, to `left`, its left sibling, which
// is locked, too, and has room.
void AppendAbsorb(LeafDraft* left, LeafDraft* right, Posting* posting);

}  // namespace gannet::index::remote
