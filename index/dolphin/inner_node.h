// The inner node of Dolphin (MSST'24, III-A1): a node of an adaptive radix tree (art.h), in the owner's memory.
//
//   line 0          | state | shape | 8 spare | prefix, 40 bytes |
//   [ line 1        | number | 24 bytes more of the prefix | 32 spare | ]      if keys may have more than 40 bytes
//   entry lines     | number | 7 entries |                                     1, 2, 8 or 37 lines
//
//   state    lock word (lock_word.h), never locked: version while the node lives; "absent" and the next version, when
//   it
//            is dead. A node is dead for good; its block may become another one.
//   number   of a line: the state, marked with kNotAState. So lines of one life of the block agree.
//   shape    type (bits 0 to 7), bytes of the prefix (bits 8 to 15)
//   prefix   what all keys below the node begin with. At most kMostPrefix bytes, and longer than that of the parent.
//   entry    | mark 1 | type of the child 3, 0: leaf | byte + 1, 9 bits | more, 9 bits | line of the child 42 |
//            Without the mark the entry is free; then it has the number of the line, without its mark. So a late CAS
//            that was meant for an earlier life of the block fails. "more": for a leaf 0, or one more byte + 1. For an
//            inner node its life: bits of its version, so a late CAS that was meant for an earlier node in the same
//            block, with the same byte, fails, too. Line: offset / 64.
//
// An entry for a leaf says what the low fence of the leaf is: prefix, byte, and one more byte, if there is one; or the
// prefix alone, if "byte + 1" is 0. (With one byte less in the entries, most leaves of random keys would take a node of
// their own, whenever the number of leaves is near to a power of 256.) Each leaf has one entry. (The paper's nodes also
// have entries for the leaf that is left of all of the node. They become wrong when that leaf is split, and the way to
// the left, which a reader knows, leads to it too: art.h.) Entries are in no order, except that in the largest type
// entry n has "byte + 1" = n.
//
// While a node lives, its shape and its prefix stay; entries change by CAS, one by one. No node is locked. Nothing in a
// node is trusted, and nothing depends on it: the fences of leaves decide.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/cache_line.h"
#include "index/lock_word.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "rdma/global_address.h"

