// A node of an R-tree in registered memory: a versioned object (rdma/versioned.h).
//
//   data word 0        | level (8) | dead (8) | count (16) | 0 (32) |      level 0: a leaf
//   then each entry    min_x, min_y, max_x, max_y, id, target               48 bytes
//
//   leaf          the rectangle and id of a key, and the bits of its record's address
//   inner node    a rectangle that contains all of the child's, the largest Hilbert value below (Hilbert variant, else
//                 0), and the offset of the child in the owner's memory
//
// The state word is the node's version, with the lock bit while it is being written. It is the node's witness word and
// changes with every write but that of LocalIndex::Replace, which stores one word and changes no key.
//
// What a racing reader may conclude. A consistent image (IsConsistentImage) is the node as it was at one moment. Blocks
// of a tree stay nodes of that tree (block_pool.h), and the root stays where it is. So an image at a stale address is a
// node: dead, or reused at any place of the tree. A reader believes it only as part of a set whose words are later
// found unchanged, together with that of the parent that led to it (tree.h says why this suffices). Entries beyond the
// count are undefined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/runtime.h"
#include "index/catfish/catfish.h"
#include "index/rectangle.h"
#include "rdma/versioned.h"

namespace gannet::index::catfish {

struct Entry {
  Rectangle box;
  uint64_t id = 0;
  uint64_t target = 0;
};
static_assert(sizeof(Entry) == 48, "as it lies in registered memory");

// Levels are less than this. 2^64 keys in nodes of two entries would need 64.
inline constexpr uint8_t kMaxLevels = 64;

struct NodeHead {
  uint8_t level = 0;
  bool dead = false;  // no longer, or not yet, part of the tree
  uint16_t count = 0;

  constexpr uint64_t Pack() const { return uint64_t{level} | uint64_t{dead} << 8 | uint64_t{count} << 16; }
  static constexpr NodeHead Unpack(uint64_t word) {
    return {.level = static_cast<uint8_t>(word),
            .dead = (word >> 8 & 0xff) != 0,
            .count = static_cast<uint16_t>(word >> 16)};
  }
};

// Byte layout of the nodes of one tree.
struct NodeLayout {
  explicit NodeLayout(uint32_t most_entries)
      : capacity(most_entries),
        lines(rdma::LinesFor(kWordBytes + most_entries * sizeof(Entry))),
        bytes(lines * kLineBytes) {}

  static constexpr size_t kHeadPlace = rdma::PlaceOf(0);
  // Data offset of an entry.
  static constexpr size_t EntryAt(size_t i) { return kWordBytes + i * sizeof(Entry); }
  // Offset from the node's start of the target of an entry.
  static constexpr size_t TargetPlace(size_t i) { return rdma::PlaceOf(EntryAt(i) + offsetof(Entry, target)); }

  uint32_t capacity;
  size_t lines;
  size_t bytes;
};

inline constexpr uint32_t kMostEntries = kMaxCatfishNodeEntries;

// A private copy of a node.
struct NodeCopy {
  NodeCopy() {}  // NOLINT: leaves the entries uninitialised, up to 6 KB

  std::span<const Entry> entries() const { return {slots, head.count}; }

  uint64_t state = 0;
  NodeHead head{};
  union {
    Entry slots[kMostEntries];  // the first head.count of them
  };
};

// What copying the entries of a node and looking at them takes, without the miss.
inline void ChargeEntries(const NodeCopy& node) {
  Charge(Cost::kRecordLine, rdma::LinesFor(NodeLayout::EntryAt(node.head.count)));
}

// The smallest rectangle that contains all of `entries`, which are not none.
inline Rectangle BoxOf(std::span<const Entry> entries) {
  Rectangle box = entries.front().box;
  for (const Entry& entry : entries) box = box.Union(entry.box);
  return box;
}

// A node in the owner's memory.
class Node {
 public:
  Node(std::byte* at, const NodeLayout* layout) : at_(at), layout_(layout) {}

  std::byte* at() const { return at_; }
  uint64_t state() const { return LoadWord(at_); }

  // Copies the node. False: it is locked, or changed meanwhile.
  bool TryCopy(NodeCopy* copy) const {
    copy->state = state();
    if ((copy->state & rdma::kLockBit) != 0) return false;
    copy->head = NodeHead::Unpack(LoadWord(at_ + NodeLayout::kHeadPlace));
    if (copy->head.count > layout_->capacity) return false;  // a writer is in between, or the state has changed
    rdma::CopyOut(at_, NodeLayout::EntryAt(0), std::as_writable_bytes(std::span(copy->slots, copy->head.count)));
    PreemptionPoint();
    return state() == copy->state;
  }
  // Copies one entry, as TryCopy does, of a node that has it.
  bool TryCopyEntry(size_t i, Entry* entry, uint64_t* state) const {
    return rdma::TryReadLocal(at_, NodeLayout::EntryAt(i), std::as_writable_bytes(std::span(entry, 1)), state);
  }

  // The functions below are for threads that keep other writers away: by the node's lock or by the tree's.

  NodeHead head() const { return NodeHead::Unpack(LoadWord(at_ + NodeLayout::kHeadPlace)); }
  Entry entry(size_t i) const {
    Entry entry;
    rdma::CopyOut(at_, NodeLayout::EntryAt(i), std::as_writable_bytes(std::span(&entry, 1)));
    return entry;
  }
  // Sets the lock bit if the state is still `state` (unlocked).
  bool TryLock(uint64_t state) const { return CompareAndSwapWord(at_, state, state | rdma::kLockBit) == state; }
  // Unlocks a node that was not changed.
  void Unlock(uint64_t state) const { StoreWord(at_, state); }

  // A write, of a node whose state word is locked: any number of Sets between Begin and Publish.
  void Begin() const {
    GANNET_CHECK((state() & rdma::kLockBit) != 0, "a node in state %x is written without its lock", state());
    rdma::BeginWrite(at_, layout_->lines);
  }
  void Set(size_t i, const Entry& entry) const {
    rdma::CopyIn(at_, NodeLayout::EntryAt(i), std::as_bytes(std::span(&entry, 1)));
  }
  void Set(const NodeHead& head) const { StoreWord(at_ + NodeLayout::kHeadPlace, head.Pack()); }
  void Publish(uint64_t state) const { rdma::EndWrite(at_, layout_->lines, state); }

 private:
  std::byte* at_;
  const NodeLayout* layout_;
};

}  // namespace gannet::index::catfish
