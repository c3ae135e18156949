// SharedNodes: the inner nodes of a B-link tree that the clients of a process have cached (inner_cache.h).
#pragma once

#include <optional>

#include "base/runtime.h"
#include "index/blink/inner_cache.h"
#include "index/blink/path_cache.h"
#include "index/shared_leaf/shared_leaves.h"

namespace gannet::index::blink {

class SharedNodes final : public shared_leaf::SharedLeavesOf<InnerCache> {
 public:
  using SharedLeavesOf::SharedLeavesOf;
};

// A client's place among the users of SharedNodes.
template <class Keys>
class SharedPaths final : public PathCache<Keys> {
 public:
  using typename PathCache<Keys>::LeafCopy;
  using typename PathCache<Keys>::Point;
  using Reading = SharedNodes::Reading<Keys>;
  using Changing = SharedNodes::Changing<Keys>;

  // `cache` must outlive this.
  explicit SharedPaths(SharedNodes* cache) : nodes_(cache) {}

  SharedNodes::View<Keys>& nodes() { return nodes_; }

  std::optional<Start> StartFor(const Point& point, uint8_t level) override {
    Charge(Cost::kIndexStep, 2);  // a tree of nodes, and the node
    const Reading nodes(nodes_);
    const uint8_t above = nodes->LowestWith(static_cast<uint8_t>(level + 1), point);
    if (above == kMaxLevels) return std::nullopt;
    const LeafCopy& node = *nodes->Find(above, point);
    const int slot = ChildSlot<Keys>(node.image, node.keys, point);
    if (slot < 0) return std::nullopt;
    return Start{Keys::TargetOf(node.image.template entry<typename Keys::Entry>(slot), node.address.node()), above};
  }
  void Keep(const LeafCopy& inner) override { Changing(nodes_)->Put(inner); }
  void Drop(const Point& point, uint8_t level) override { Changing(nodes_)->Drop(level, point); }

 private:
  SharedNodes::View<Keys> nodes_;
};

}  // namespace gannet::index::blink
