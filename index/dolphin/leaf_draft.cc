#include "index/dolphin/leaf_draft.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "base/check.h"
#include "base/mutant.h"

namespace gannet::index::dolphin {
namespace {

std::span<const std::byte> Bytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

// The low fence of the right sibling, if there is one.
template <class Keys>
std::optional<typename Keys::Key> NextLow(const typename Keys::Leaf& leaf) {
  return shared_leaf::NextLowOf<Keys>(Keys::View(leaf));
}

}  // namespace

template <class Keys>
LeafDraft<Keys>::LeafDraft(rdma::GlobalAddress address, const Leaf& image)
    : address_(address),
      locked_(image.lock.state),
      before_(UnlockedState(image.lock.state, image.head.number)),
      image_(image) {
  GANNET_CHECK(IsLocked(locked_) && !IsAbsent(locked_), "leaf %s is not locked: state %x", address.ToString(), locked_);
}

template <class Keys>
LeafDraft<Keys>::LeafDraft(rdma::GlobalAddress address, uint64_t last_word, size_t shape_lines, uint64_t owner_bits)
    : address_(address), locked_(Locked(last_word, owner_bits)), before_(last_word) {
  GANNET_CHECK(IsAbsent(last_word) && !IsLocked(last_word), "block %s is in use: state %x", address.ToString(),
               last_word);
  image_ = {};
  image_.SetShape(shape_lines);
}

template <class Keys>
void LeafDraft<Keys>::Tidy() {
  TakeOut(~image_.used() & ((uint64_t{1} << image_.slots()) - 1));
}

template <class Keys>
bool LeafDraft<Keys>::Add(const Entry& entry) {
  GANNET_CHECK(image_.MayHave(entry), "an entry that leaf %s cannot have", address_.ToString());
  const int slot = image_.FreeSlot();
  if (slot < 0) return false;
  image_.Put(slot, entry);
  added_ |= uint64_t{1} << slot;
  return true;
}

template <class Keys>
void LeafDraft<Keys>::Replace(int slot, const Entry& entry) {
  image_.Put(slot, entry);
  is_rewritten_ = true;
}

template <class Keys>
void LeafDraft<Keys>::TakeOut(uint64_t slots) {
  for (; slots != 0; slots &= slots - 1) image_.Clear(std::countr_zero(slots));
  is_rewritten_ = true;
}

template <class Keys>
void LeafDraft<Keys>::SetLow(const Key& low) {
  Keys::SetLow(&image_, low);
}

template <class Keys>
void LeafDraft<Keys>::SetNextLow(const std::optional<Key>& next_low) {
  if constexpr (Keys::kKeysElsewhere) {
    if (GANNET_MUTANT(kOneHighFence)) return image_.SetFence(shared_leaf::Fence::kHigh, next_low);
  }
  Keys::SetNextLow(&image_, next_low);
}

template <class Keys>
void LeafDraft<Keys>::AppendChange(Posting* posting) {
  if (is_rewritten_) {
    AppendLines(posting);
    AppendHead(posting);
  } else {
    AppendWords(posting);
  }
  AppendRelease(posting);
}

// The target first: a reader takes an entry by its key word.
template <class Keys>
void LeafDraft<Keys>::AppendWords(Posting* posting) {
  GANNET_CHECK(!is_rewritten_, "leaf %s gets words and lines", address_.ToString());
  for (uint64_t slots = added_; slots != 0; slots &= slots - 1) {
    const int slot = std::countr_zero(slots);
    if constexpr (!Keys::kKeysElsewhere) {
      const uint64_t target = image_.target(slot);
      posting->Write(address_ + image_.target_offset(slot), Bytes(&target, kWordBytes));
    }
    const uint64_t key = image_.key_word(slot);
    posting->Write(address_ + image_.key_offset(slot), Bytes(&key, kWordBytes));
  }
}

template <class Keys>
void LeafDraft<Keys>::Renumber() {
  const uint64_t number = rdma::VersionWord(VersionOf(NextState(locked_, false)));
  image_.head.number = number;
  for (SlotLine& line : image_.lines) line.number = number;
}

template <class Keys>
void LeafDraft<Keys>::AppendLines(size_t from, Posting* posting) {
  Renumber();
  const size_t lines = image_.LinesIn(Part::kWhole) - from;
  posting->Write(address_ + (2 + from) * kLineBytes, Bytes(image_.lines.data() + from, lines * kLineBytes));
}

template <class Keys>
void LeafDraft<Keys>::AppendFences(Posting* posting) {
  if constexpr (Keys::kKeysElsewhere) {
    Renumber();
    posting->Write(address_ + 2 * kLineBytes, Bytes(image_.lines.data(), image_.fence_lines() * kLineBytes));
  }
}

template <class Keys>
void LeafDraft<Keys>::AppendSlots(Posting* posting) {
  size_t fences = 0;
  if constexpr (Keys::kKeysElsewhere) fences = image_.fence_lines();
  AppendLines(fences, posting);
}

template <class Keys>
void LeafDraft<Keys>::AppendHead(Posting* posting) {
  Renumber();
  posting->Write(address_ + kLineBytes, Bytes(&image_.head, kLineBytes));
}

template <class Keys>
void LeafDraft<Keys>::AppendNew(Posting* posting) {
  Renumber();
  posting->Add(rdma::Operation::CompareAndSwap(address_, before_, locked_));
  posting->Write(address_ + kLineBytes, Bytes(&image_.head, image_.bytes() - kLineBytes));
}

template <class Keys>
void LeafDraft<Keys>::AppendState(Posting* posting, bool dead) {
  const uint64_t next = NextState(locked_, dead);
  after_ = dead ? next : UnlockedState(next, image_.head.number);
  posting->Add(rdma::Operation::CompareAndSwap(address_, locked_, after_));
  image_.lock.state = after_;
}

template <class Keys>
std::optional<SplitPlan<Keys>> PlanSplit(const shared_leaf::LeafCopyOf<Keys>& leaf, const typename Keys::Key& key) {
  std::array<int, static_cast<size_t>(Keys::kSlots)> all;
  size_t n = 0;
  for (uint64_t used = leaf.image.template used<typename Keys::Entry>(); used != 0; used &= used - 1) {
    all[n++] = std::countr_zero(used);
    GANNET_CHECK(Keys::Knows(leaf.keys, all[n - 1]), "a split without the key of slot %d", all[n - 1]);
  }
  GANNET_CHECK(n > 1, "a leaf of %d entries is split", n);
  const auto key_at = [&leaf](int slot) -> decltype(auto) { return Keys::KeyAt(leaf.image, leaf.keys, slot); };
  const auto sorted = std::span(all).first(n);
  std::ranges::sort(sorted, [&](int a, int b) { return key_at(a) < key_at(b); });
  for (size_t i = 1; i < n; ++i) {
    if (key_at(sorted[i - 1]) == key_at(sorted[i])) return std::nullopt;
  }
  const auto border_at = [&](size_t kept) {
    return Keys::Border(key_at(sorted[kept - 1]), kept == n ? key : key_at(sorted[kept]), /*level=*/0,
                        /*appended=*/false);
  };
  SplitPlan<Keys> plan;
  size_t kept = n;
  if (key < key_at(sorted.back())) {
    kept = n / 2;
    size_t best = Keys::ArtKey(border_at(kept)).size();
    for (size_t away = 1; away <= n / 4; ++away) {
      for (const size_t near : {n / 2 - away, n / 2 + away}) {
        const size_t size = Keys::ArtKey(border_at(near)).size();
        if (size >= best) continue;
        best = size;
        kept = near;
      }
    }
  }
  plan.border = border_at(kept);
  for (const int slot : sorted.subspan(kept)) plan.moved |= uint64_t{1} << slot;
  return plan;
}

template <class Keys>
bool HasRoom(const SplitPlan<Keys>& plan, std::span<const typename Keys::IndexEntry> added,
             const typename Keys::Leaf& leaf) {
  const auto to_left =
      std::ranges::count_if(added, [&plan](const auto& one) { return Keys::KeyOf(one) < plan.border; });
  const int moved = std::popcount(plan.moved);
  const auto to_right = static_cast<int64_t>(added.size()) - to_left;
  return leaf.count() - moved + to_left <= leaf.slots() && moved + to_right <= leaf.slots();
}

template <class Keys>
void AppendSplit(const SplitPlan<Keys>& plan, std::span<const typename Keys::IndexEntry> added_entries,
                 LeafDraft<Keys>* left, LeafDraft<Keys>* fresh, Posting* posting) {
  const typename Keys::Leaf old = left->image();
  fresh->SetLow(plan.border);
  fresh->SetNextLow(NextLow<Keys>(old));
  fresh->set_right(old.right());
  for (uint64_t slots = plan.moved; slots != 0; slots &= slots - 1) {
    const bool added = fresh->Add(old.template entry<typename Keys::Entry>(std::countr_zero(slots)));
    GANNET_CHECK(added, "leaf %s has no room for what moves there", fresh->address().ToString());
  }
  left->TakeOut(plan.moved);
  left->SetNextLow(plan.border);
  left->set_right(fresh->address());
  for (const auto& one : added_entries) {
    const bool added = (Keys::KeyOf(one) < plan.border ? left : fresh)->Add(Keys::EntryOf(one));
    GANNET_CHECK(added, "leaf %s has no room after its split", left->address().ToString());
  }
  fresh->AppendNew(posting);
  left->AppendFences(posting);
  left->AppendHead(posting);  // commits
  left->AppendSlots(posting);
  left->AppendRelease(posting);
  fresh->AppendRelease(posting);
}

template <class Keys>
void AppendAbsorb(LeafDraft<Keys>* left, LeafDraft<Keys>* right, Posting* posting) {
  const typename Keys::Leaf& from = right->image();
  left->SetNextLow(NextLow<Keys>(from));
  left->set_right(from.right());
  for (uint64_t slots = from.used(); slots != 0; slots &= slots - 1) {
    const bool added = left->Add(from.template entry<typename Keys::Entry>(std::countr_zero(slots)));
    GANNET_CHECK(added, "leaf %s has no room for its sibling", left->address().ToString());
  }
  if (GANNET_MUTANT(kHeadFirst)) left->AppendHead(posting);
  left->AppendLines(posting);
  if (!GANNET_MUTANT(kHeadFirst)) left->AppendHead(posting);  // commits
  right->AppendDead(posting);
  left->AppendRelease(posting);
}

template <class Keys>
bool MayAbsorb(const typename Keys::Leaf& left, const typename Keys::Leaf& right) {
  if constexpr (!Keys::kKeysElsewhere) {
    // The leaves that an index has from the beginning stay.
    if (right.head.low % kMostRange == 0 || right.head.high - left.head.low >= kMostRange) return false;
  }
  return Keys::LowOf(Keys::View(left)) < Keys::LowOf(Keys::View(right)) && left.count() + right.count() <= left.slots();
}

#define GANNET_INSTANTIATE(Keys)                                                                                   \
  template class LeafDraft<Keys>;                                                                                  \
  template std::optional<SplitPlan<Keys>> PlanSplit<Keys>(const shared_leaf::LeafCopyOf<Keys>&, const Keys::Key&); \
  template bool HasRoom<Keys>(const SplitPlan<Keys>&, std::span<const Keys::IndexEntry>, const Keys::Leaf&);       \
  template void AppendSplit<Keys>(const SplitPlan<Keys>&, std::span<const Keys::IndexEntry>, LeafDraft<Keys>*,     \
                                  LeafDraft<Keys>*, Posting*);                                                     \
  template void AppendAbsorb<Keys>(LeafDraft<Keys>*, LeafDraft<Keys>*, Posting*);                                  \
  template bool MayAbsorb<Keys>(const Keys::Leaf&, const Keys::Leaf&);
GANNET_INSTANTIATE(IntegerKeys)
GANNET_INSTANTIATE(ByteKeys)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::dolphin
