// Frames: the memory of a page cache, for copies of nodes. The memory is cut into blocks of 1,536 bytes, and a block
// into frames of one size. So a block that held eight copies of inner nodes can hold four leaves later.
//
// Threads read a frame while others write it, without a lock (DEX, 5.1; an optimistic lock, as in LeanStore):
//
//   FrameLook look;                                 // false: somebody writes it, or nothing is in it
//   if (!frames.Look(id, &look)) ...
//   <load words of look.frame by LoadWord>
//   if (!frames.Unchanged(look)) <forget what was loaded>
//
// A block's word tells the size of its frames, and changes whenever that does; so a reader never takes the content of
// one frame for the head of another. A frame's word tells what it holds; its version is greater after each change.
// Memory stays memory of frames: a reader that comes late reads something, but nothing that is not there.
//
// Who changes a frame holds its latch, which is only tried. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bulk_memory.h"
#include "base/cache_line.h"
#include "base/thread.h"

namespace gannet::index::dex {

// Place of a frame in the memory, in units of 64 bytes.
using FrameId = uint32_t;
inline constexpr FrameId kNoFrame = UINT32_MAX;

enum class FrameSize : uint8_t { k192, k256, k384, k512, k768 };
inline constexpr size_t kFrameSizes = 5;
constexpr size_t BytesOf(FrameSize size) {
  constexpr std::array<size_t, kFrameSizes> kBytes = {192, 256, 384, 512, 768};
  return kBytes[static_cast<size_t>(size)];
}

// What a frame holds.
struct FrameWord {
  static constexpr uint64_t kLatched = 1;
  static constexpr uint64_t kLive = 2;     // a copy of a node
  static constexpr uint64_t kCooling = 4;  // which may be evicted soon
  static constexpr uint64_t kKept = 8;     // of a leaf that is to be unlocked when its copy goes (claim/claim.h)
  static constexpr uint64_t kVersion = 16;
  static constexpr uint64_t kState = kLive | kCooling | kKept;

  uint64_t bits = 0;

  bool latched() const { return (bits & kLatched) != 0; }
  bool live() const { return (bits & kLive) != 0; }
  bool cooling() const { return (bits & kCooling) != 0; }
  bool kept() const { return (bits & kKept) != 0; }
  // Somebody changes the copy of a kept leaf.
  bool kept_and_latched() const { return kept() && latched(); }
};

// The beginning of every frame. Its words are loaded and stored by LoadWord and StoreWord.
struct FrameHead {
  uint64_t word = 0;   // FrameWord
  uint64_t node = 0;   // the address of the node
  uint64_t place = 0;  // Place
};
inline constexpr size_t kFrameHeadWords = sizeof(FrameHead) / kWordBytes;

// Where a copy belongs.
struct Place {
  FrameId parent = kNoFrame;  // that leads to this frame, or led to it
  uint16_t tree = 0;
  uint8_t level = 0;     // 0: a leaf
  uint8_t children = 0;  // of an inner node

  uint64_t Pack() const {
    return uint64_t{parent} | uint64_t{tree} << 32 | uint64_t{level} << 48 | uint64_t{children} << 56;
  }
  static Place Unpack(uint64_t bits) {
    return {.parent = static_cast<FrameId>(bits),
            .tree = static_cast<uint16_t>(bits >> 32),
            .level = static_cast<uint8_t>(bits >> 48),
            .children = static_cast<uint8_t>(bits >> 56)};
  }
};

// A frame that is read.
struct FrameLook {
  const std::byte* frame = nullptr;
  const std::byte* block = nullptr;  // its word
  uint64_t block_word = 0;
  FrameWord word;

  const FrameHead* head() const { return reinterpret_cast<const FrameHead*>(frame); }
  uint64_t node() const { return LoadWord(&head()->node); }
  Place place() const { return Place::Unpack(LoadWord(&head()->place)); }
  const std::byte* body() const { return frame + sizeof(FrameHead); }
};

// A frame whose latch is held.
struct LatchedFrame {
  FrameId id = kNoFrame;
  FrameSize size{};
  std::byte* frame = nullptr;
  FrameWord before;  // without the latch

