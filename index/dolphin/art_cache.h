// ArtCache: clients' copies of inner nodes (inner_node.h), by address. A copy has 8 bytes for each entry that the node
// has, in the order of their bytes, and about 56 bytes for the node. It may be stale; what it leads to shows that.
// Not thread-safe: shared_leaf::SharedLeavesOf guards it. Functions that are const may run at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "index/dolphin/art.h"
#include "index/dolphin/inner_node.h"

namespace gannet::index::dolphin {

class ArtCache {
 public:
  // A copy. Valid until the next change of the cache.
  class Node {
   public:
    rdma::GlobalAddress address() const { return rdma::GlobalAddress::FromBits(address_); }
    NodeType type() const { return type_; }
    std::string_view prefix() const { return {reinterpret_cast<const char*>(Words()), prefix_bytes_}; }
    std::span<const uint64_t> entries() const { return {Words() + PrefixWords(), count_}; }
    uint64_t EntryUpTo(int most) const;
    uint64_t EntryFrom(int least) const;

   private:
    friend class ArtCache;
    const uint64_t* Words() const { return reinterpret_cast<const uint64_t*>(this + 1); }
    uint64_t* Words() { return reinterpret_cast<uint64_t*>(this + 1); }
    uint64_t* Entries() { return Words() + PrefixWords(); }
    size_t PrefixWords() const { return (prefix_bytes_ + kWordBytes - 1) / kWordBytes; }
    size_t LowerBound(int byte) const;

    uint64_t address_;
    uint64_t state_;
    uint16_t count_;
    uint16_t capacity_;  // of entries
    uint8_t prefix_bytes_;
    NodeType type_;
    mutable uint8_t used_;  // since the last search for a victim; atomic
    uint8_t spare_;
  };

  explicit ArtCache(size_t max_bytes) : max_bytes_(max_bytes) {}
  ~ArtCache();
  ArtCache(const ArtCache&) = delete;
  ArtCache& operator=(const ArtCache&) = delete;

  // Null: the node is not in the cache.
  const Node* Find(rdma::GlobalAddress node) const;
  // Goes on with a way as far as copies lead. True: it has come to its end. False: the way's next() is to be READ.
  bool Go(ArtWay* way) const;
  // The deepest node known whose prefix `key` has; nullopt: not even the root is known.
  std::optional<NodeRef> DeepestFor(rdma::GlobalAddress root, std::string_view key) const;

  // A free entry, perhaps, for a leaf with this low fence, in a node that needs no other change for it. If entries of
  // the node were never removed, it is the one that a copy of this age has free.
  struct FreeEntry {
    NodeRef node;
    uint64_t state = 0;
    size_t prefix_bytes = 0;
    int slot = 0;
  };
  std::optional<FreeEntry> FreeEntryFor(rdma::GlobalAddress root, std::string_view low) const;

  struct Leaf {
    rdma::GlobalAddress address;
    ByteKey low;  // that it has, if the entry is right
  };
  // The leaf of the key and those that follow it in the tree, or precede it, as far as copies lead; at most `most`.
  // `below`: as ArtWay.
  void LeavesFrom(rdma::GlobalAddress root, std::string_view key, bool below, bool reverse, size_t most,
                  std::vector<Leaf>* leaves) const;

  // `image`: whole.
  void Put(const NodeImage& image);
  void Drop(rdma::GlobalAddress node);
  // A node, if it is known, has this entry now, or has not.
  void NoteEntry(rdma::GlobalAddress node, uint64_t entry);
  void NoteNoEntry(rdma::GlobalAddress node, uint64_t entry);

  // Memory of the cache. Thread-safe.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  size_t nodes() const { return nodes_; }

 private:
  static Node* NewNode(size_t prefix_bytes, size_t entries);
  // Bytes that the allocator takes for a node.
  static size_t BytesOf(const Node& node);
  size_t HomeOf(uint64_t address) const;
  // Where the node is in the table, or would be added. The table has a free place.
  size_t PlaceOf(uint64_t address) const;
  void EraseAt(size_t place);
  void Replace(size_t place, Node* node);
  void Grow();
  // Gives up nodes that were not used lately, but not this one.
  void MakeRoom(uint64_t address);
  void AddBytes(int64_t bytes) { bytes_.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed); }

  const size_t max_bytes_;
  std::vector<Node*> table_;  // by address, with linear probing; null: free
  size_t nodes_ = 0;
  size_t hand_ = 0;  // where the search for a victim goes on
  std::atomic<uint64_t> bytes_{0};
};

// The cache as content of SharedLeavesOf. Nodes of both kinds of keys are the same.
template <class Keys>
class ArtCacheOf : public ArtCache {
 public:
  using ArtCache::ArtCache;
};

}  // namespace gannet::index::dolphin
