// ArtCache: clients' packed copies of inner nodes (art_copy.h) of one owner, by address. A copy has 6 bytes for each
// entry of the node, and about 20 bytes besides its prefix. It may be stale; what it leads to shows that.
//
// Copies lie one behind the other in chunks of memory. One that grows, or goes, leaves a gap. When gaps are more than
// a sixteenth, the copies of the chunk with the most move together, into others.
//
// Not thread-safe: shared_leaf::SharedLeavesOf guards it. Functions that are const may run at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "index/dolphin/art.h"
#include "index/dolphin/art_copy.h"
#include "index/dolphin/inner_node.h"

namespace gannet::index::dolphin {

class ArtCache {
 public:
  explicit ArtCache(size_t max_bytes) : max_bytes_(std::min(max_bytes, kMostBytes)) {}
  ArtCache(const ArtCache&) = delete;
  ArtCache& operator=(const ArtCache&) = delete;

  // A copy, valid until the next change of the cache. nullopt: the node is not in the cache.
  std::optional<ArtCopy> Find(rdma::GlobalAddress node) const;
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

  // `image`: whole. Where a larger child has replaced one that was in the old copy, that one's copy is dropped.
  void Put(const NodeImage& image);
  void Drop(rdma::GlobalAddress node);
  // A node, if it is known, has this entry now, or has not.
  void NoteEntry(rdma::GlobalAddress node, uint64_t entry);
  void NoteNoEntry(rdma::GlobalAddress node, uint64_t entry);

  // Memory of the cache, at most as much as it may take; less than 16 KB: it takes none. Thread-safe.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  size_t nodes() const { return nodes_; }

 private:
  // Where a copy is: number of its chunk, and of its first unit there.
  using Place = uint32_t;
  static constexpr Place kNowhere = 0;  // the first unit of a chunk is not used
  static constexpr size_t kChunkBytes = 8192;
  static constexpr size_t kUnitsOfPlaces = kChunkBytes / ArtCopy::kUnit;
  static constexpr size_t kUnits = kUnitsOfPlaces - 4;  // the allocator needs the rest
  static constexpr size_t kMostBytes = ((uint64_t{1} << 32) - 8 * kUnitsOfPlaces) * ArtCopy::kUnit;
  struct Chunk {
    std::unique_ptr<uint32_t[]> memory;
    size_t filled = 1;  // units
    size_t gaps = 0;    // bytes
  };

  ArtCopy At(Place place) const;
  size_t HomeOf(uint64_t line) const;
  // Where the table has the node, or would have it. The table has a free slot.
  size_t SlotOf(uint64_t line) const;
  // nullopt: the node is not in the cache.
  std::optional<size_t> SlotIfKnown(rdma::GlobalAddress node) const;
  void GrowTable();
  void EraseSlot(size_t slot);
  // Calls edit(at, end, &count) for the entries of a node that is known, from the first whose byte is not less than
  // that of `entry` on. True: they have changed.
  template <class Edit>
  void Change(rdma::GlobalAddress node, uint64_t entry, const Edit& edit);
  // Stores the copy of a node that has this slot, or is to have it.
  void Store(size_t slot, const ArtCopy::Content& content);
  void OpenChunk();
  Place Allocate(size_t bytes);
  void Free(Place place);
  size_t MemoryOfChunks() const { return (chunks_.size() - free_chunks_.size()) * kChunkBytes; }
  bool HasManyGaps() const { return gaps_ > std::max(kChunkBytes / 4, MemoryOfChunks() / 16); }
  // Moves the copies of the chunk with the most gaps, and gives it back.
  void CloseGaps();
  // Gives up nodes that were not used lately, but not this one.
  void MakeRoom(uint64_t line);
  void CountBytes();

  const size_t max_bytes_;
  std::vector<Place> table_;  // by line, with linear probing
  size_t nodes_ = 0;
  size_t hand_ = 0;  // where the search for a victim goes on
  std::vector<Chunk> chunks_;
  std::vector<size_t> free_chunks_;  // that have no memory
  size_t open_ = 0;                  // the chunk that new copies go to
  size_t gaps_ = 0;                  // bytes
  std::atomic<uint64_t> bytes_{0};
};

// The cache as content of SharedLeavesOf. Nodes of both kinds of keys are the same.
template <class Keys>
class ArtCacheOf : public ArtCache {
 public:
  using ArtCache::ArtCache;
};

}  // namespace gannet::index::dolphin
