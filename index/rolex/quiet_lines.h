// Blocks that clients READ begin their lines with any data: keys, or parts of a model. But no line may begin with a
// word for which rdma::IsLineBusy is true (fabric.h, 2), and the greatest 65,536 keys are such words. So the first
// words of all lines but the first are stored with some bits inverted: those of the block's mask, which the first line
// has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/cache_line.h"
#include "rdma/fabric.h"

namespace gannet::index::rolex {

// The low 16 bits of a mask are 0, and it is small: below 65,536 times the number of lines.
inline constexpr uint64_t kMaskBits = rdma::kFirstLineBusy;

namespace quiet {
// Calls f with the place of each line's first word, but the first line's. A last word that is not whole is none.
template <class F>
void ForEachFirstWord(std::span<const std::byte> block, const F& f) {
  for (size_t at = kLineBytes; at + kWordBytes <= block.size(); at += kLineBytes) f(at);
}
}  // namespace quiet

// The least mask with which no line of the block begins with a busy word; mostly 0. Each line rules out one mask.
inline uint64_t QuietMask(std::span<const std::byte> block) {
  for (uint64_t mask = 0;; mask += kMaskBits & -kMaskBits) {
    bool quiet = true;
    quiet::ForEachFirstWord(block, [&](size_t at) {
      uint64_t word = 0;
      std::memcpy(&word, block.data() + at, kWordBytes);
      quiet &= !rdma::IsLineBusy(word ^ mask);
    });
    if (quiet) return mask;
  }
}

// Inverts the bits of the mask, or inverts them back.
inline void ApplyMask(std::span<std::byte> block, uint64_t mask) {
  if (mask == 0) return;
  quiet::ForEachFirstWord(block, [&](size_t at) {
    uint64_t word = 0;
    std::memcpy(&word, block.data() + at, kWordBytes);
    word ^= mask;
    std::memcpy(block.data() + at, &word, kWordBytes);
  });
}

}  // namespace gannet::index::rolex
