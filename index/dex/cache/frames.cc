#include "index/dex/cache/frames.h"

#include <algorithm>
#include <mutex>
#include <span>

#include "base/check.h"
#include "base/random.h"

namespace gannet::index::dex {
namespace {

constexpr size_t FramesPerBlock(FrameSize size) {
  return Frames::kBlockBytes / BytesOf(size);
}
FrameId IdIn(size_t block, FrameSize size, size_t number) {
  return static_cast<FrameId>(block * Frames::kUnits + number * BytesOf(size) / Frames::kUnitBytes);
}

// The first word of a frame, which holds nothing. A thread that was about to latch a frame when its block was cut anew
// finds other content in the place of the word that it expects. So that the two are not equal by chance, versions begin
// anywhere.
FrameWord FirstWord(FrameId id, uint64_t block_word) {
  return {Mix64(block_word << 32 ^ id) & ~(FrameWord::kVersion - 1)};
}

}  // namespace

Frames::Frames(size_t max_bytes)
    : blocks_(std::min<size_t>(max_bytes / (kBlockBytes + kWordBytes), kNoFrame / kUnits / 2)),
      memory_(blocks_ * kBlockBytes + BytesOf(FrameSize::k768)),
      words_((blocks_ + 1) * kWordBytes) {}

std::optional<LatchedFrame> Frames::TryLatch(FrameId id, std::optional<FrameWord> expected) {
  if (id / kUnits >= blocks_) return std::nullopt;
  const std::byte* const block = BlockWordOf(id / kUnits);
  const uint64_t block_word = LoadWord(block);
  if (!IsFrame(id, block_word)) return std::nullopt;
  std::byte* const frame = FrameAt(id);
  TakeLine(frame);
  const FrameWord word = expected.has_value() ? *expected : FrameWord{LoadWord(frame)};
  // If the block has been cut anew since its word was loaded, `word` may be the content of another frame.
  if (LoadWord(block) != block_word || word.latched()) return std::nullopt;
  if (CompareAndSwapWord(frame, word.bits, word.bits | FrameWord::kLatched) != word.bits) return std::nullopt;
  // Who cuts a block anew holds the latches of all its frames. If that happened between the two lines above, the place
  // has another word now (FirstWord), and the swap has failed.
  GANNET_CHECK(LoadWord(block) == block_word, "a page cache has latched what is no frame: %d", id);
  return LatchedFrame{.id = id, .size = SizeIn(block_word), .frame = frame, .before = word};
}

void Frames::Unlatch(const LatchedFrame& latched, uint64_t state) {
  GANNET_CHECK(LoadWord(latched.frame) == (latched.before.bits | FrameWord::kLatched),
               "the latch of frame %d is not held", latched.id);
  StoreWord(latched.frame, ((latched.before.bits & ~FrameWord::kState) | state) + FrameWord::kVersion);
}

std::optional<LatchedFrame> Frames::TakeBlock(FrameSize size, std::vector<FrameId>* rest) {
  if (used_blocks() == blocks_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const size_t block = used_blocks();
  if (block == blocks_) return std::nullopt;
  const std::vector<LatchedFrame> frames = Recut(block, size);
  used_.store(block + 1, std::memory_order_relaxed);
  for (const LatchedFrame& frame : std::span(frames).subspan(1)) {
    Unlatch(frame, 0);
    rest->push_back(frame.id);
  }
  return frames.front();
}

std::vector<LatchedFrame> Frames::Recut(size_t block, FrameSize size) {
  std::byte* const word = BlockWordOf(block);
  const uint64_t next = (LoadWord(word) & ~(kBlockVersion - 1)) + kBlockVersion;
  // Not a frame's place any more, before there is other content.
  StoreWord(word, next);
  std::vector<LatchedFrame> frames;
  for (size_t i = 0; i < FramesPerBlock(size); ++i) {
    const FrameId id = IdIn(block, size, i);
    const FrameWord first = FirstWord(id, next);
    StoreWord(FrameAt(id), first.bits | FrameWord::kLatched);
    frames.push_back({.id = id, .size = size, .frame = FrameAt(id), .before = first});
  }
  StoreWord(word, next | kUsed | static_cast<uint64_t>(size));
  return frames;
}

Frames::Cut Frames::FramesOf(size_t block) const {
  const uint64_t word = LoadWord(BlockWordOf(block));
  Cut cut{.size = SizeIn(word), .frames = {}};
  for (size_t i = 0; (word & kUsed) != 0 && i < FramesPerBlock(cut.size); ++i) {
    cut.frames.push_back(IdIn(block, cut.size, i));
  }
  return cut;
}

FrameId Frames::FrameIn(size_t block, uint64_t number) const {
  const uint64_t word = LoadWord(BlockWordOf(block));
  if ((word & kUsed) == 0) return kNoFrame;
  return IdIn(block, SizeIn(word), number % FramesPerBlock(SizeIn(word)));
}

}  // namespace gannet::index::dex
