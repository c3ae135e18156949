// Descent: the search for the node of a level that covers a key, one node at a time. It decides which node to read
// next; the reader is a client's coroutine or a loop of the owner's CPU.
//
//   Descent descent(root, key, level);
//   while (descent.step() == Descent::Step::kRead) descent.Take(<look and image of the node at descent.next()>);
#pragma once

#include <cstdint>
#include <optional>

#include "index/blink/node.h"
#include "index/index.h"
#include "index/remote/leaf_change.h"

namespace gannet::index::blink {

using Place = remote::LeafPlace;

class Descent {
 public:
  enum class Step : uint8_t {
    kRead,   // read next()
    kFound,  // the last node is the one
    kLost,   // begin again at the root: what was read does not belong together any more
  };
  // Separators of the level above that are to be mended.
  struct Notes {
    std::optional<IntegerEntry> missing{};
    std::optional<IntegerEntry> stale{};
  };

  Descent(rdma::GlobalAddress root, uint64_t key, uint8_t level) : root_(root), key_(key), level_(level), next_(root) {}
  // Begins below a copy of an inner node, which may be stale.
  void BeginBelow(const LeafImage& node) {
    parent_ = node;
    slot_ = ChildSlot(node, key_);
    is_cached_ = true;
    FollowSlot();
  }

  Step step() const { return step_; }
  rdma::GlobalAddress next() const { return next_; }
  // The node at next(). If it is an inner node that covers the key, a cache may keep it (Passed).
  void Take(remote::LeafLook look, const LeafImage& node) {
    passed_ = false;
    if (++steps_ > kMostSteps) {
      step_ = Step::kLost;
    } else if (look != remote::LeafLook::kWhole || key_ < node.head.low || node.level() < level_ ||
               (parent_.has_value() && node.level() >= parent_->level())) {
      StepLeft();
    } else if (key_ > node.head.high) {
      StepRight(node);
    } else if (node.level() == level_) {
      Arrive();
      step_ = Step::kFound;
    } else {
      Arrive();
      passed_ = true;
      parent_ = node;
      is_cached_ = false;
      slot_ = ChildSlot(node, key_);
      FollowSlot();
    }
  }
  // The node taken last is an inner node on the way.
  bool passed() const { return passed_; }
  // The cached node led astray.
  bool cache_was_stale() const { return cache_was_stale_; }
  // Of the last level.
  const Notes& notes() const { return notes_; }

 private:
  static constexpr int kMostSteps = 10'000;

  void FollowSlot() {
    rights_ = 0;
    stale_slot_ = -1;
    if (slot_ < 0) {
      step_ = Step::kLost;
      return;
    }
    next_ = rdma::GlobalAddress::FromBits(parent_->entry<IntegerEntry>(slot_).target);
  }
  // The separator leads nowhere: the one to its left leads to a node from which right links come to the key.
  void StepLeft() {
    if (!parent_.has_value() || rights_ > 0) {
      step_ = Step::kLost;
      return;
    }
    stale_slot_ = slot_;
    slot_ = ChildSlot(*parent_, key_, slot_);
    cache_was_stale_ |= is_cached_;
    if (slot_ < 0) {
      step_ = Step::kLost;
      return;
    }
    next_ = rdma::GlobalAddress::FromBits(parent_->entry<IntegerEntry>(slot_).target);
  }
  void StepRight(const LeafImage& node) {
    // A chain that does not lead to greater keys was written by nobody who keeps the rules, or has changed.
    if (node.right().is_null() || (rights_ > 0 && node.head.low <= last_low_)) {
      step_ = Step::kLost;
      return;
    }
    last_low_ = node.head.low;
    ++rights_;
    missing_ = IntegerEntry{node.head.high + 1, node.head.right};
    next_ = node.right();
  }
  // At a node that covers the key.
  void Arrive() {
    notes_ = {};
    if (parent_.has_value()) {
      cache_was_stale_ |= is_cached_ && rights_ > 0;
      if (!is_cached_) {
        if (rights_ > 0) notes_.missing = missing_;
        if (stale_slot_ >= 0) notes_.stale = parent_->entry<IntegerEntry>(stale_slot_);
      }
    }
    rights_ = 0;
    stale_slot_ = -1;
  }

  rdma::GlobalAddress root_;
  uint64_t key_;
  uint8_t level_;
  Step step_ = Step::kRead;
  rdma::GlobalAddress next_;
  std::optional<LeafImage> parent_;
  int slot_ = -1;  // of the parent, that was followed
  bool is_cached_ = false;
  bool passed_ = false;
  bool cache_was_stale_ = false;
  int steps_ = 0;
  int rights_ = 0;  // right links followed on this level
  uint64_t last_low_ = 0;
  IntegerEntry missing_;
  int stale_slot_ = -1;
  Notes notes_;
};

}  // namespace gannet::index::blink
