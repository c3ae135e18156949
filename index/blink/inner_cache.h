// InnerCache: clients' copies of inner nodes, by level and low fence. A copy may be stale; what it leads to shows that.
// Not thread-safe: SharedNodes (shared_cache.h) guards it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/container/btree_map.h"
#include "index/blink/node.h"

namespace gannet::index::blink {

template <class Keys>
class InnerCache {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using Node = shared_leaf::LeafCopyOf<Keys>;

  explicit InnerCache(size_t max_bytes) : most_(max_bytes / kNodeBytes) {}

  // The node of `level` that covered `point` when it was READ, or null. Valid until the next Put or Drop.
  const Node* Find(uint8_t level, const Point& point) const {
    const Level& nodes = levels_[level];
    // The low fence of the node is the greatest that is at most the point's, unless a copy is stale.
    auto at = shared_leaf::FirstRightOf<Keys>(nodes, point);
    if (at == nodes.begin()) return nullptr;
    --at;
    return Keys::Covers(at->second.image, point) ? &at->second : nullptr;
  }
  // The lowest level at or above `level` with a node that covers `point`; kMaxLevels if there is none.
  uint8_t LowestWith(uint8_t level, const Point& point) const {
    while (level < kMaxLevels && (levels_[level].empty() || Find(level, point) == nullptr)) ++level;
    return level;
  }
  void Put(const Node& node);
  // Forgets the node that leads to `point`, of the lowest level at or above `level` that has one.
  void Drop(uint8_t level, const Point& point);

  // Thread-safe.
  uint64_t bytes() const { return size_.load(std::memory_order_relaxed) * kNodeBytes; }

 private:
  using Level = absl::btree_map<Key, Node>;
  static constexpr size_t kNodeBytes = sizeof(typename Level::value_type) + sizeof(uint64_t);

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  void set_size(size_t size) { size_.store(size, std::memory_order_relaxed); }

  std::array<Level, kMaxLevels> levels_;
  std::atomic<size_t> size_{0};  // number of nodes
  size_t most_;
  Key victim_{};  // the node given up last
};

}  // namespace gannet::index::blink
