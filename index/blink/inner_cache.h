// InnerCache: a client's copies of inner nodes, by level and low fence. A copy may be stale; what it leads to shows
// that. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "absl/container/btree_map.h"
#include "index/blink/node.h"

namespace gannet::index::blink {

class InnerCache {
 public:
  explicit InnerCache(size_t max_bytes) : most_(max_bytes / kNodeBytes) {}

  struct Node {
    rdma::GlobalAddress address;
    LeafImage image;
  };

  // The node of `level` that covered `key` when it was READ, or null. Valid until the next Put or Drop.
  const Node* Find(uint8_t level, uint64_t key) const {
    const Level& nodes = levels_[level];
    auto at = nodes.upper_bound(key);
    if (at == nodes.begin()) return nullptr;
    --at;
    return at->second.image.Covers(key) ? &at->second : nullptr;
  }
  // The lowest level at or above `level` with a node that covers `key`; kMaxLevels if there is none.
  uint8_t LowestWith(uint8_t level, uint64_t key) const {
    while (level < kMaxLevels && (levels_[level].empty() || Find(level, key) == nullptr)) ++level;
    return level;
  }
  void Put(rdma::GlobalAddress address, const LeafImage& image);
  // Forgets the node that leads to `key`, of the lowest level at or above `level` that has one.
  void Drop(uint8_t level, uint64_t key);

  uint64_t bytes() const { return size_ * kNodeBytes; }

 private:
  using Level = absl::btree_map<uint64_t, Node>;
  static constexpr size_t kNodeBytes = sizeof(Level::value_type) + sizeof(uint64_t);

  std::array<Level, kMaxLevels> levels_;
  size_t size_ = 0;
  size_t most_;
  uint64_t hand_ = 0;  // state of the random numbers that choose what is given up
};

}  // namespace gannet::index::blink
