// LeafSearch: the way to the leaf that covers a point: by inner nodes to a leaf, then along the leaves to the right, or
// by the nodes to the left (MSST'24, III-B and III-C). It decides what to look at next; a client READs that, and the
// owner loads it.
//
//   LeafSearch<Keys> search(root, first, point);
//   for (;;) switch (search.step()) {
//     kWay     go on with search.way() to its end; TakeWay()
//     kLeaf    look at search.leaf(); TakeLeaf(look, image)
//     kFound   search.leaf() covers the point
//     kAgain   it led nowhere; if the patience is not over: Again()
//   }
//
// Copies of nodes may be behind, so the second way is by the nodes themselves. These may be wrong, too; so the last
// ways begin at the first leaf of the index, from which right links lead to every leaf.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "index/dolphin/art.h"
#include "index/dolphin/keys.h"
#include "index/shared_leaf/leaf/leaf.h"

namespace gannet::index::dolphin {

template <class Keys>
class LeafSearch {
 public:
  enum class Step : uint8_t { kWay, kLeaf, kFound, kAgain };

  // `first`: the first leaf, which never dies. `has_copies` false: the first way is by the nodes themselves, too.
  LeafSearch(rdma::GlobalAddress root, rdma::GlobalAddress first, const typename Keys::Point& point, bool has_copies)
      : root_(root), first_(first), point_(point), by_copies_(has_copies) {
    Begin();
  }

  Step step() const { return step_; }
  ArtWay& way() { return *way_; }
  bool by_copies() const { return by_copies_; }
  rdma::GlobalAddress leaf() const { return leaf_; }
  // kFound: no entry led there, but right links, or nothing but the first leaf.
  bool was_detour() const { return rights_ > 0 || !by_nodes(); }
  // An entry of a node, not of a copy, that has led to no leaf, or to another one than it says.
  std::optional<ArtWay::Misled> TakeWrong() { return std::exchange(wrong_, std::nullopt); }

  void TakeWay() {
    leaf_ = by_nodes() ? way_->leaf() : first_;
    rights_ = 0;
    last_low_.reset();
    step_ = Step::kLeaf;
  }
  // `image`: of a whole leaf.
  void TakeLeaf(shared_leaf::LeafLook look, const typename Keys::Image& image) {
    if (look != shared_leaf::LeafLook::kWhole) return Astray();
    if (Keys::Covers(image, point_)) {
      step_ = Step::kFound;
      return;
    }
    const typename Keys::Key low = Keys::LowOf(image);
    if (last_low_.has_value() && low <= *last_low_) return Astray();
    if (Keys::EndsBefore(image, point_)) {
      last_low_ = low;
      leaf_ = image.right();
      ++rights_;
      return;
    }
    if (!by_nodes()) {
      step_ = Step::kAgain;
    } else if (rights_ == 0 && Keys::ArtKey(low) != way_->low()) {
      Astray();
    } else {
      GoLeft();
    }
  }
  void Again() {
    by_copies_ = false;
    Begin();
  }

 private:
  static constexpr int kWaysByNodes = 8;
  static constexpr int kMostLefts = 16;  // of one way

  bool by_nodes() const { return way_->step() == ArtWay::Step::kFound; }
  void Begin() {
    way_.emplace(root_, Keys::ArtKey(point_).view(), Keys::IsBelow(point_));
    lefts_ = 0;
    step_ = Step::kWay;
    if (ways_++ >= kWaysByNodes) TakeWay();  // the way has not begun, so this is the first leaf
  }
  // There is no such leaf, or its links lead nowhere.
  void Astray() {
    const bool is_wrong = by_nodes() && rights_ == 0;
    if (is_wrong && !by_copies_) {
      wrong_ = ArtWay::Misled{way_->special(), way_->entry()};
      GoLeft();
    } else {
      step_ = Step::kAgain;
    }
  }
  void GoLeft() {
    if (++lefts_ > kMostLefts) {
      step_ = Step::kAgain;
      return;
    }
    way_->GoLeft();
    step_ = Step::kWay;
  }

  rdma::GlobalAddress root_;
  rdma::GlobalAddress first_;
  typename Keys::Point point_;
  bool by_copies_;
  Step step_ = Step::kWay;
  std::optional<ArtWay> way_;
  int ways_ = 0;
  int lefts_ = 0;
  int rights_ = 0;
  rdma::GlobalAddress leaf_;
  std::optional<typename Keys::Key> last_low_;
  std::optional<ArtWay::Misled> wrong_;
};

}  // namespace gannet::index::dolphin
