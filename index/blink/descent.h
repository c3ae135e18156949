// Descent: the search for the node of a level that covers a key, one node at a time. It decides which node to read
// next; the reader is a client's coroutine or a loop of the owner's CPU.
//
//   Descent<Keys> descent(root, point, level);
//   while (descent.step() == Step::kRead) {
//     <read the node at descent.next() into descent.node(), with its keys if it is above the level>
//     descent.Take(look);
//   }
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "index/blink/node.h"
#include "index/blink/path_cache.h"
#include "index/index.h"

namespace gannet::index::blink {

enum class Step : uint8_t {
  kRead,   // read next()
  kFound,  // the last node is the one
  kLost,   // begin again at the root: what was read does not belong together any more
};

template <class Keys>
class Descent {
 public:
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;
  using IndexEntry = typename Keys::IndexEntry;
  using Point = typename Keys::Point;

  // Separators of the level above that are to be mended.
  struct Notes {
    std::optional<IndexEntry> missing{};
    std::optional<IndexEntry> stale{};
  };

  Descent(rdma::GlobalAddress root, const Point& point, uint8_t level)
      : root_(root), point_(point), level_(level), next_(root) {}
  // Begins below a cached copy of an inner node, which may be stale.
  void BeginAt(const Start& start) {
    next_ = start.node;
    above_ = start.above;
    is_cached_ = true;
  }

  Step step() const { return step_; }
  rdma::GlobalAddress next() const { return next_; }
  // The place where the reader puts the node at next(); after kFound, the node that was searched for.
  LeafCopy& node() { return nodes_[current_]; }
  // The node is read. If it is an inner node that covers the point, a cache may keep it (passed).
  void Take(shared_leaf::LeafLook look) {
    const LeafCopy& read = node();
    passed_ = false;
    if (++steps_ > kMostSteps) {
      step_ = Step::kLost;
    } else if (look != shared_leaf::LeafLook::kWhole || Keys::BeginsBehind(read.image, point_) ||
               read.image.level() < level_ || read.image.level() >= above_) {
      StepLeft();
    } else if (Keys::EndsBefore(read.image, point_)) {
      StepRight(read);
    } else if (read.image.level() == level_) {
      Arrive();
      step_ = Step::kFound;
    } else {
      Arrive();
      passed_ = true;
      current_ ^= 1;  // it is the parent now
      has_parent_ = true;
      is_cached_ = false;
      above_ = read.image.level();
      slot_ = ChildOf(read);
      FollowSlot();
    }
  }
  // The node taken last is an inner node on the way.
  bool passed() const { return passed_; }
  // The node that was passed, if passed().
  const LeafCopy& passed_node() const { return nodes_[current_ ^ 1]; }
  // The cached node led astray.
  bool cache_was_stale() const { return cache_was_stale_; }
  // The separators of the last level that are to be mended.
  const Notes& notes() const { return notes_; }

 private:
  static constexpr int kMostSteps = 10'000;

  LeafCopy& parent() { return nodes_[current_ ^ 1]; }
  int ChildOf(const LeafCopy& of, int below = -1) const { return ChildSlot<Keys>(of.image, of.keys, point_, below); }
  rdma::GlobalAddress Target() {
    return Keys::TargetOf(parent().image.template entry<typename Keys::Entry>(slot_), root_.node());
  }
  void FollowSlot() {
    rights_ = 0;
    stale_slot_ = -1;
    if (slot_ < 0) {
      step_ = Step::kLost;
      return;
    }
    next_ = Target();
  }
  // The separator leads nowhere: the one to its left leads to a node from which right links come to the point.
  void StepLeft() {
    cache_was_stale_ |= is_cached_;
    if (!has_parent_ || rights_ > 0) {
      step_ = Step::kLost;
      return;
    }
    stale_slot_ = slot_;
    slot_ = ChildOf(parent(), slot_);
    if (slot_ < 0) {
      step_ = Step::kLost;
      return;
    }
    next_ = Target();
  }
  void StepRight(const LeafCopy& from) {
    const typename Keys::Key low = Keys::LowOf(from.image);
    // A chain that does not lead to greater keys was written by nobody who keeps the rules, or has changed.
    if (from.image.right().is_null() || (rights_ > 0 && low <= last_low_)) {
      step_ = Step::kLost;
      return;
    }
    last_low_ = low;
    ++rights_;
    missing_ = Keys::ChildEntry(Keys::NextLow(from.image), from.image.right());
    next_ = from.image.right();
  }
  // Called at a node that covers the point.
  void Arrive() {
    notes_ = {};
    cache_was_stale_ |= is_cached_ && rights_ > 0;
    if (has_parent_) {
      if (rights_ > 0) notes_.missing = missing_;
      if (stale_slot_ >= 0) {
        notes_.stale = Keys::ChildEntry(
            Keys::KeyAt(parent().image, parent().keys, stale_slot_),
            Keys::TargetOf(parent().image.template entry<typename Keys::Entry>(stale_slot_), root_.node()));
      }
    }
    rights_ = 0;
    stale_slot_ = -1;
  }

  rdma::GlobalAddress root_;
  Point point_;
  uint8_t level_;
  Step step_ = Step::kRead;
  rdma::GlobalAddress next_;
  std::array<LeafCopy, 2> nodes_;  // the node that is read, and its parent
  size_t current_ = 0;
  bool has_parent_ = false;
  int above_ = kMaxLevels;  // level of the node that led to next_
  int slot_ = -1;           // of the parent, that was followed
  bool is_cached_ = false;  // a cached copy led to next_
  bool passed_ = false;
  bool cache_was_stale_ = false;
  int steps_ = 0;
  int rights_ = 0;  // right links followed on this level
  typename Keys::Key last_low_{};
  IndexEntry missing_{};
  int stale_slot_ = -1;
  Notes notes_;
};

}  // namespace gannet::index::blink
