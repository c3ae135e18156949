// LeafDraft: a leaf as its changer wants it, and the verbs that make it so (leaf.h has the protocol).
//
//   LeafDraft draft(address, image, owner_bits);       // a whole image, as READ
//   await a posting with draft.Lock()                  // it must find draft.unlocked(); else READ again
//   draft.Add(entry); draft.Add(another);
//   draft.AppendChange(&posting);                      // [lines][line 0]
//   await the posting
//
// A change of a claimed leaf (claim/claim.h) by its holder publishes the claim with the next version, and a change by
// another, who has ended it, a word without one.
//
// If a posting fails although the owner lives, it can be repeated (leaf_channel.h): WRITEs to a leaf while its lock is
// held, and at any time what AppendUnlock and AppendDead add, which are CASes for that reason.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "index/index.h"
#include "index/lock_word.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "index/shared_leaf/leaf/posting.h"
#include "index/shared_leaf/leaf/tagged_leaf.h"

namespace gannet::index::shared_leaf {

// The lock of a leaf, as its changer sees it.
class LeafLock {
 public:
  // `owner_bits`: of the worker that takes the lock (lock_word.h).
  LeafLock(rdma::GlobalAddress address, uint64_t version, uint64_t owner_bits)
      : address_(address), owner_bits_(owner_bits), version_(version) {}

  rdma::GlobalAddress address() const { return address_; }
  // The state word when the leaf is not locked: as it was READ, later as it was published.
  uint64_t unlocked() const { return version_; }
  // The witness of this leaf, as published.
  Witness witness() const { return {address_, unlocked()}; }

  // CAS that takes the lock. It succeeded if it finds unlocked().
  rdma::Operation Lock() const {
    return rdma::Operation::CompareAndSwap(address_, version_, Locked(version_, owner_bits_));
  }
  // CAS that gives the lock back. Only if no line was written: otherwise AppendChange.
  rdma::Operation GiveBack() const {
    return rdma::Operation::CompareAndSwap(address_, Locked(version_, owner_bits_), version_);
  }

 protected:
  rdma::GlobalAddress address_;
  uint64_t owner_bits_;
  uint64_t version_;  // that is, or was last, in the state word
};

template <class Head>
class BasicLeafDraft : public LeafLock {
 public:
  using Image = BasicLeafImage<Head>;

  // `image` is whole.
  BasicLeafDraft(rdma::GlobalAddress address, const Image& image, uint64_t owner_bits);
  // A new leaf in a block that only the caller knows, empty and locked. `last_word`: the first word of the block, dead;
  // its version is the largest that a line of the block had. Its fences are to be set.
  BasicLeafDraft(rdma::GlobalAddress address, uint64_t last_word, uint8_t level, uint64_t owner_bits,
                 size_t fence_lines = 0);

  const Image& image() const { return image_; }

  // The changes below are made in the draft. They reach the leaf by AppendChange or AppendNew.

  // Fills a free slot and returns it; -1 if there is none. Takes one of a line that changes anyway, if it can.
  template <class Entry>
  int Add(const Entry& entry) {
    const int slot = FreeSlot<Entry>();
    if (slot < 0) return slot;
    Fill(slot, entry);
    LeafSlots slots = LeafSlots::Unpack(image_.head.slots);
    slots.bitmap |= uint64_t{1} << slot;
    slots.last = static_cast<uint8_t>(slot);
    image_.head.slots = slots.Pack();
    return slot;
  }
  // Adds an entry for a caller that has counted the free slots: without one, the key would be lost.
  template <class Entry>
  void AddToRoom(const Entry& entry) {
    const int slot = Add(entry);
    GANNET_CHECK(slot >= 0, "leaf %s has no room for another entry; slots %x are used", address_.ToString(),
                 image_.head.slots);
  }
  void Remove(int slot) {
    GANNET_CHECK((image_.head.slots >> slot & 1) != 0, "slot %d of leaf %s is removed and not used", slot,
                 address_.ToString());
    image_.head.slots &= ~(uint64_t{1} << slot);
  }
  // Commits with its line, as other changes of the draft do with line 0: if the client dies in between, this one may
  // have been made and those not.
  template <class Entry>
  void Replace(int slot, const Entry& entry) {
    GANNET_CHECK((image_.head.slots >> slot & 1) != 0, "slot %d of leaf %s is replaced; slots %x are used", slot,
                 address_.ToString(), image_.head.slots);
    Fill(slot, entry);
  }
  void set_level(uint8_t level) {
    LeafSlots slots = LeafSlots::Unpack(image_.head.slots);
    slots.level = level;
    image_.head.slots = slots.Pack();
  }
  void set_right(rdma::GlobalAddress right) { image_.head.right = right.bits(); }

