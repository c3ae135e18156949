// The translation table (TT) of a sub-model: from a leaf's logical number (its rank among the sub-model's leaves when
// that was trained) to where it is. An array of words in registered memory, in blocks that stay tables of the same tree
// for ever: each word a client READs from one is the number of a block that is, or was, a leaf. Words stand for
// themselves, so the table needs no version; whether an entry still leads to the right leaf is seen at the leaf.
//
//   entry   | leaf's block number, in units of 64 bytes (32) | incarnation (24) | count (8) |
#pragma once

#include <cstdint>

#include "index/xstore/leaf.h"
#include "rdma/slab.h"

namespace gannet::index::xstore {

struct TableEntry {
  uint32_t leaf = 0;
  uint32_t incarnation = 0;  // as it was when the table was made
  uint32_t count = 0;        // likewise

  constexpr uint64_t Pack() const { return LeafMeta{leaf, incarnation, count}.Pack(); }
  static constexpr TableEntry Unpack(uint64_t word) {
    const LeafMeta meta = LeafMeta::Unpack(word);
    return {meta.right, meta.incarnation, meta.count};
  }
};

inline constexpr uint32_t kMaxTableEntries = rdma::kMaxObjectBytes / kWordBytes;

}  // namespace gannet::index::xstore
