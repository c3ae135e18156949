#include "index/dolphin/leaf_draft.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/mutant.h"

namespace gannet::index::dolphin {
namespace {

std::span<const std::byte> Bytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

}  // namespace

LeafDraft::LeafDraft(rdma::GlobalAddress address, const LeafImage& image)
    : address_(address),
      locked_(image.lock.state),
      before_(UnlockedState(image.lock.state, image.head.number)),
      image_(image) {
  GANNET_CHECK(IsLocked(locked_) && !IsAbsent(locked_), "leaf %s is not locked: state %x", address.ToString(), locked_);
}

LeafDraft::LeafDraft(rdma::GlobalAddress address, uint64_t last_word, size_t key_lines, uint64_t owner_bits)
    : address_(address), locked_(Locked(last_word, owner_bits)), before_(last_word) {
  GANNET_CHECK(IsAbsent(last_word) && !IsLocked(last_word), "block %s is in use: state %x", address.ToString(),
               last_word);
  image_ = {};
  image_.head.shape = key_lines;
}

void LeafDraft::Tidy() {
  TakeOut(~image_.used() & ((uint64_t{1} << image_.slots()) - 1));
}

bool LeafDraft::Add(uint64_t key, uint64_t target) {
  GANNET_CHECK(image_.Covers(key) && target != 0, "leaf %s from %d to %d gets the key %d", address_.ToString(),
               image_.head.low, image_.head.high, key);
  const int slot = image_.FreeSlot();
  if (slot < 0) return false;
  image_.set_key_word(slot, image_.WordOf(key));
  image_.set_target(slot, target);
  added_ |= uint64_t{1} << slot;
  return true;
}

void LeafDraft::TakeOut(uint64_t slots) {
  for (; slots != 0; slots &= slots - 1) {
    const int slot = std::countr_zero(slots);
    image_.set_key_word(slot, 0);
    image_.set_target(slot, 0);
  }
  is_rewritten_ = true;
}

void LeafDraft::SetRange(uint64_t low, uint64_t high) {
  GANNET_CHECK(low <= high && high - low < kMostRange, "leaf %s: from %d to %d", address_.ToString(), low, high);
  image_.head.low = low;
  image_.head.high = high;
}

// The target first: a reader takes an entry by its key word.
void LeafDraft::AppendWords(Posting* posting) {
  GANNET_CHECK(!is_rewritten_, "leaf %s gets words and lines", address_.ToString());
  for (uint64_t slots = added_; slots != 0; slots &= slots - 1) {
    const int slot = std::countr_zero(slots);
    const uint64_t target = image_.target(slot);
    const uint64_t key = image_.key_word(slot);
    posting->Write(address_ + TargetOffset(image_.key_lines(), slot), Bytes(&target, kWordBytes));
    posting->Write(address_ + KeyOffset(slot), Bytes(&key, kWordBytes));
  }
}

void LeafDraft::Renumber() {
  const uint64_t number = rdma::VersionWord(VersionOf(NextState(locked_, false)));
  image_.head.number = number;
  for (SlotLine& line : image_.lines) line.number = number;
}

void LeafDraft::AppendLines(Posting* posting) {
  Renumber();
  posting->Write(address_ + 2 * kLineBytes, Bytes(image_.lines.data(), image_.bytes() - 2 * kLineBytes));
}

void LeafDraft::AppendHead(Posting* posting) {
  Renumber();
  posting->Write(address_ + kLineBytes, Bytes(&image_.head, kLineBytes));
}

void LeafDraft::AppendNew(Posting* posting) {
  Renumber();
  posting->Add(rdma::Operation::CompareAndSwap(address_, before_, locked_));
  posting->Write(address_ + kLineBytes, Bytes(&image_.head, image_.bytes() - kLineBytes));
}

void LeafDraft::AppendState(Posting* posting, bool dead) {
  const uint64_t next = NextState(locked_, dead);
  after_ = dead ? next : UnlockedState(next, image_.head.number);
  posting->Add(rdma::Operation::CompareAndSwap(address_, locked_, after_));
  image_.lock.state = after_;
}

std::optional<SplitPlan> PlanSplit(const LeafImage& image, uint64_t key) {
  std::array<uint64_t, kMostSlots> keys;
  size_t n = 0;
  const uint64_t used = image.used();
  for (uint64_t slots = used; slots != 0; slots &= slots - 1) {
    keys[n++] = image.KeyOf(image.key_word(std::countr_zero(slots)));
  }
  GANNET_CHECK(n > 1, "a leaf of %d entries is split", n);
  const auto sorted = std::span(keys).first(n);
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return std::nullopt;
  SplitPlan plan{.border = key > sorted.back() ? key : sorted[n / 2]};
  for (uint64_t slots = used; slots != 0; slots &= slots - 1) {
    const int slot = std::countr_zero(slots);
    if (image.KeyOf(image.key_word(slot)) >= plan.border) plan.moved |= uint64_t{1} << slot;
  }
  return plan;
}

void AppendSplit(const SplitPlan& plan, uint64_t key, uint64_t target, LeafDraft* left, LeafDraft* fresh,
                 Posting* posting) {
  const LeafImage old = left->image();
  fresh->SetRange(plan.border, old.head.high);
  fresh->set_right(old.right());
  for (uint64_t slots = plan.moved; slots != 0; slots &= slots - 1) {
    const int slot = std::countr_zero(slots);
    const bool added = fresh->Add(old.KeyOf(old.key_word(slot)), old.target(slot));
    GANNET_CHECK(added, "leaf %s has no room for what moves there", fresh->address().ToString());
  }
  left->TakeOut(plan.moved);
  left->SetRange(old.head.low, plan.border - 1);
  left->set_right(fresh->address());
  const bool added = (key < plan.border ? left : fresh)->Add(key, target);
  GANNET_CHECK(added, "leaf %s has no room after its split", left->address().ToString());
  fresh->AppendNew(posting);
  left->AppendHead(posting);  // commits
  left->AppendLines(posting);
  left->AppendRelease(posting);
  fresh->AppendRelease(posting);
}

void AppendAbsorb(LeafDraft* left, LeafDraft* right, Posting* posting) {
  const LeafImage& from = right->image();
  left->SetRange(left->image().head.low, from.head.high);
  left->set_right(from.right());
  for (uint64_t slots = from.used(); slots != 0; slots &= slots - 1) {
    const int slot = std::countr_zero(slots);
    const bool added = left->Add(from.KeyOf(from.key_word(slot)), from.target(slot));
    GANNET_CHECK(added, "leaf %s has no room for its sibling", left->address().ToString());
  }
  if (GANNET_MUTANT(kHeadFirst)) left->AppendHead(posting);
  left->AppendLines(posting);
  if (!GANNET_MUTANT(kHeadFirst)) left->AppendHead(posting);  // commits
  right->AppendDead(posting);
  left->AppendRelease(posting);
}

bool MayAbsorb(const LeafImage& left, const LeafImage& right) {
  return left.head.low < right.head.low && right.head.high - left.head.low < kMostRange &&
         left.count() + right.count() <= left.slots();
}

}  // namespace gannet::index::dolphin
