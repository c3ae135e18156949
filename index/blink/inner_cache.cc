#include "index/blink/inner_cache.h"

namespace gannet::index::blink {

template <class Keys>
void InnerCache<Keys>::Put(const Node& node) {
  const uint8_t level = node.image.level();
  const Key low = Keys::LowOf(node.image);
  Level& nodes = levels_[level];
  if (const auto at = nodes.find(low); at != nodes.end()) {
    at->second = node;
    return;
  }
  if (most_ == 0) return;
  // Nodes of the lowest levels make room, in turn: there are many, and each serves few keys.
  for (uint8_t lowest = 0; size() >= most_; ++lowest) {
    if (lowest == level) return;
    Level& victims = levels_[lowest];
    while (size() >= most_ && !victims.empty()) {
      auto victim = victims.upper_bound(victim_);
      if (victim == victims.end()) victim = victims.begin();
      victim_ = victim->first;
      victims.erase(victim);
      set_size(size() - 1);
    }
  }
  nodes.emplace(low, node);
  set_size(size() + 1);
}

template <class Keys>
void InnerCache<Keys>::Drop(uint8_t level, const Point& point) {
  level = LowestWith(level, point);
  if (level == kMaxLevels) return;
  Level& nodes = levels_[level];
  nodes.erase(std::prev(shared_leaf::FirstRightOf<Keys>(nodes, point)));
  set_size(size() - 1);
}

template class InnerCache<IntegerKeys>;
template class InnerCache<ByteKeys>;

}  // namespace gannet::index::blink