  // The fences of integer keys.
  void set_low(uint64_t low) requires std::same_as<Head, LeafHead> { image_.head.low = low; }
  void set_high(uint64_t high) requires std::same_as<Head, LeafHead> { image_.head.high = high; }
  // The fences of byte keys. The low one is set in a new leaf only; the high one once per lock: the next would
  // overwrite the copy that counts until line 0 is written.
  void set_low(const ByteKey& low) requires std::same_as<Head, TaggedHead> {
    changed_lines_ |= StoreFence(&image_, Fence::kLow, low);
  }
  void set_high(const std::optional<ByteKey>& high) requires std::same_as<Head, TaggedHead> {
    changed_lines_ |= StoreFence(&image_, Fence::kOtherHigh, high);
    LeafSlots slots = LeafSlots::Unpack(image_.head.slots);
    slots.high_copy ^= 1;
    image_.head.slots = slots.Pack();
  }

  // These lines of the image, bits of image().lines, are not as the leaf has them.
  void SetChanged(uint32_t lines) { changed_lines_ |= lines; }
  // Leaves out versions: the next change publishes a version that is greater by this number. Only while the leaf is
  // locked, with no line written. So that each of several changes that are made as one has a version of its own.
  void SkipVersions(uint64_t number) { version_ = VersionOf(version_ + number); }

  // WRITEs of the lines that changed, then of line 0, which publishes the next version. It unlocks, or keeps the lock
  // for another change by this draft.
  enum class Then : uint8_t { kUnlock, kKeepLock };
  void AppendChange(Posting* posting, Then then = Then::kUnlock);
  // One WRITE of the whole new leaf, which stays locked.
  void AppendNew(Posting* posting);
  // CAS of the state word: unlocks what AppendNew wrote, or marks a locked leaf dead. Both publish the next version. So
  // if the CAS is repeated, it does not release a lock that another coroutine of this worker has taken meanwhile.
  void AppendUnlock(Posting* posting) { AppendNext(posting, /*dead=*/false); }
  void AppendDead(Posting* posting) { AppendNext(posting, /*dead=*/true); }

 private:
  template <class Entry>
  int FreeSlot() const {
    const uint64_t free = ~image_.template used<Entry>() & ((uint64_t{1} << Entry::kSlots) - 1);
    if (free == 0) return -1;
    uint64_t preferred = 0;
    for (int line = 0; line < kSlotLines; ++line) {
      if ((changed_lines_ >> (image_.head.fence_lines() + static_cast<size_t>(line)) & 1) != 0) {
        preferred |= ((uint64_t{1} << Entry::kPerLine) - 1) << (line * Entry::kPerLine);
      }
    }
    return std::countr_zero((free & preferred) != 0 ? free & preferred : free);
  }
  template <class Entry>
  void Fill(int slot, const Entry& entry) {
    image_.set_entry(slot, entry);
    changed_lines_ |= 1u << image_.template LineOf<Entry>(slot);
  }
  void Stamp(uint64_t state);
  void AppendNext(Posting* posting, bool dead);

  uint32_t changed_lines_ = 0;  // of image_.lines
  Image image_;
};

using LeafDraft = BasicLeafDraft<LeafHead>;
using TaggedDraft = BasicLeafDraft<TaggedHead>;

}  // namespace gannet::index::shared_leaf
