#include "index/hash/locked_chain.h"

#include "base/check.h"
#include "index/hash/spin_wait.h"

namespace gannet::index::hash {
namespace {

int UsedSlots(const std::byte* bucket) {
  int used = 0;
  while (used < kSlots && LoadSlot(bucket, used) != 0) ++used;
  return used;
}

}  // namespace

LockedChain::LockedChain(std::byte* memory, std::byte* head) : memory_(memory) {
  for (SpinWait wait;; wait.Once()) {
    version_ = LoadWord(head);
    if ((version_ & rdma::kLockBit) == 0 && CompareAndSwapWord(head, version_, version_ | rdma::kLockBit) == version_) {
      break;
    }
  }
  buckets_.push_back(head);
  for (uint64_t next = NextOf(LoadLink(head)); next != 0; next = NextOf(LoadLink(buckets_.back()))) {
    buckets_.push_back(memory + next);
  }
  count_ = (length() - 1) * kSlots + UsedSlots(buckets_.back());
}

LockedChain::~LockedChain() {
  if (published_) return;
  CheckHeld();
  StoreWord(buckets_[0], version_);
}

// Only this node's CPU writes buckets, so the lock that was taken is there until it is given back.
void LockedChain::CheckHeld() const {
  const uint64_t word = LoadWord(buckets_[0]);
  GANNET_CHECK(!published_ && word == (version_ | rdma::kLockBit), "the head of a chain has %x, not %x with the lock",
               word, version_);
}

int LockedChain::FindSlot(uint64_t word) const {
  for (int i = 0; i < count_; ++i) {
    if (slot(i) == word) return i;
  }
  return -1;
}

void LockedChain::AddBucket(std::byte* bucket) {
  const auto offset = static_cast<uint64_t>(bucket - memory_);
  GANNET_CHECK(!HasRoom() && NextOf(offset) == offset, "a bucket at %d for %d slots in %d buckets", offset, count_,
               length());
  // No bucket links to it yet, but a client that took its address from a record may READ it.
  StoreWord(bucket, rdma::kLineBusy);
  StoreWord(LinkWord(bucket), MakeLink(0, 0, kOverflowMark));
  for (int i = 0; i < kSlots; ++i) StoreWord(SlotWord(bucket, i), 0);
  const int last = length() - 1;
  StoreLink(last, LoadLink(buckets_[last]) | offset);
  buckets_.push_back(bucket);
}

void LockedChain::Append(uint64_t slot) {
  // Readers stop at the first empty slot, and take each other one for a record.
  GANNET_CHECK(HasRoom() && slot != 0, "slot %x is added to %d slots in %d buckets", slot, count_, length());
  StoreSlot(count_++, slot);
  if (RepeatsTag(count_ - 1)) SetAmbiguous(true);
}

void LockedChain::Replace(int i, uint64_t slot) {
  GANNET_CHECK(i >= 0 && i < count_, "slot %d of %d is replaced", i, count_);
  GANNET_CHECK(TagOf(slot) == TagOf(this->slot(i)), "slot %d, %x, is replaced by %x, with another tag", i,
               this->slot(i), slot);
  StoreWord(SlotWord(buckets_[i / kSlots], i % kSlots), slot);
}

void LockedChain::Erase(int i) {
  GANNET_CHECK(i >= 0 && i < count_, "slot %d of %d is erased", i, count_);
  const int last = --count_;
  if (i != last) StoreSlot(i, slot(last));
  StoreSlot(last, 0);
  if ((LoadLink(buckets_[0]) & kAmbiguous) != 0) UpdateAmbiguity();
}

void LockedChain::SetDepth(int depth) {
  GANNET_CHECK(depth >= 0 && depth <= kMaxDepth, "a bucket of depth %d", depth);
  const uint64_t link = LoadLink(buckets_[0]);
  StoreLink(0, MakeLink(depth, NextOf(link), link & kLinkFlags));
}

void LockedChain::Rewrite(std::span<const uint64_t> slots, int depth) {
  const int kept = static_cast<int>(slots.size());
  GANNET_CHECK(kept <= length() * kSlots, "%d slots for %d buckets", kept, length());
  for (int i = 0; i < kept; ++i) StoreSlot(i, slots[i]);
  for (int i = kept; i < count_; ++i) StoreSlot(i, 0);
  count_ = kept;
  SetDepth(depth);
  UpdateAmbiguity();
}

std::byte* LockedChain::TakeEmptyBucket() {
  if (length() == 1 || count_ > (length() - 1) * kSlots) return nullptr;
  std::byte* taken = buckets_.back();
  buckets_.pop_back();
  const int last = length() - 1;
  const uint64_t link = LoadLink(buckets_[last]);
  StoreLink(last, link & ~NextOf(link));
  StoreWord(taken, after());  // no longer busy, and its next user cannot take it for a locked word
  return taken;
}

// The head's word comes last: it is the lock, and what a reader of the whole chain compares the others with.
void LockedChain::Publish() {
  CheckHeld();
  for (int i = 1; i < length(); ++i) StoreWord(buckets_[i], after());
  PreemptionPoint();
  StoreWord(buckets_[0], after());
  published_ = true;
}

void LockedChain::MarkBusy(int bucket) {
  if (bucket > 0) StoreWord(buckets_[bucket], rdma::kLineBusy);  // the head is locked
}

void LockedChain::StoreSlot(int i, uint64_t slot) {
  MarkBusy(i / kSlots);
  PreemptionPoint();
  StoreWord(SlotWord(buckets_[i / kSlots], i % kSlots), slot);
}

void LockedChain::StoreLink(int bucket, uint64_t link) {
  MarkBusy(bucket);
  StoreWord(LinkWord(buckets_[bucket]), link);
}

bool LockedChain::RepeatsTag(int i) const {
  const uint64_t tag = TagOf(slot(i));
  for (int j = 0; j < i; ++j) {
    if (TagOf(slot(j)) == tag) return true;
  }
  return false;
}

void LockedChain::SetAmbiguous(bool ambiguous) {
  const uint64_t link = LoadLink(buckets_[0]);
  StoreLink(0, ambiguous ? link | kAmbiguous : link & ~kAmbiguous);
}

void LockedChain::UpdateAmbiguity() {
  bool ambiguous = false;
  for (int i = 1; i < count_ && !ambiguous; ++i) ambiguous = RepeatsTag(i);
  SetAmbiguous(ambiguous);
}

}  // namespace gannet::index::hash
