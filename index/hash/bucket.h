// A bucket: one 64-byte line, so one cache miss for the owner and one READ for a client.
//
//   word 0      head: version, bit 63 = locked. Overflow: the version of its head when the chain last changed (stamp).
//   word 1      link: | depth 16 | offset of the next bucket of the chain, a multiple of 64 (42 bits) | flags 6 |
//   words 2..7  slots, each | tag 16 | offset of the record in this node's memory 48 |; 0 = empty
//
// A bucket of the table is the head of a chain; further slots are in overflow buckets from the slab. Slots are dense:
// in chain order, no empty slot comes before a used one.
//
// What a racing reader may see. A writer locks the head's version (CAS), marks each overflow bucket that it changes
// with kLineBusy, changes it, stamps *all* overflow buckets of the chain with version + 1, and stores version + 1 in
// the head. Therefore
//   - the owner's CPU, which loads the head's version, the chain, and the head's version again, has seen one state of
//     the chain if both are equal and not locked;
//   - a client, which READs the head and then the overflow buckets one by one, has seen one state of the chain if the
//     head was not locked and every overflow bucket carries exactly the head's version: the contents that a bucket had
//     under a stamp never change while it keeps that stamp. A chain that changed between two READs has a newer stamp. A
//     bucket that left the chain is not reused while readers may hold its address (epoch.h).
//
// The exception is Replace, which changes one slot of an existing key in place and keeps the version. It is one word,
// so readers see the old record or the new one.
//
// An overflow bucket comes from the size class of one line in the read-only part, where no records lie, and returns
// there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "base/keyed_hash.h"
#include "index/key.h"
#include "rdma/global_address.h"
#include "rdma/versioned.h"

namespace gannet::index::hash {

inline constexpr int kSlots = 6;
// Length of a chain, head included, for which code reserves room, and up to which a client READs it before it asks the
// owner. Chains may be longer.
inline constexpr int kUsualChain = 32;
// Doublings of the table, limited by the bits of `path`.
inline constexpr int kMaxDepth = 16;

// Three independent parts of a key's hash.
struct KeyHash {
  uint64_t bits;

  // Picks one of the table's first `buckets` buckets, buckets < 2^32 (Lemire's multiplication: the high bits decide).
  uint64_t Reduce(uint64_t buckets) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * buckets) >> 64);
  }
  // The tag is never 0, so that it never matches an empty slot.
  uint64_t tag() const {
    const uint64_t tag = bits >> 16 & 0xffff;
    return tag != 0 ? tag : 1;
  }
  // The bits of the path, from the lowest, decide to which bucket the key goes when its bucket splits.
  uint32_t path() const { return bits & 0xffff; }
};

// `keyed` belongs to the index; clients get its seed from the owner (hash_rpc.h).
inline KeyHash HashOf(const KeyedHash& keyed, const Key& key) {
  return {key.kind() == KeyKind::kInteger ? keyed(key.integer()) : keyed(key.bytes())};
}

// The functions below are for slots.
inline uint64_t MakeSlot(KeyHash hash, uint64_t record_offset) {
  return hash.tag() << 48 | record_offset;
}
constexpr uint64_t TagOf(uint64_t slot) {
  return slot >> 48;
}
constexpr uint64_t RecordOffsetOf(uint64_t slot) {
  return slot & rdma::GlobalAddress::kOffsetMask;
}

// The definitions below are for link words.
inline constexpr uint64_t kLinkFlags = 63;
inline constexpr uint64_t kAmbiguous = 1;      // in a head: two slots of the chain have the same tag
inline constexpr uint64_t kOverflowMark = 63;  // in an overflow bucket: always
constexpr uint64_t MakeLink(int depth, uint64_t next_offset, uint64_t flags) {
  return static_cast<uint64_t>(depth) << 48 | next_offset | flags;
}
constexpr int DepthOf(uint64_t link) {
  return static_cast<int>(link >> 48);
}
constexpr uint64_t NextOf(uint64_t link) {
  return link & rdma::GlobalAddress::kOffsetMask & ~kLinkFlags;
}

// Addresses within a bucket (in shared memory, or in the buffer of a READ).
inline std::byte* LinkWord(std::byte* bucket) {
  return bucket + kWordBytes;
}
inline std::byte* SlotWord(std::byte* bucket, int slot) {
  return bucket + (2 + slot) * kWordBytes;
}
inline uint64_t LoadLink(const std::byte* bucket) {
  return LoadWord(bucket + kWordBytes);
}
inline uint64_t LoadSlot(const std::byte* bucket, int slot) {
  return LoadWord(bucket + (2 + slot) * kWordBytes);
}

// Bit i is set if slot i has the tag.
inline uint32_t MatchTag(const std::byte* bucket, uint64_t tag) {
  uint32_t matches = 0;
#pragma GCC unroll 6
  for (int i = 0; i < kSlots; ++i) matches |= static_cast<uint32_t>(TagOf(LoadSlot(bucket, i)) == tag) << i;
  return matches;
}

}  // namespace gannet::index::hash
