// Shadows: leaves that were unlinked, by the leaf that covers their keys now, for as long as transactions may hold
// their state words as witnesses.
//
//     open transaction T                 tree
//     witness {L, version}        ... -> [ P, which has absorbed L's range ] -> ...
//              |                           |
//              v                           | an insert or a removal in P changes P's word, and then L's
//              L  <------------------------+
//
// L was empty, so no key of its range can leave P before one has entered it. The first change of the set of P gives L a
// new version as well, and the transaction that makes it lists both words (index/index.h, "Change"). So L's word still
// says what T wants to know: whether a key came into L's range. From then on L has no transaction whose witness is
// valid, so it is no shadow any more. Otherwise it is one until its grace period ends: those that saw L alive are over.
//
// Locks. A leaf's shadows are added, moved and changed by the holder of the leaf's lock. A leaf that has some has
// kHasShadows, which the holder of its lock finds in its state, so a change of other leaves does not come here.
//
// Thread-safe. Shared by the tree and by the notes of leaves that wait for their grace period.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/thread.h"
#include "index/backoff.h"
#include "index/xstore/tree/leaf.h"
#include "index/xstore/tree/leaf_state.h"

namespace gannet::index::xstore {

template <int W>
class Shadows {
 public:
  // Most shadows of one leaf. The change of a leaf lists its shadows, and must fit into a message (change_wire.h).
  static constexpr size_t kMost = 128;

  // True if `absorber` can take over the range of `dead`. The caller is the only one that adds shadows.
  bool HasRoom(Leaf<W> absorber, Leaf<W> dead) const {
    std::lock_guard lock(mutex_);
    return CountOf(absorber) + CountOf(dead) < kMost;
  }

  // `absorber` covers the range of `dead` from now on. Called by the holder of both locks.
  void Add(Leaf<W> absorber, Leaf<W> dead) {
    std::lock_guard lock(mutex_);
    std::vector<Leaf<W>> added;
    if (const auto own = shadows_.find(dead.at()); own != shadows_.end()) {
      added = std::move(own->second);
      shadows_.erase(own);
    }
    added.push_back(dead);
    std::vector<Leaf<W>>& all = shadows_[absorber.at()];
    for (const Leaf<W> leaf : added) {
      leaf_of_[leaf.at()] = absorber.at();
      all.push_back(leaf);
    }
    GANNET_CHECK(all.size() <= kMost, "a leaf has %d shadows; the message of a change has room for %d", all.size(),
                 kMost);
  }

  // The set of `leaf` changes: gives its shadows new versions and calls changed(shadow, before, after) for each. Called
  // by the holder of the leaf's lock, and before it returns it.
  //
  // The lock of a shadow is a CAS, so before the caller's transaction reads anything for its validation, others find
  // the shadow locked or changed. A shadow is locked by none but this, and by a thread that took it for a leaf and
  // gives it back at once (unlink.cc).
  template <class Changed>
  void End(Leaf<W> leaf, const Changed& changed) {
    std::lock_guard lock(mutex_);
    const auto found = shadows_.find(leaf.at());
    if (found == shadows_.end()) return;
    for (Leaf<W> shadow : found->second) {
      uint64_t state = shadow.state();
      for (Backoff wait; (state & rdma::kLockBit) != 0 || !shadow.TryLock(state); state = shadow.state()) wait.Pause();
      shadow.Publish(NextSet(state));
      changed(shadow, state, NextSet(state));
      leaf_of_.erase(shadow.at());
    }
    shadows_.erase(found);
  }

  // The grace period of `dead` has ended. It is no shadow from now on, and is not touched here any more.
  void Forget(Leaf<W> dead) {
    std::lock_guard lock(mutex_);
    const auto found = leaf_of_.find(dead.at());
    if (found == leaf_of_.end()) return;
    const auto all = shadows_.find(found->second);
    std::erase(all->second, dead);
    if (all->second.empty()) shadows_.erase(all);
    leaf_of_.erase(found);
  }

 private:
  size_t CountOf(Leaf<W> leaf) const {
    const auto found = shadows_.find(leaf.at());
    return found == shadows_.end() ? 0 : found->second.size();
  }

  mutable Mutex mutex_;                                            // guards the members below
  absl::flat_hash_map<std::byte*, std::vector<Leaf<W>>> shadows_;  // by the leaf that covers their ranges
  absl::flat_hash_map<std::byte*, std::byte*> leaf_of_;            // by shadow
};

}  // namespace gannet::index::xstore
