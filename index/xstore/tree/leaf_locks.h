// LeafLocks: the locks of up to three leaves whose fences or links change, but not their keys. They are taken one by
// one without waiting, and released together. The leaves stay unchanged unless PublishAll was called.
#pragma once

#include <array>
#include <cstdint>

#include "base/check.h"
#include "index/xstore/tree/leaf.h"

namespace gannet::index::xstore {

template <int W>
class LeafLocks {
 public:
  LeafLocks() = default;
  ~LeafLocks() {
    while (size_ > 0) --size_, locked_[size_].leaf.Unlock(locked_[size_].state);
  }
  LeafLocks(const LeafLocks&) = delete;
  LeafLocks& operator=(const LeafLocks&) = delete;

  bool TryLock(Leaf<W> leaf) {
    const uint64_t state = leaf.state();
    if ((state & rdma::kLockBit) != 0 || !leaf.TryLockForStructure(state)) return false;
    locked_[size_++] = {leaf, state};
    return true;
  }
  // All must be busy. Unlocks them with new states, the last one first. `absorber`, one of them, has shadows now.
  void PublishAll(Leaf<W> absorber) {
    while (size_ > 0) {
      --size_;
      const auto& [leaf, state] = locked_[size_];
      // Only this node's CPU writes leaves, so the lock that was taken is there until it is given back.
      GANNET_CHECK(leaf.state() == LockedForStructure(state), "a leaf that was locked in state %x has %x", state,
                   leaf.state());
      Leaf<W>(leaf).Publish(NextStructure(state) | (leaf == absorber ? kHasShadows : 0));
    }
  }

 private:
  struct Locked {
    Leaf<W> leaf;
    uint64_t state;  // before it was locked
  };
  std::array<Locked, 3> locked_;
  int size_ = 0;
};

}  // namespace gannet::index::xstore
