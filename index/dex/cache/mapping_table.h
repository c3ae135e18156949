// MappingTable: where the page cache has the copy of a node (DEX, 5.1). One line for each bucket: a latch, and up to
// seven entries. Readers take no latch: an entry is one word, and the frame tells its node.
//
// An entry can also say that a copy is coming (the I/O flag of 5.4). It is exclusive, as a frame is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bulk_memory.h"
#include "base/cache_line.h"
#include "base/random.h"
#include "index/dex/cache/frames.h"

namespace gannet::index::dex {

// A latch in a word of its own, for a few instructions.
class WordLatch {
 public:
  explicit WordLatch(void* word) : word_(word) {
    TakeLine(word_);
    while (CompareAndSwapWord(word_, 0, 1) != 0) CpuRelax();
  }
  ~WordLatch() { StoreWord(word_, 0); }
  WordLatch(const WordLatch&) = delete;
  WordLatch& operator=(const WordLatch&) = delete;

 private:
  void* const word_;
};

// In the place of a frame: a copy is coming. No frame has this number.
inline constexpr FrameId kComing = kNoFrame - 1;

// Thread-safe.
class MappingTable {
 public:
  // For `nodes` nodes, and at least half as many again.
  explicit MappingTable(size_t nodes) : buckets_(nodes / 4 + 1), memory_(buckets_ * kLineBytes) {}

  size_t bytes() const { return memory_.size(); }

  // The frame of the node, which may be latched now, or have another node soon; or kComing; kNoFrame: there is none.
  FrameId Find(uint64_t node) const {
    const Bucket bucket = BucketOf(node);
    for (size_t i = 1; i <= kEntries; ++i) {
      const uint64_t entry = LoadWord(bucket.line + i * kWordBytes);
      if (entry >> 32 == bucket.tag && IdIn(entry) != kNoFrame) return IdIn(entry);
    }
    return kNoFrame;
  }

  // False: the node has a frame, or one is coming; or the bucket is full. `announced`: the caller has inserted kComing
  // for the node, in whose place the frame comes.
  bool Insert(uint64_t node, FrameId frame, bool announced = false) {
    const Bucket bucket = BucketOf(node);
    const WordLatch latch(bucket.line);
    size_t free = 0;
    for (size_t i = 1; i <= kEntries; ++i) {
      const uint64_t entry = LoadWord(bucket.line + i * kWordBytes);
      if (IdIn(entry) == kNoFrame) {
        if (!announced) free = i;
      } else if (entry >> 32 == bucket.tag) {
        if (!announced || IdIn(entry) != kComing) return false;
        free = i;
      }
    }
    if (free == 0) return false;
    StoreWord(bucket.line + free * kWordBytes, EntryFor(bucket, frame));
    return true;
  }

  // Does nothing if the node has another frame, or none.
  void Erase(uint64_t node, FrameId frame) {
    const Bucket bucket = BucketOf(node);
    const WordLatch latch(bucket.line);
    for (size_t i = 1; i <= kEntries; ++i) {
      std::byte* const at = bucket.line + i * kWordBytes;
      if (LoadWord(at) == EntryFor(bucket, frame)) StoreWord(at, 0);
    }
  }

 private:
  static constexpr size_t kEntries = kLineBytes / kWordBytes - 1;

  // Entries: | tag: hash of the node, 32 | number of the frame, and 1; 0: none |. Two nodes of a bucket with one tag
  // exclude each other, which costs a copy of one of them.
  struct Bucket {
    std::byte* line;
    uint64_t tag;
  };
  Bucket BucketOf(uint64_t node) const {
    const uint64_t hash = Mix64(node);
    const auto bucket = static_cast<size_t>(static_cast<unsigned __int128>(hash) * buckets_ >> 64);
    return {memory_.data() + bucket * kLineBytes, hash & 0xffffffff};
  }
  static uint64_t EntryFor(const Bucket& bucket, FrameId frame) { return bucket.tag << 32 | (frame + 1); }
  static FrameId IdIn(uint64_t entry) { return static_cast<FrameId>(entry) - 1; }

  size_t buckets_;
  BulkMemory memory_;
};

}  // namespace gannet::index::dex
