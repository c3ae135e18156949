// CoolingMap: the copies that may be evicted soon, in the order in which they were chosen (DEX, 5.2). A bucket is one
// line: a latch, and a queue of six. So threads that cool and evict seldom meet in one line, as they would at the ends
// of one queue; the order is kept within each bucket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bulk_memory.h"
#include "base/cache_line.h"
#include "base/random.h"
#include "index/dex/cache/frames.h"
#include "index/dex/cache/mapping_table.h"

namespace gannet::index::dex {

// Thread-safe.
class CoolingMap {
 public:
  static constexpr size_t kPerBucket = 6;

  // For `most` copies. `one_latch`: PageCacheOptions::one_cooling_latch.
  explicit CoolingMap(size_t most, bool one_latch = false)
      : buckets_(most / kPerBucket + 1), one_latch_(one_latch), memory_(buckets_ * kLineBytes) {}

  size_t bytes() const { return memory_.size(); }
  size_t buckets() const { return buckets_; }

  // Adds the frame to the bucket of its node. If the bucket is full, the frame that came first leaves it, and is
  // returned; else kNoFrame. A frame that is there already stays where it is.
  FrameId Push(uint64_t node, FrameId frame) {
    std::byte* const line = LineOf(BucketOf(node));
    const WordLatch latch(LatchOf(line));
    Queue queue = Load(line);
    for (size_t i = 0; i < queue.size; ++i) {
      if (queue.frames[i] == frame) return kNoFrame;
    }
    FrameId first = kNoFrame;
    if (queue.size == kPerBucket) first = queue.TakeAt(0);
    queue.frames[queue.size++] = frame;
    Store(line, queue);
    return first;
  }
  // The frame that is in this bucket for the longest time leaves it; kNoFrame: it is empty.
  FrameId Pop(size_t bucket) {
    std::byte* const line = LineOf(bucket);
    if (LoadWord(line + kWordBytes) == 0) return kNoFrame;
    const WordLatch latch(LatchOf(line));
    Queue queue = Load(line);
    if (queue.size == 0) return kNoFrame;
    const FrameId first = queue.TakeAt(0);
    Store(line, queue);
    return first;
  }
  // The frame leaves the bucket of its node, if it is there.
  void Remove(uint64_t node, FrameId frame) {
    std::byte* const line = LineOf(BucketOf(node));
    const WordLatch latch(LatchOf(line));
    Queue queue = Load(line);
    for (size_t i = 0; i < queue.size; ++i) {
      if (queue.frames[i] != frame) continue;
      queue.TakeAt(i);
      Store(line, queue);
      return;
    }
  }

 private:
  struct Queue {
    std::array<FrameId, kPerBucket> frames;
    size_t size = 0;

    FrameId TakeAt(size_t i) {
      const FrameId taken = frames[i];
      for (; i + 1 < size; ++i) frames[i] = frames[i + 1];
      --size;
      return taken;
    }
  };
  // Words 1 to 6: the number of a frame, and 1; 0 from the end of the queue on.
  static Queue Load(const std::byte* line) {
    Queue queue;
    for (; queue.size < kPerBucket; ++queue.size) {
      const uint64_t word = LoadWord(line + (1 + queue.size) * kWordBytes);
      if (word == 0) break;
      queue.frames[queue.size] = static_cast<FrameId>(word - 1);
    }
    return queue;
  }
  static void Store(std::byte* line, const Queue& queue) {
    for (size_t i = 0; i < kPerBucket; ++i) {
      StoreWord(line + (1 + i) * kWordBytes, i < queue.size ? uint64_t{queue.frames[i]} + 1 : 0);
    }
  }
  size_t BucketOf(uint64_t node) const {
    return static_cast<size_t>(static_cast<unsigned __int128>(Mix64(node)) * buckets_ >> 64);
  }
  std::byte* LineOf(size_t bucket) const { return memory_.data() + bucket * kLineBytes; }

  std::byte* LatchOf(std::byte* line) const { return one_latch_ ? memory_.data() : line; }

  size_t buckets_;
  bool one_latch_;
  BulkMemory memory_;
};

}  // namespace gannet::index::dex
