// A chain of buckets, locked for a change. All writes to buckets that others may read are here (bucket.h says what a
// racing reader sees).
#pragma once

#include <cstdint>
#include <span>

#include "absl/container/inlined_vector.h"
#include "index/hash/bucket.h"

namespace gannet::index::hash {

class LockedChain {
 public:
  // Waits for the lock of `head`. `memory` is the beginning of the node's memory.
  LockedChain(std::byte* memory, std::byte* head);
  // Unlocks the chain. Without Publish, its version does not change.
  ~LockedChain();
  LockedChain(const LockedChain&) = delete;
  LockedChain& operator=(const LockedChain&) = delete;

  const std::byte* head() const { return buckets_[0]; }
  int depth() const { return DepthOf(LoadLink(buckets_[0])); }
  int length() const { return static_cast<int>(buckets_.size()); }
  // Used slots of the chain, numbered 0 .. count() - 1.
  int count() const { return count_; }
  uint64_t slot(int i) const { return LoadSlot(buckets_[i / kSlots], i % kSlots); }
  // Number of the slot that holds exactly this word, or -1.
  int FindSlot(uint64_t word) const;

  // True if one more slot fits without another bucket.
  bool HasRoom() const { return count_ < length() * kSlots; }
  // Puts `bucket`, fresh from the slab, at the end of a full chain.
  void AddBucket(std::byte* bucket);
  // Requires HasRoom().
  void Append(uint64_t slot);
  // Fills the gap with the last slot.
  void Erase(int i);
  // Replaces one word: readers see the old slot or the new one, and the version stays, so Publish is not needed.
  void Replace(int i, uint64_t slot);
  void SetDepth(int depth);
  // Keeps only these slots, in this order, and sets the head's depth. `slots` must fit into the chain.
  void Rewrite(std::span<const uint64_t> slots, int depth);

  // Takes the last bucket off the chain if it is empty (and not the head); otherwise returns null. The bucket may be
  // retired after Publish.
  std::byte* TakeEmptyBucket();

  // Makes the change visible: the version goes from before() to before() + 1. Releases the lock.
  void Publish();
  uint64_t before() const { return version_; }
  uint64_t after() const { return version_ + 1; }

 private:
  void CheckHeld() const;
  void MarkBusy(int bucket);
  void StoreSlot(int i, uint64_t slot);
  void StoreLink(int bucket, uint64_t link);
  // True if slot i has the tag of an earlier one.
  bool RepeatsTag(int i) const;
  void SetAmbiguous(bool ambiguous);
  // Checks all slots. Only needed after the removal of slots from an ambiguous chain.
  void UpdateAmbiguity();

  std::byte* memory_;
  absl::InlinedVector<std::byte*, kUsualChain> buckets_;
  int count_ = 0;
  uint64_t version_ = 0;
  bool published_ = false;
};

}  // namespace gannet::index::hash
