// How a witness is validated (index.h, "Witness"): by a look at its word, which tells changes of the set of keys from
// housekeeping. A transaction must not conflict with what the engine does by itself, such as the merging of leaves.
//
//    63     62        61                 40  39                    0
//  +------+--------+-----------------------+------------------------+
//  | lock | absent | structure (22)        | version (40)           |
//  +------+--------+-----------------------+------------------------+
//
// version    another one whenever the set of keys may have changed
// structure  of an unlocked word: housekeeping changed the node, e.g. its fences, and no set of keys. The whole word is
//            never what it was, so readers of the node notice that. All bits set in a locked word: housekeeping holds
//            the lock, so nobody changes the set. Otherwise a locked word has the name of the worker that holds it here
//            (lock_word.h), or nothing. No fabric has 2^15 nodes, so no worker has the name of housekeeping.
#pragma once

#include <cstdint>

#include "index/lock_word.h"

namespace gannet::index {

inline constexpr uint64_t kStructureBits = OwnerBits(0x7fff, 0x7f);

// The word that a CAS stores to lock the unlocked `state` for a change that leaves all sets of keys as they are.
constexpr uint64_t LockedForStructure(uint64_t state) {
  return state | rdma::kLockBit | kStructureBits;
}

// True if the word `found` has the set of keys that it had when it was `seen`, which is a value of a witness.
constexpr bool IsSameSet(uint64_t found, uint64_t seen) {
  return found == seen || (found & ~kStructureBits) == (seen & ~kStructureBits) || found == LockedForStructure(seen);
}

}  // namespace gannet::index
