#include "index/shared_leaf/leaf/leaf_split.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace gannet::index::shared_leaf {
namespace {

// An entry of the leaf, or a new one.
struct Merged {
  int slot;  // -1: a new entry
  size_t added;
};

}  // namespace

template <class Keys>
SplitPlanOf<Keys> PlanSplit(const typename Keys::Image& leaf, const typename Keys::EntryKeys& keys,
                            std::span<const typename Keys::IndexEntry> added) {
  constexpr size_t kSlots = Keys::kSlots;
  std::array<Merged, 2 * kSlots> all;
  size_t size = 0;
  for (uint64_t used = leaf.template used<typename Keys::Entry>(); used != 0; used &= used - 1) {
    all[size++] = {std::countr_zero(used), 0};
    GANNET_CHECK(Keys::Knows(keys, all[size - 1].slot), "a split without the key of slot %d", all[size - 1].slot);
  }
  const size_t present = size;
  GANNET_CHECK(!added.empty() && added.size() <= kSlots && present + added.size() > kSlots, "%d and %d entries",
               present, added.size());
  for (size_t i = 0; i < added.size(); ++i) all[size++] = {-1, i};
  const auto key = [&](const Merged& entry) -> decltype(auto) {
    using Key = typename Keys::Key;
    if constexpr (Keys::kKeysElsewhere) {
      return static_cast<const Key&>(entry.slot < 0 ? Keys::KeyOf(added[entry.added])
                                                    : Keys::KeyAt(leaf, keys, entry.slot));
    } else {
      return entry.slot < 0 ? Keys::KeyOf(added[entry.added]) : Keys::KeyAt(leaf, keys, entry.slot);
    }
  };
  std::sort(all.begin(), all.begin() + size, [&key](const Merged& a, const Merged& b) { return key(a) < key(b); });

  size_t first = 0;  // of the new entries
  while (all[first].slot >= 0) ++first;
  size_t end = first;
  while (end < size && all[end].slot < 0) ++end;
  const bool ascending =
      end - first == added.size() && first > 0 && all[first - 1].slot == LeafSlots::Unpack(leaf.head.slots).last;
  const size_t left = std::clamp(ascending ? end : (size + 1) / 2, size - kSlots, std::min(kSlots, size - 1));

  SplitPlanOf<Keys> plan;
  // Appended keys come soon after the last one, so the gap goes where the next keys will.
  plan.border = Keys::Border(key(all[left - 1]), key(all[left]), leaf.level(), ascending && end == size);
  for (size_t i = 0; i < size; ++i) {
    if (all[i].slot < 0) {
      plan.new_left += i < left ? 1 : 0;
    } else if (i >= left) {
      plan.moved |= uint64_t{1} << all[i].slot;
    }
  }
  return plan;
}

namespace {

// Gives the right leaf its content, and the left one its end.
template <class Keys>
void Divide(const SplitPlanOf<Keys>& plan, std::span<const typename Keys::IndexEntry> added, typename Keys::Draft* left,
            typename Keys::Draft* right) {
  using Entry = typename Keys::Entry;
  Keys::SetLow(right, plan.border);
  Keys::SetNextLow(right, NextLowOf<Keys>(left->image()));
  right->set_right(left->image().right());
  for (uint64_t moved = plan.moved; moved != 0; moved &= moved - 1) {
    const int slot = std::countr_zero(moved);
    right->AddToRoom(left->image().template entry<Entry>(slot));
    left->Remove(slot);
  }
  for (const auto& entry : added.subspan(plan.new_left)) right->AddToRoom(Keys::EntryOf(entry));
  Keys::SetNextLow(left, plan.border);
  left->set_right(right->address());
}

// The new leaves are ready, and nobody knows them yet. `added`: to the left leaf.
template <class Keys>
void AppendDivided(std::span<const typename Keys::IndexEntry> added, typename Keys::Draft* left,
                   std::span<typename Keys::Draft> fresh, Posting* posting) {
  for (auto& right : fresh) right.AppendNew(posting);
  if (added.empty()) {
    left->AppendChange(posting);
  } else {
    // The slots of the new entries may be those of entries that move, and are free only when line 0 says so.
    left->AppendChange(posting, Keys::Draft::Then::kKeepLock);
    for (const auto& entry : added) left->AddToRoom(Keys::EntryOf(entry));
    left->AppendChange(posting);
  }
  for (auto& right : fresh) right.AppendUnlock(posting);
}

}  // namespace

