// The checksum of a block of an index (a model, a page of its directory): of all bytes but its own, the first eight.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace gannet::index::rolex {

inline uint64_t ChecksumOf(std::span<const std::byte> block) {
  constexpr size_t kFrom = sizeof(uint64_t);
  return XXH3_64bits(block.data() + kFrom, block.size() - kFrom) >> 1;  // never the first word of a busy line
}

}  // namespace gannet::index::rolex