namespace gannet::index::dolphin {

using shared_leaf::ByteKey;
using shared_leaf::CommonBytes;
using shared_leaf::LeafLook;

// 0 for a leaf, 1 to kLargestNode for nodes of more and more entries.
using NodeType = uint8_t;
inline constexpr NodeType kLeafType = 0;
inline constexpr NodeType kSmallestNode = 1;
inline constexpr NodeType kLargestNode = 4;
inline constexpr size_t kNodeTypes = 4;
inline constexpr int kEntriesPerLine = 7;
inline constexpr std::array<int, kLargestNode + 1> kNodeEntries = {0, 7, 14, 56, 259};

inline constexpr int kMostByte = 256;  // of "byte + 1"
inline constexpr size_t kHeadPrefixBytes = 40;
inline constexpr size_t kLinePrefixBytes = 24;
inline constexpr size_t kMostPrefix = kShortKeyBytes - 1;

// Further lines for the prefix in the nodes of an index.
constexpr size_t PrefixLinesFor(size_t max_key_bytes) {
  return max_key_bytes > kHeadPrefixBytes ? 1 : 0;
}
constexpr size_t NodeBytes(NodeType type, size_t prefix_lines) {
  return (1 + prefix_lines + static_cast<size_t>(kNodeEntries[type] / kEntriesPerLine)) * kLineBytes;
}
inline constexpr size_t kMostNodeBytes = NodeBytes(kLargestNode, 1);
// Place of an entry in a node.
constexpr size_t EntryOffset(size_t prefix_lines, int slot) {
  const auto line = 1 + prefix_lines + static_cast<size_t>(slot / kEntriesPerLine);
  return line * kLineBytes + static_cast<size_t>(1 + slot % kEntriesPerLine) * kWordBytes;
}
inline constexpr size_t kShapeOffset = 1 * kWordBytes;
inline constexpr size_t kPrefixOffset = 3 * kWordBytes;

struct NodeRef {
  rdma::GlobalAddress address;
  NodeType type = kLeafType;
  friend bool operator==(const NodeRef&, const NodeRef&) = default;
};
// The reverse pointer of a leaf (III-A2): the node that has its entry, as one word. A null node: the word names none.
inline uint64_t ReversePointer(const NodeRef& node) {
  return node.address.bits() | node.type;
}
inline NodeRef NodeOfReversePointer(uint64_t word) {
  const auto type = static_cast<NodeType>(word % kLineBytes);
  if (type < kSmallestNode || type > kLargestNode) return {};
  return {rdma::GlobalAddress::FromBits(word - type), type};
}

// "Byte + 1" of a key behind its first `at` bytes; 0 if it ends there.
constexpr int ByteAt(std::string_view key, size_t at) {
  return at == key.size() ? 0 : static_cast<unsigned char>(key[at]) + 1;
}

constexpr int ByteOf(uint64_t entry) {
  return static_cast<int>(entry >> 51 & 0x1ff);
}
constexpr int MoreOf(uint64_t entry) {
  return static_cast<int>(entry >> 42 & 0x1ff);
}
constexpr NodeType TypeOf(uint64_t entry) {
  return static_cast<NodeType>(entry >> 60 & 7);
}
constexpr uint64_t OffsetOf(uint64_t entry) {
  return entry % (uint64_t{1} << 42) * kLineBytes;
}
constexpr NodeRef ChildOf(uint64_t entry, rdma::NodeId owner) {
  return {{owner, OffsetOf(entry)}, TypeOf(entry)};
}
constexpr uint64_t EntryWord(const NodeRef& child, int byte, int more = 0) {
  return uint64_t{1} << 63 | uint64_t{child.type} << 60 | static_cast<uint64_t>(byte) << 51 |
         static_cast<uint64_t>(more) << 42 | child.address.offset() / kLineBytes;
}
// False: it is free, or nobody who keeps the rules has written it.
constexpr bool IsEntry(uint64_t word) {
  const bool is_node = TypeOf(word) != kLeafType;
  return word >> 63 == 1 && TypeOf(word) <= kLargestNode && ByteOf(word) <= kMostByte && OffsetOf(word) != 0 &&
         (is_node || MoreOf(word) == 0 || (MoreOf(word) <= kMostByte && ByteOf(word) > 0));
}
// Bytes of a low fence behind the prefix of a node that an entry has room for.
inline constexpr size_t kEntryBytes = 2;
// The entry for a leaf with this low fence, in a node with a prefix of so many bytes.
constexpr uint64_t LeafEntry(rdma::GlobalAddress leaf, std::string_view low, size_t prefix_bytes) {
  return EntryWord({leaf, kLeafType}, ByteAt(low, prefix_bytes),
                   low.size() == prefix_bytes + kEntryBytes ? ByteAt(low, prefix_bytes + 1) : 0);
}
// The low fence of a leaf with this entry, in a node with this prefix, of at most kMostPrefix bytes.
ByteKey LowOf(std::string_view prefix, uint64_t entry);

// The entry of a node with the greatest byte that is at most `most`, or with the least that is at least `least`; 0:
// there is none. Of several with one byte, the first counts. load(slot) returns an entry.
template <class Load>
uint64_t FindUpTo(NodeType type, int most, const Load& load) {
  uint64_t found = 0;
  if (type == kLargestNode) {
    for (int byte = most; byte >= 0; --byte) {
      const uint64_t word = load(byte);
      if (IsEntry(word) && ByteOf(word) == byte) return word;
    }
    return 0;
  }
  int best = -1;
  for (int slot = 0; slot < kNodeEntries[type]; ++slot) {
    const uint64_t word = load(slot);
    const int byte = ByteOf(word);
    if (byte > most || byte <= best || !IsEntry(word)) continue;
    if (byte == most) return word;
    best = byte;
    found = word;
  }
  return found;
}
template <class Load>
uint64_t FindFrom(NodeType type, int least, const Load& load) {
  uint64_t found = 0;
  if (type == kLargestNode) {
    for (int byte = least; byte <= kMostByte; ++byte) {
      const uint64_t word = load(byte);
      if (IsEntry(word) && ByteOf(word) == byte) return word;
    }
    return 0;
  }
  int best = kMostByte + 1;
  for (int slot = 0; slot < kNodeEntries[type]; ++slot) {
    const uint64_t word = load(slot);
    if (!IsEntry(word) || ByteOf(word) < least || ByteOf(word) >= best) continue;
    best = ByteOf(word);
    found = word;
  }
  return found;
}

// A private copy of a node.
class NodeImage {
 public:
  // Begins a copy: size() bytes of what is at `ref` go to data().
  void Expect(const NodeRef& ref, size_t prefix_lines) {
    ref_ = ref;
    prefix_lines_ = prefix_lines;
  }
  // Begins a new node without entries in a dead block, whose state is `last_word`.
  void Make(const NodeRef& ref, size_t prefix_lines, uint64_t last_word, std::string_view prefix);
  // Judges the copy: kWhole, kDead or kTorn. If it is kWhole, prefix() is set.
  LeafLook Look();

