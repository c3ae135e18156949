// The lock word: lock, owner and version in one, so that one CAS locks and one load validates. It is the first word of
// a record, where it is called the state word. Nodes of an index that clients lock may begin with it, too.
//
//    63     62     61        47  46       40  39                    0
//  +------+--------+-----------+------------+------------------------+
//  | lock | absent | node (15) | channel (7)| version (40)           |
//  +------+--------+-----------+------------+------------------------+
//
// lock     set while a transaction writes the record; then (node, channel) names the worker that holds it, so that
//          survivors of its death can identify its locks. Both are 0 while the record is not locked. In the unlocked
//          word of a leaf they may say that a node has claimed it (shared_leaf/claim/claim.h).
// absent   the record is removed, or was inserted by a transaction that has not committed (then it is locked, too). The
//          words of a record's other lines always have this bit (versioned.h), so a stale address in the middle of a
//          record leads to an absent record.
// version  +1 with every install. It continues when the memory is reused for another record (slab.h), so (address,
//          state word) names one state of one record only. It wraps after 2^40 installs of one record: 12 days at a
//          million per second. A reader would have to sleep for exactly that long to be deceived.
#pragma once

#include <cstdint>

#include "rdma/global_address.h"
#include "rdma/versioned.h"

namespace gannet::index {

inline constexpr uint64_t kAbsentBit = rdma::kNotAState;
using rdma::kVersionMask;

constexpr bool IsLocked(uint64_t state) {
  return (state & rdma::kLockBit) != 0;
}
constexpr bool IsAbsent(uint64_t state) {
  return (state & kAbsentBit) != 0;
}
constexpr uint64_t VersionOf(uint64_t state) {
  return state & kVersionMask;
}

// The bits that name a worker in a locked state word.
constexpr uint64_t OwnerBits(rdma::NodeId node, uint16_t channel) {
  return uint64_t{node} << 47 | uint64_t{channel & 0x7fu} << 40;
}
constexpr rdma::NodeId LockOwnerNode(uint64_t state) {
  return static_cast<rdma::NodeId>(state >> 47 & 0x7fff);
}
constexpr uint16_t LockOwnerChannel(uint64_t state) {
  return static_cast<uint16_t>(state >> 40 & 0x7f);
}

// The word that a CAS stores to lock the unlocked `state`.
constexpr uint64_t Locked(uint64_t state, uint64_t owner_bits) {
  return (state & ~OwnerBits(0x7fff, 0x7f)) | rdma::kLockBit | owner_bits;
}
// The unlocked word after an install, present or absent.
constexpr uint64_t NextState(uint64_t state, bool absent) {
  return ((VersionOf(state) + 1) & kVersionMask) | (absent ? kAbsentBit : 0);
}

}  // namespace gannet::index
