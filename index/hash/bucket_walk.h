// One lookup by READs, as a state machine: it says which line to READ next, takes the line, and says what it knows now.
// It does no I/O and no allocation, so single lookups and batches share it.
#pragma once

#include <array>
#include <cstdint>

#include "index/hash/bucket.h"
#include "index/hash/geometry.h"

namespace gannet::index::hash {

class BucketWalk {
 public:
  enum class Step {
    kRead,     // READ next() and call Take
    kAgain,    // the same, but earlier lines are void: the chain was locked, or changed between two READs
    kFound,    // candidate(0) is the only record that can hold the key
    kAbsent,   // no record holds the key
    kVerify,   // several candidates: their headers decide
    kLong,     // the chain is too long to READ: ask the owner
    kUnknown,  // the table grew beyond what `geometry` knows, or the line is invalid: ask the owner
  };
  static constexpr int kMaxCandidates = 6;

  BucketWalk() = default;
  BucketWalk(const Geometry& geometry, KeyHash hash)
      : hash_(hash), name_(BucketFor(hash, geometry.initial, geometry.size)) {
    Restart(geometry);
  }

  KeyHash hash() const { return hash_; }
  // Offset in the owner's memory.
  uint64_t next() const { return next_; }

  // `line`: the 64 bytes at next(), as READ. If the line shows that the table has grown, *geometry is updated.
  Step Take(const std::byte* line, Geometry* geometry) {
    return next_ == head_ ? TakeHead(line, geometry) : TakeOverflow(line, *geometry);
  }

  // The witness of the key: its head's offset and version. Valid with kFound, kAbsent and kVerify.
  uint64_t head() const { return head_; }
  uint64_t version() const { return version_; }
  int candidates() const { return candidates_; }
  uint64_t candidate(int i) const { return offsets_[i]; }

 private:
  void Restart(const Geometry& geometry);
  Step TakeHead(const std::byte* line, Geometry* geometry);
  Step TakeOverflow(const std::byte* line, const Geometry& geometry);
  Step Collect(const std::byte* line, uint64_t link);

  KeyHash hash_{};
  BucketName name_;
  uint64_t head_ = 0;
  uint64_t next_ = 0;
  uint64_t version_ = 0;
  bool ambiguous_ = false;
  uint8_t length_ = 0;
  uint8_t candidates_ = 0;
  std::array<uint64_t, kMaxCandidates> offsets_;
};

}  // namespace gannet::index::hash
