// The translation table (TT) of a sub-model: maps a leaf's logical number (its rank among the sub-model's leaves at
// training) to its place. An array of words in registered memory, in blocks that always stay tables of the same tree:
// each word that a client READs from one is the number of a block that is, or was, a leaf. Each word is self-contained,
// so the table needs no version; the leaf itself shows whether an entry still leads to the right leaf.
//
//   entry   | leaf's block number, in units of 64 bytes (32) | incarnation (24) | count (8) |
#pragma once

#include <cstdint>

#include "index/xstore/tree/leaf.h"
#include "rdma/slab.h"

namespace gannet::index::xstore {

struct TableEntry {
  uint32_t leaf = 0;
  uint32_t incarnation = 0;  // at the time when the table was made
  uint32_t count = 0;        // the same

  constexpr uint64_t Pack() const { return LeafMeta{leaf, incarnation, count}.Pack(); }
  static constexpr TableEntry Unpack(uint64_t word) {
    const LeafMeta meta = LeafMeta::Unpack(word);
    return {meta.right, meta.incarnation, meta.count};
  }
};

inline constexpr uint32_t kMaxTableEntries = rdma::kMaxObjectBytes / kWordBytes;

}  // namespace gannet::index::xstore
