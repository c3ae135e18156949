// A leaf of XTree in registered memory, in one of two formats:
//
//   InlineLeaf   inline_leaf.h   for integers, and byte keys of up to 39 bytes: 16 unsorted slots of key and record
//   TaggedLeaf   tagged_leaf.h   for longer byte keys: 44 sorted slots of tag and record, which has the key
//
// Why not tags for all byte keys. They take a quarter of the memory for keys of 16 bytes, too, and a find READs less.
// But a scan then READs each key of its leaves from a record, however few of them are in its range: a hundred READs and
// one more posting, where leaves with their keys take three READs in all. At the owner a scan of three keys takes half
// as long again (docs/performance.md, "Byte keys in XStore and in blink"). TPC-C's customers by name, whose keys have
// 39 bytes, are only scanned, three at a time. Longer keys are where inline leaves are worst: 26 lines for 16 keys.
//
// Both have:
//
//   state   lock bit 63 and version; the leaf's witness word: +1 whenever the set of keys in [low, high] may have
//           changed
//   meta    | right sibling, in units of 64 bytes (32) | incarnation (24) | count (8) |
//   low     the leaf covers the keys from low to high, both included, present or absent
//   high    the right sibling's low is high + 1
//
// The life cycle. A leaf's incarnation grows when it stops covering some keys: at a split (the upper part moves to a
// new right sibling) and at its death (an empty leaf is unlinked; then low > high, so it covers nothing). Otherwise its
// low fence only falls and its high fence only rises, when it takes over the range of a dead neighbour. At every moment
// the unlocked leaves cover disjoint ranges; all other keys are in ranges of locked leaves.
//
// What a racing reader may conclude from an image whose lines carry one version, unlocked and not busy:
//   - the first lines, up to the fences: what the leaf covers; up to `count` slots: which keys it has, and which not;
//   - any lines: the slots in them. A slot that is not counted has a null record (also in a dead leaf, and in a block
//     that waits to become one), and lines are busy while their slots change. So a key with a record is in the index at
//     that moment, even if the block has become another leaf. A key that is not in these lines may be in others.
// The rest follows versioned.h.
#pragma once

#include <type_traits>

#include "index/xstore/tree/inline_leaf.h"
#include "index/xstore/tree/tagged_leaf.h"
#include "index/xstore/xstore.h"

namespace gannet::index::xstore {

// Leaves with byte keys of at least this many words leave them in the records.
inline constexpr int kLeastTaggedWords = 9;
static_assert(CapacityOf(5) == kMostInlineKeyBytes);  // 5 words are the most below nine (key_codec.h)

template <int W>
using Leaf = std::conditional_t<W >= kLeastTaggedWords, TaggedLeaf<W>, InlineLeaf<W>>;
template <int W>
using LeafLayout = typename Leaf<W>::Layout;

}  // namespace gannet::index::xstore
