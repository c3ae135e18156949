#include "index/blink/inner_cache.h"

#include "base/random.h"

namespace gannet::index::blink {

void InnerCache::Put(rdma::GlobalAddress address, const LeafImage& image) {
  const uint8_t level = image.level();
  Level& nodes = levels_[level];
  if (const auto at = nodes.find(image.head.low); at != nodes.end()) {
    at->second = {address, image};
    return;
  }
  if (most_ == 0) return;
  // Nodes of the lowest levels make room: there are many, and each serves few keys. Any of them will do.
  for (uint8_t lowest = 0; size_ >= most_; ++lowest) {
    if (lowest == level) return;
    Level& victims = levels_[lowest];
    while (size_ >= most_ && !victims.empty()) {
      auto victim = victims.lower_bound(SplitMix64(hand_));
      if (victim == victims.end()) victim = victims.begin();
      victims.erase(victim);
      --size_;
    }
  }
  nodes.emplace(image.head.low, Node{address, image});
  ++size_;
}

void InnerCache::Drop(uint8_t level, uint64_t key) {
  level = LowestWith(level, key);
  if (level == kMaxLevels) return;
  Level& nodes = levels_[level];
  nodes.erase(std::prev(nodes.upper_bound(key)));
  --size_;
}

}  // namespace gannet::index::blink
