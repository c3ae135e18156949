#include "index/remote/leaf_split.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace gannet::index::remote {
namespace {

constexpr size_t kSlots = IntegerEntry::kSlots;

struct Merged {
  uint64_t key;
  int slot;  // -1: a new entry
};

}  // namespace

SplitPlan PlanSplit(const LeafImage& leaf, std::span<const IntegerEntry> added) {
  std::array<Merged, 2 * kSlots> all;
  size_t size = 0;
  for (uint64_t used = leaf.used<IntegerEntry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    all[size++] = {leaf.entry<IntegerEntry>(slot).key, slot};
  }
  const size_t present = size;
  GANNET_CHECK(!added.empty() && added.size() <= kSlots && present + added.size() > kSlots, "%d and %d entries",
               present, added.size());
  for (const IntegerEntry& entry : added) all[size++] = {entry.key, -1};
  std::sort(all.begin(), all.begin() + size, [](const Merged& a, const Merged& b) { return a.key < b.key; });

  size_t first = 0;  // of the new entries
  while (all[first].slot >= 0) ++first;
  size_t end = first;
  while (end < size && all[end].slot < 0) ++end;
  const bool ascending =
      end - first == added.size() && first > 0 && all[first - 1].slot == LeafSlots::Unpack(leaf.head.slots).last;
  const size_t left = std::clamp(ascending ? end : (size + 1) / 2, size - kSlots, std::min(kSlots, size - 1));

  SplitPlan plan;
  // Appended keys come soon after the last one, so the gap goes where the next keys will.
  plan.high = ascending && end == size && leaf.level() == 0 ? all[left - 1].key : all[left].key - 1;
  for (size_t i = 0; i < size; ++i) {
    if (all[i].slot < 0) {
      plan.new_left += i < left ? 1 : 0;
    } else if (i >= left) {
      plan.moved |= uint64_t{1} << all[i].slot;
    }
  }
  return plan;
}

void AppendSplit(const SplitPlan& plan, std::span<const IntegerEntry> added, LeafDraft* left, LeafDraft* right,
                 Posting* posting) {
  right->set_low(plan.high + 1);
  right->set_high(left->image().head.high);
  right->set_right(left->image().right());
  for (uint64_t moved = plan.moved; moved != 0; moved &= moved - 1) {
    const int slot = std::countr_zero(moved);
    right->Add(left->image().entry<IntegerEntry>(slot));
    left->Remove(slot);
  }
  for (const IntegerEntry& entry : added.subspan(plan.new_left)) right->Add(entry);
  right->AppendNew(posting);

  left->set_high(plan.high);
  left->set_right(right->address());
  if (plan.new_left == 0) {
    left->AppendChange(posting);
  } else {
    // Their slots may be those of entries that move, and are free only when line 0 says so.
    left->AppendChange(posting, LeafDraft::Then::kKeepLock);
    for (const IntegerEntry& entry : added.first(plan.new_left)) left->Add(entry);
    left->AppendChange(posting);
  }
  right->AppendUnlock(posting);
}

void AppendAbsorb(LeafDraft* left, LeafDraft* right, Posting* posting) {
  GANNET_CHECK(left->image().right() == right->address(), "leaf %s absorbs %s", left->address().ToString(),
               right->address().ToString());
  for (uint64_t used = right->image().used<IntegerEntry>(); used != 0; used &= used - 1) {
    const int slot = left->Add(right->image().entry<IntegerEntry>(std::countr_zero(used)));
    GANNET_CHECK(slot >= 0, "leaf %s has no room for the entries of %s", left->address().ToString(),
                 right->address().ToString());
  }
  left->set_high(right->image().head.high);
  left->set_right(right->image().right());
  left->AppendChange(posting);
  right->AppendDead(posting);
}

}  // namespace gannet::index::remote
