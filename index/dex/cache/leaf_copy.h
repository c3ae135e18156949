// The copy of a leaf in a frame: line 0 of the leaf, and the entries of its other lines. The versions of these lines
// are in line 0, too, so they are left out.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "index/dex/cache/frames.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::dex {

template <class Keys>
class LeafBody {
 public:
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;
  using Image = typename Keys::Image;
  using Entry = typename Keys::Entry;

  static FrameSize SizeFor(const Image& leaf) {
    const size_t bytes = sizeof(FrameHead) + kLineBytes + leaf.line_count() * kBytesPerLine;
    if (bytes <= BytesOf(FrameSize::k384)) return FrameSize::k384;
    return bytes <= BytesOf(FrameSize::k512) ? FrameSize::k512 : FrameSize::k768;
  }

  static void Store(const LatchedFrame& frame, const Image& leaf) {
    std::byte* const body = frame.body();
    StoreWords(body, &leaf.head, kHeadWords);
    for (size_t line = 0; line < leaf.line_count(); ++line) {
      StoreWords(body + kLineBytes + line * kBytesPerLine, leaf.lines[line].entries, kBytesPerLine / kWordBytes);
    }
  }

  // Loads the whole leaf. What it loads is right if the frame is unchanged then.
  static void Load(const FrameLook& look, Image* leaf) {
    LoadWords(look.body(), &leaf->head, kHeadWords);
    for (size_t line = 0; line < leaf->line_count(); ++line) {
      leaf->lines[line].version = kAbsentBit | leaf->head.versions[line];
      LoadWords(look.body() + kLineBytes + line * kBytesPerLine, leaf->lines[line].entries, kBytesPerLine / kWordBytes);
    }
  }

  static uint64_t StateOf(const std::byte* body) { return LoadWord(body); }

 private:
  static constexpr size_t kHeadWords = kLineBytes / kWordBytes;
  static constexpr size_t kBytesPerLine = static_cast<size_t>(Entry::kPerLine) * sizeof(Entry);
  static_assert(kBytesPerLine % kWordBytes == 0);
  static_assert(sizeof(FrameHead) + kLineBytes + Keys::Head::kMostLines * kBytesPerLine <= BytesOf(FrameSize::k768));

  static void StoreWords(std::byte* to, const void* from, size_t words) {
    for (size_t i = 0; i < words; ++i) {
      uint64_t word;
      std::memcpy(&word, static_cast<const std::byte*>(from) + i * kWordBytes, kWordBytes);
      StoreWord(to + i * kWordBytes, word);
    }
  }
  static void LoadWords(const std::byte* from, void* to, size_t words) {
    for (size_t i = 0; i < words; ++i) {
      const uint64_t word = LoadWord(from + i * kWordBytes);
      std::memcpy(static_cast<std::byte*>(to) + i * kWordBytes, &word, kWordBytes);
    }
  }
};

}  // namespace gannet::index::dex
