// PathCache: what a client has cached of the ways through a B-link tree. Copies may be stale: what they lead to shows
// that. CurrentNodes: what is known without a verb, and not stale.
#pragma once

#include <cstdint>
#include <optional>

#include "index/blink/node.h"
#include "rdma/global_address.h"

namespace gannet::index::blink {

// The child of a cached inner node, where a search goes on.
struct Start {
  rdma::GlobalAddress node;
  uint8_t above = 0;  // level of the inner node
};

// The owner knows the nodes in its memory, a client the leaves that it has claimed (shared_leaf/claim/claim.h).
template <class Keys>
class CurrentNodes {
 public:
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;
  using Point = typename Keys::Point;

  // The node of `level` that covers the point, as it is now. False: it is to be READ. Does not suspend.
  virtual bool FindCurrent(const Point& point, uint8_t level, LeafCopy* node) = 0;

 protected:
  ~CurrentNodes() = default;
};

// Used by one thread at a time. None of the functions suspends.
template <class Keys>
class PathCache : public CurrentNodes<Keys> {
 public:
  using typename CurrentNodes<Keys>::LeafCopy;
  using typename CurrentNodes<Keys>::Point;

  virtual ~PathCache() = default;
  // The child that covers `point`, of the lowest inner node above `level` that is cached. Null: none is cached, and the
  // search begins at the root.
  virtual std::optional<Start> StartFor(const Point& point, uint8_t level) = 0;
  // A search has passed this inner node, which was READ just now.
  virtual void Keep(const LeafCopy& inner) = 0;
  // The inner node of this level at the point has led astray.
  virtual void Drop(const Point& point, uint8_t level) = 0;
  bool FindCurrent(const Point& /*point*/, uint8_t /*level*/, LeafCopy* /*node*/) override { return false; }
};

}  // namespace gannet::index::blink
