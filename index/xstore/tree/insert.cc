// XTree: changes of one leaf. split.cc handles full leaves.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/sometimes.h"
#include "index/backoff.h"
#include "index/xstore/tree/tree.h"

namespace gannet::index::xstore {

template <int W>
auto Tree<W>::TryInsert(Leaf<W> leaf, const Words& key, uint64_t record, StatusOr<Change>* result,
                        rdma::GlobalAddress* existing) -> Outcome {
  const uint64_t state = leaf.state();
  if ((state & rdma::kLockBit) != 0) [[unlikely]] {
    Sometimes<"xstore: an insert meets a locked leaf">();
    return Outcome::kRetry;
  }
  const LeafMeta meta = leaf.meta();
  const bool covers = leaf.Covers(key);
  const int slot = leaf.FindSlot(records_, key, meta.count);
  if (slot >= 0) {
    const uint64_t found = leaf.record(records_, slot);
    if (leaf.state() != state) return Outcome::kRetry;
    if (existing != nullptr) *existing = rdma::GlobalAddress::FromBits(found);
    *result = absl::AlreadyExistsError("the key is in the index");
    return Outcome::kDone;
  }
  if (!covers) [[unlikely]] {
    Sometimes<"xstore: an insert is led to a leaf that is not the key's any more">();
    return Outcome::kRetry;
  }
  if (meta.count == LeafLayout<W>::kSlots) return leaf.state() == state ? Outcome::kFull : Outcome::kRetry;
  // The place is still right under the lock: TryLock fails if the leaf has changed.
  const int place = leaf.PlaceFor(records_, key, meta.count);
  if (!leaf.TryLock(state)) [[unlikely]]
    return Outcome::kRetry;
  *result = InsertLocked(leaf, state, meta, place, key, record);
  LeafHint<W>::Set(number_, key, leaf);
  return Outcome::kDone;
}

template <int W>
StatusOr<Change> Tree<W>::InsertLocked(Leaf<W> leaf, uint64_t state, const LeafMeta& meta, int slot, const Words& key,
                                       uint64_t record) {
  GANNET_CHECK(meta.count < LeafLayout<W>::kSlots && slot >= 0 && slot <= static_cast<int>(meta.count),
               "slot %d of a leaf with %d of %d", slot, meta.count, LeafLayout<W>::kSlots);
  leaf.Insert(slot, key, record, meta);
  return PublishSet(leaf, state);
}

// The shadows change before the leaf is unlocked. Otherwise a transaction could see the new set of keys while another
// one, which has seen a shadow before, still finds its witness valid.
template <int W>
Change Tree<W>::PublishSet(Leaf<W> leaf, uint64_t state) {
  // Only this node's CPU writes leaves, so the lock that was taken is there until it is given back.
  GANNET_CHECK(leaf.state() == (state | rdma::kLockBit), "a leaf that was locked in state %x has %x", state,
               leaf.state());
  Change change(AddressOf(leaf), state, NextSet(state));
  if ((state & kHasShadows) != 0) [[unlikely]] {
    Sometimes<"xstore: a change of a leaf changes its shadows, too">();
    shadows_->End(leaf, [&](Leaf<W> shadow, uint64_t before, uint64_t after) {
      change.AddChanged(AddressOf(shadow), before, after);
    });
  }
  leaf.Publish(NextSet(state));
  return change;
}

template <int W>
StatusOr<Change> Tree<W>::Insert(Context& context, const Words& key, rdma::GlobalAddress record,
                                 rdma::GlobalAddress* existing, Leaf<W> leaf) {
  StatusOr<Change> result{Change{}};
  if (leaf.is_null()) leaf = LeafHint<W>::Get(number_, key);
  for (Backoff backoff;; backoff.Pause()) {
    if (leaf.is_null()) {
      leaf = Locate(key);
      leaf.PrefetchAll();
    }
    const Outcome outcome = TryInsert(leaf, key, record.bits(), &result, existing);
    if (outcome == Outcome::kDone) [[likely]]
      return result;
    if (outcome == Outcome::kFull) return SplitAndInsert(context, key, record.bits(), existing);
    leaf = Leaf<W>();
  }
}

template <int W>
StatusOr<Change> Tree<W>::Remove(Context& context, const Words& key, rdma::GlobalAddress record, Leaf<W> leaf) {
  if (leaf.is_null()) leaf = LeafHint<W>::Get(number_, key);
  if (leaf.is_null()) leaf = Locate(key);
  for (Backoff backoff;; backoff.Pause(), leaf = Locate(key)) {
    const uint64_t state = leaf.state();
    if ((state & rdma::kLockBit) != 0) continue;
    const LeafMeta meta = leaf.meta();
    const Words low = leaf.low();
    if (!leaf.Covers(key)) continue;
    const int slot = leaf.FindPair(records_, key, record.bits(), meta.count);
    if (slot < 0) {
      if (leaf.state() != state) continue;
      return absl::NotFoundError("the key is not in the index with this record");
    }
    if (!leaf.TryLock(state)) continue;
    // A Replace may have come before the lock. No transaction does that: both would hold the record's lock.
    if (leaf.record(records_, slot) != record.bits()) {
      leaf.Unlock(state);
      continue;
    }
    GANNET_CHECK(slot < static_cast<int>(meta.count) && meta.count <= LeafLayout<W>::kSlots,
                 "slot %d of a leaf with %d", slot, meta.count);
    leaf.Remove(slot, meta);
    Change change = PublishSet(leaf, state);
    if (meta.count == 1) {
      NoteEmpty(context, low);
      UnlinkEmptyLeaves(context);
    }
    return change;
  }
}

// Changes one word and no key, so the version stays. The lock excludes writers that move pairs between slots.
template <int W>
Status Tree<W>::Replace(const Words& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  Leaf<W> leaf = Locate(key);
  for (Backoff backoff;; backoff.Pause(), leaf = Locate(key)) {
    const uint64_t state = leaf.state();
    if ((state & rdma::kLockBit) != 0 || !leaf.Covers(key)) continue;
    const int slot = leaf.FindPair(records_, key, from.bits(), leaf.meta().count);
    if (slot < 0) {
      if (leaf.state() != state) continue;
      return absl::NotFoundError("the key is not in the index with this record");
    }
    if (!leaf.TryLock(state)) continue;
    // The record is checked under the lock, because another Replace does not change the version.
    const bool same = leaf.record(records_, slot) == from.bits();
    if (same) leaf.set_record(slot, to.bits());
    leaf.Unlock(state);
    if (same) return absl::OkStatus();
  }
}

#define GANNET_INSTANTIATE(W)                                                                                       \
  template Change Tree<W>::PublishSet(Leaf<W>, uint64_t);                                                           \
  template StatusOr<Change> Tree<W>::InsertLocked(Leaf<W>, uint64_t, const LeafMeta&, int, const Words&, uint64_t); \
  template StatusOr<Change> Tree<W>::Insert(Context&, const Words&, rdma::GlobalAddress, rdma::GlobalAddress*,      \
                                            Leaf<W>);                                                               \
  template StatusOr<Change> Tree<W>::Remove(Context&, const Words&, rdma::GlobalAddress, Leaf<W>);                  \
  template Status Tree<W>::Replace(const Words&, rdma::GlobalAddress, rdma::GlobalAddress);
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