  const NodeRef& ref() const { return ref_; }
  rdma::GlobalAddress address() const { return ref_.address; }
  NodeType type() const { return ref_.type; }
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(words_.data()); }
  size_t size() const { return NodeBytes(ref_.type, prefix_lines_); }
  size_t prefix_lines() const { return prefix_lines_; }

  uint64_t state() const { return words_[0]; }
  // The state of the node when it is dead.
  uint64_t dead_state() const { return NextState(state(), /*absent=*/true); }
  std::string_view prefix() const { return prefix_.view(); }
  int slots() const { return kNodeEntries[ref_.type]; }
  uint64_t word(int slot) const { return words_[EntryOffset(prefix_lines_, slot) / kWordBytes]; }
  void set_word(int slot, uint64_t word) { words_[EntryOffset(prefix_lines_, slot) / kWordBytes] = word; }
  rdma::GlobalAddress AddressOf(int slot) const { return ref_.address + EntryOffset(prefix_lines_, slot); }
  // A free entry of this node has this word.
  uint64_t free_word() const { return VersionOf(state()); }

  uint64_t EntryUpTo(int most) const {
    return FindUpTo(ref_.type, most, [this](int slot) { return word(slot); });
  }
  uint64_t EntryFrom(int least) const {
    return FindFrom(ref_.type, least, [this](int slot) { return word(slot); });
  }
  // Calls visit(entry) for the entries that count, by their bytes.
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (int least = 0; least <= kMostByte;) {
      const uint64_t entry = EntryFrom(least);
      if (entry == 0) return;
      visit(entry);
      least = ByteOf(entry) + 1;
    }
  }
  // The same for all entries, also those that do not count, in no order.
  template <class Visit>
  void ForEachSlot(const Visit& visit) const {
    for (int slot = 0; slot < slots(); ++slot) {
      if (IsEntry(word(slot))) visit(word(slot));
    }
  }
  // The slot of the byte's entry; -1: there is none.
  int SlotOf(int byte) const;
  // The slot where an entry for a byte that has none may go. -1: the node is full. Of two entries for a byte, the one
  // that does not count now may be the one that stays (ArtEditor::Swap), so its slot is not free.
  int FreeSlot(int byte) const;
  // Number of entries for a byte. More than one: only the first counts.
  int Has(int byte) const;
  // Number of entries that count.
  int count() const;
  // Adds an entry for a byte that has none. False: the node is full.
  bool Add(uint64_t entry);
  // Adds the entries that count in another node. This one is empty and has room for them.
  void AddAll(const NodeImage& from);

 private:
  NodeRef ref_;
  size_t prefix_lines_ = 0;
  ByteKey prefix_;
  std::array<uint64_t, kMostNodeBytes / kWordBytes> words_;
};

// The entry for an inner node, which is alive. Each life of a block raises its version by two.
inline uint64_t NodeEntry(const NodeImage& child, int byte) {
  return EntryWord(child.ref(), byte, static_cast<int>(VersionOf(child.state()) >> 1 & 0x1ff));
}

// Copies the node in this node's own memory, by its CPU, and judges it.
LeafLook LoadNode(const std::byte* memory, NodeImage* image);
// Stores a new node into its block by the owner's CPU. Only the caller uses the block. Its state comes last.
void StoreNode(const NodeImage& image, std::byte* memory);

// The bytes by which the tree knows an integer key: big-endian, without the zeros at the end. Their order is that of
// the numbers.
ByteKey ArtKeyOf(uint64_t key);
// The integer key of these bytes.
uint64_t IntegerOf(std::string_view bytes);

}  // namespace gannet::index::dolphin
