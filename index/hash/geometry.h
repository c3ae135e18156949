// Maps keys to buckets in a table that grows one bucket at a time (linear hashing).
//
// The table begins with `initial` buckets. A bucket is named by (place, path): `place` in [0, initial) never changes
// for a key, `path` is a number of up to kMaxDepth bits. A bucket of depth d holds the keys of its place whose hash
// path ends, in its low d bits, in the bucket's path. When it splits, its depth becomes d + 1 and the keys whose bit d
// is set go to the new bucket (place, path + 2^d). Buckets never merge and never move.
//
//   number = place + initial * path         buckets exist for all numbers below `count`
//   segment 0: path 0; segment s > 0: paths [2^(s-1), 2^s)      one array of memory each
//
// Every head knows its own depth. So a reader that computes a bucket from an old count finds the right bucket or an
// ancestor of it, sees by the depth that it is an ancestor, and continues with the next one (as in LH*, TODS'96). So
// clients need not be told that the table grew.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "index/hash/bucket.h"

namespace gannet::index::hash {

inline constexpr int kMaxSegments = kMaxDepth + 1;

constexpr uint32_t LowBits(int n) {
  return (uint32_t{1} << n) - 1;
}

// Number of buckets: count = (initial << level) + buckets split in this level. Packed into a word, so that it can be
// read atomically while it grows.
class TableSize {
 public:
  constexpr TableSize() = default;
  constexpr TableSize(uint64_t count, int level) : word_(static_cast<uint64_t>(level) << 56 | count) {}
  static constexpr TableSize FromWord(uint64_t word) {
    TableSize size;
    size.word_ = word;
    return size;
  }
  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t count() const { return word_ & ((uint64_t{1} << 56) - 1); }
  constexpr int level() const { return static_cast<int>(word_ >> 56); }

  // The size after one more split.
  constexpr TableSize Next(uint64_t initial) const {
    const uint64_t next = count() + 1;
    return {next, next == initial << (level() + 1) ? level() + 1 : level()};
  }

 private:
  uint64_t word_ = 0;
};

struct BucketName {
  uint64_t place = 0;
  uint32_t path = 0;

  int segment() const { return std::bit_width(path); }
  // Index of the bucket in its segment.
  uint64_t IndexInSegment(uint64_t initial) const {
    return path == 0 ? place : place + initial * (path - std::bit_floor(path));
  }
};

// The bucket that holds the key if the table has this size.
inline BucketName BucketFor(KeyHash hash, uint64_t initial, TableSize size) {
  const uint64_t place = hash.Reduce(initial);
  const uint32_t path = hash.path() & LowBits(size.level() + 1);
  const bool exists = place + initial * path < size.count();
  return {place, exists ? path : path & LowBits(size.level())};
}

// True if a bucket of this name and depth is the key's own, not an ancestor.
inline bool IsHome(KeyHash hash, const BucketName& bucket, int depth) {
  return ((hash.path() ^ bucket.path) & LowBits(depth)) == 0;
}

// The next bucket on the way from an ancestor to the key's bucket. Requires !IsHome.
inline BucketName Descend(KeyHash hash, const BucketName& ancestor) {
  const uint32_t missing = hash.path() ^ ancestor.path;
  return {ancestor.place, ancestor.path | (missing & -missing)};
}

// What a client must know to READ buckets.
struct Geometry {
  uint64_t initial = 0;
  TableSize size;
  std::array<uint64_t, kMaxSegments> segments{};  // offsets in the owner's memory; 0 = not allocated yet
};

}  // namespace gannet::index::hash