template <class Keys>
void AppendSplit(const SplitPlanOf<Keys>& plan, std::span<const typename Keys::IndexEntry> added,
                 typename Keys::Draft* left, typename Keys::Draft* right, Posting* posting) {
  Divide<Keys>(plan, added, left, right);
  AppendDivided<Keys>(added.first(plan.new_left), left, {right, 1}, posting);
}

template <class Keys>
Spread AppendSpread(const typename Keys::Image& leaf, std::span<const typename Keys::IndexEntry> added,
                    typename Keys::Draft* left, std::span<typename Keys::Draft> fresh, Posting* posting) {
  constexpr size_t kSlots = Keys::kSlots;
  const auto first = added.first(std::min(added.size(), kSlots));
  SplitPlanOf<Keys> plan = PlanSplit<Keys>(leaf, {}, first);
  const auto to_left = first.first(plan.new_left);
  Divide<Keys>(plan, first, left, &fresh[0]);
  Spread spread{.added = first.size(), .leaves = 1};
  while (spread.added < added.size()) {
    typename Keys::Draft& last = fresh[spread.leaves - 1];
    auto next = added.subspan(spread.added, std::min(added.size() - spread.added, kSlots));
    if (Keys::KeyOf(next[0]) < plan.border) break;  // it belongs to a leaf that is full by now
    const size_t room = kSlots - static_cast<size_t>(last.image().template count<typename Keys::Entry>());
    if (next.size() > room && spread.leaves < fresh.size()) {
      plan = PlanSplit<Keys>(last.image(), {}, next);
      Divide<Keys>(plan, next, &last, &fresh[spread.leaves++]);
      for (const auto& entry : next.first(plan.new_left)) last.AddToRoom(Keys::EntryOf(entry));
    } else {
      next = next.first(std::min(next.size(), room));
      if (next.empty()) break;
      for (const auto& entry : next) last.AddToRoom(Keys::EntryOf(entry));
    }
    spread.added += next.size();
  }
  AppendDivided<Keys>(to_left, left, fresh.first(spread.leaves), posting);
  return spread;
}

template <class Keys>
void AppendAbsorb(typename Keys::Draft* left, typename Keys::Draft* right, Posting* posting) {
  using Entry = typename Keys::Entry;
  GANNET_CHECK(left->image().right() == right->address(), "leaf %s absorbs %s", left->address().ToString(),
               right->address().ToString());
  for (uint64_t used = right->image().template used<Entry>(); used != 0; used &= used - 1) {
    left->AddToRoom(right->image().template entry<Entry>(std::countr_zero(used)));
  }
  Keys::SetNextLow(left, NextLowOf<Keys>(right->image()));
  left->set_right(right->image().right());
  left->AppendChange(posting);
  right->AppendDead(posting);
}

template SplitPlan PlanSplit<IntegerKeys>(const LeafImage& leaf, const IntegerKeys::EntryKeys& keys,
                                          std::span<const IntegerEntry> added);
template SplitPlanOf<ByteKeys> PlanSplit<ByteKeys>(const TaggedImage& leaf, const ByteKeys::EntryKeys& keys,
                                                   std::span<const ByteKeys::IndexEntry> added);
template void AppendSplit<IntegerKeys>(const SplitPlan& plan, std::span<const IntegerEntry> added, LeafDraft* left,
                                       LeafDraft* right, Posting* posting);
template Spread AppendSpread<IntegerKeys>(const LeafImage& leaf, std::span<const IntegerEntry> added, LeafDraft* left,
                                          std::span<LeafDraft> fresh, Posting* posting);
template void AppendSplit<ByteKeys>(const SplitPlanOf<ByteKeys>& plan, std::span<const ByteKeys::IndexEntry> added,
                                    TaggedDraft* left, TaggedDraft* right, Posting* posting);
template void AppendAbsorb<IntegerKeys>(LeafDraft* left, LeafDraft* right, Posting* posting);
template void AppendAbsorb<ByteKeys>(TaggedDraft* left, TaggedDraft* right, Posting* posting);

}  // namespace gannet::index::shared_leaf