  FrameHead* head() const { return reinterpret_cast<FrameHead*>(frame); }
  uint64_t node() const { return LoadWord(&head()->node); }
  Place place() const { return Place::Unpack(LoadWord(&head()->place)); }
  std::byte* body() const { return frame + sizeof(FrameHead); }
};

class Frames {
 public:
  static constexpr size_t kBlockBytes = 1536;
  static constexpr size_t kUnitBytes = kLineBytes;
  static constexpr size_t kUnits = kBlockBytes / kUnitBytes;

  // `max_bytes`: of the blocks and their words. It may be too few for a block; then there are no frames.
  explicit Frames(size_t max_bytes);
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;

  size_t blocks() const { return blocks_; }
  // Blocks that have been cut into frames.
  size_t used_blocks() const { return used_.load(std::memory_order_relaxed); }

  // False: nothing is there, or somebody writes it.
  bool Look(FrameId id, FrameLook* look) const {
    if (id / kUnits >= blocks_) return false;
    look->block = BlockWordOf(id / kUnits);
    look->block_word = LoadWord(look->block);
    if (!IsFrame(id, look->block_word)) return false;
    look->frame = memory_.data() + size_t{id} * kUnitBytes;
    look->word.bits = LoadWord(look->frame);
    return look->word.live() && !look->word.latched();
  }
  // Before a Look at a frame that will be searched: the CPU fetches all lines of an inner node, or of a leaf of integer
  // keys, at once.
  void Prefetch(FrameId id) const {
    if (id / kUnits >= blocks_) return;
    gannet::Prefetch(BlockWordOf(id / kUnits));
    for (size_t at = 0; at < BytesOf(FrameSize::k384); at += kLineBytes) gannet::Prefetch(FrameAt(id) + at);
  }
  // What was read from the frame since Look was all there at one moment.
  bool Unchanged(const FrameLook& look) const {
    return LoadWord(look.frame) == look.word.bits && LoadWord(look.block) == look.block_word;
  }

  // Takes the latch of a frame. Null: it is taken, or `id` is no frame, or the frame has not the word `expected`.
  std::optional<LatchedFrame> TryLatch(FrameId id, std::optional<FrameWord> expected = std::nullopt);
  // Opens the latch. `state`: what the frame holds now, of FrameWord::kState; 0: nothing.
  void Unlatch(const LatchedFrame& latched, uint64_t state);

  // A frame of this size in a block that was never used, latched; the others of the block are free, and are appended to
  // *rest. Null: no block is left.
  std::optional<LatchedFrame> TakeBlock(FrameSize size, std::vector<FrameId>* rest);
  // Cuts a block anew. The caller has latched all its frames, which hold nothing any more. The frames of the new size,
  // latched alike.
  std::vector<LatchedFrame> Recut(size_t block, FrameSize size);
  // The frames of a block; none if it was never used.
  struct Cut {
    FrameSize size{};
    std::vector<FrameId> frames;
  };
  Cut FramesOf(size_t block) const;
  // A frame of the block, the `number`th, modulo their number; kNoFrame: the block was never used.
  FrameId FrameIn(size_t block, uint64_t number) const;

 private:
  // Block words: | version | used | size, 3 |.
  static constexpr uint64_t kUsed = 8;
  static constexpr uint64_t kBlockVersion = 16;
  static FrameSize SizeIn(uint64_t block_word) { return static_cast<FrameSize>(block_word & 7); }
  static bool IsFrame(FrameId id, uint64_t block_word) {
    return (block_word & kUsed) != 0 && (kStarts[block_word & 7] >> (id % kUnits) & 1) != 0;
  }
  // The units of a block (bits) where frames of each size begin.
  static constexpr std::array<uint32_t, 8> kStarts = [] {
    std::array<uint32_t, 8> starts{};
    for (size_t size = 0; size < kFrameSizes; ++size) {
      const size_t units = BytesOf(static_cast<FrameSize>(size)) / kUnitBytes;
      for (size_t unit = 0; unit < kUnits; unit += units) starts[size] |= uint32_t{1} << unit;
    }
    return starts;
  }();
  std::byte* BlockWordOf(size_t block) const { return words_.data() + block * kWordBytes; }
  std::byte* FrameAt(FrameId id) const { return memory_.data() + size_t{id} * kUnitBytes; }

  size_t blocks_;
  BulkMemory memory_;  // and a frame more: a reader that comes late may take a frame for a longer one
  BulkMemory words_;   // one for each block
  Mutex mutex_;
  std::atomic<size_t> used_{0};  // changed under mutex_
};

}  // namespace gannet::index::dex
