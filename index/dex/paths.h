// Paths: a client's ways through one tree, as the page cache of its process has them (cache/page_cache.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "index/blink/path_cache.h"
#include "index/dex/cache/inner_copy.h"
#include "index/dex/cache/leaf_copy.h"
#include "index/dex/cache/page_cache.h"

namespace gannet::index::dex {

// Keys: IntegerKeys or ByteKeys. Used by one thread at a time.
template <class Keys>
class Paths final : public blink::PathCache<Keys> {
 public:
  using typename blink::PathCache<Keys>::LeafCopy;
  using typename blink::PathCache<Keys>::Point;
  using Key = typename Keys::Key;
  using Image = typename Keys::Image;

  // `cache` must outlive this. `tree`: its number there.
  Paths(PageCache* cache, uint16_t tree) : cache_(*cache), user_(cache), tree_(tree) {}

  // Before the first use of what follows.
  void set_root(rdma::GlobalAddress root) { root_ = root; }

  std::optional<blink::Start> StartFor(const Point& point, uint8_t level) override;
  void Keep(const LeafCopy& inner) override;
  void Drop(const Point& point, uint8_t level) override;

  // The copy of the leaf that covers the point; null: there is none. `copy` has it then, whole.
  bool FindLeaf(const Point& point, LeafCopy* copy);
  // The copy of this leaf.
  bool LoadLeaf(rdma::GlobalAddress leaf, Image* image);
  // A leaf that was READ just now, and is whole.
  void KeepLeaf(const LeafCopy& leaf);
  // A copy of this node is behind.
  void Forget(rdma::GlobalAddress node) { cache_.Drop(&user_, node); }

  // The addresses of the leaf that covers the point and of those behind it up to `to` (in reverse: before it), as far
  // as one inner node knows them. Returns their number.
  size_t LeavesFrom(const Point& point, const Key& to, bool reverse, std::span<rdma::GlobalAddress> leaves);

  // Levels from the one of the first node that a search for the leaf would READ, down to the leaf; 0: it is cached.
  int LevelsToRead(const Point& point);

 private:
  // Where a way ends in the cache.
  struct End {
    bool is_reached = false;  // at a copy of the level that was asked for: then the next three are of it
    FrameId frame = kNoFrame;
    FrameLook look;
    Place place;
    rdma::GlobalAddress node;  // that was reached, or is missing; null: the root is missing
    // The copy that leads to it, and its level; kMaxLevels: none does.
    FrameId parent = kNoFrame;
    uint8_t above = blink::kMaxLevels;
  };
  // Goes from the root to the copy of `level` that covers the point, as far as there are copies.
  End Follow(const Point& point, uint8_t level);
  // False: copies have changed meanwhile.
  bool FollowOnce(const Point& point, uint8_t level, End* end);
  // Puts a copy of this node into a frame of that size: `write` writes its body.
  template <class Write>
  void Put(const LeafCopy& node, FrameSize size, size_t children, Write write);

  PageCache& cache_;
  PageCache::User user_;
  const uint16_t tree_;
  rdma::GlobalAddress root_;
  uint8_t root_level_ = 0;  // as it was READ last; 0: not yet
};

}  // namespace gannet::index::dex
