// The functions of OwnLeaves, for the sources that instantiate it.
#pragma once

#include <algorithm>
#include <bit>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/mutant.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/claim/claim.h"
#include "index/shared_leaf/leaf/leaf_scan.h"
#include "index/shared_leaf/owner/own_leaves.h"

namespace gannet::index::shared_leaf {

template <class Keys>
LeafLook OwnLeaves<Keys>::Read(rdma::GlobalAddress address, Image* image, Patience* patience) const {
  if (!blocks_->MayHave(address)) return LeafLook::kDead;
  do {
    const LeafLook look = Keys::Look(*blocks_, *schema_, address.offset(), image);
    if (look == LeafLook::kWhole || look == LeafLook::kDead) return look;
  } while (patience->Pause());
  return LeafLook::kDead;
}

template <class Keys>
bool OwnLeaves<Keys>::GoRight(LeafCopy* leaf) const {
  if (Keys::IsLast(leaf->image)) return false;
  const Key low = Keys::NextLow(leaf->image);
  leaf->address = leaf->image.right();
  return Read(leaf->address, &leaf->image) == LeafLook::kWhole && Keys::LowOf(leaf->image) == low &&
         Keys::CoversKey(leaf->image, low) && leaf->image.level() == 0;
}

template <class Keys>
std::optional<typename Keys::Key> OwnLeaves<Keys>::LowAt(uint64_t offset) const {
  Image image;
  if (!blocks_->MayHave({node_->id(), offset}) || Keys::Look(*blocks_, *schema_, offset, &image) != LeafLook::kWhole) {
    return std::nullopt;
  }
  return Keys::LowOf(image);
}

template <class Keys>
void OwnLeaves<Keys>::LoadKeys(LeafCopy* leaf) const {
  LoadAllKeys<Keys>(*blocks_, *schema_, leaf);
}

template <class Keys>
Status OwnLeaves<Keys>::EndlessError() const {
  return absl::DataLossError(absl::StrCat("the ", name_, " has no end: a client has damaged it"));
}

template <class Keys>
Status OwnLeaves<Keys>::ForEach(const Visit& visit) const {
  LeafCopy leaf;
  Key low = Keys::kLeast;
  uint64_t most = Most();
  for (bool first = true;; first = false) {
    if (most-- == 0) return EndlessError();
    if (first || !GoRight(&leaf)) GANNET_RETURN_IF_ERROR(finder_->Locate(Keys::At(low), &leaf));
    visit(leaf);
    if (Keys::IsLast(leaf.image)) return absl::OkStatus();
    low = Keys::NextLow(leaf.image);
  }
}

template <class Keys>
FindResult OwnLeaves<Keys>::FindFrom(LeafCopy* leaf, const index::Key& wanted) const {
  const Key key = Keys::KeyFrom(wanted);
  if (leaf->address.is_null() || !Keys::CoversKey(leaf->image, key)) {
    if (!finder_->Locate(Keys::At(key), leaf).ok()) {
      leaf->address = {};
      return {};  // lost
    }
  }
  if (IsKept(leaf->image.state()) && !GANNET_MUTANT(kKeptReadByOwner))
    return {.record = {}, .witness = leaf->witness()};
  const int slot = FindOwnKey<Keys>(*blocks_, *schema_, key, *leaf);
  if (slot < 0) return {.record = {}, .witness = leaf->witness()};
  return {.record = Keys::TargetOf(leaf->image.template entry<Entry>(slot), node_->id())};
}

// Keys that are near each other, such as the lines of an order, have one leaf. Its copy is of a moment of this call, so
// it is as good for each of them as one that was read for this key.
template <class Keys>
void OwnLeaves<Keys>::FindMany(std::span<const index::Key> keys, std::span<FindResult> results) const {
  LeafCopy leaf;
  for (size_t i = 0; i < keys.size(); ++i) results[i] = FindFrom(&leaf, keys[i]);
}

template <class Keys>
StatusOr<bool> OwnLeaves<Keys>::ScanSome(const Key& from, const Key& to, bool reverse, size_t limit, size_t most_leaves,
                                         ScanResult* result, Cut* next) const {
  const size_t end = limit > SIZE_MAX - result->entries.size() ? SIZE_MAX : result->entries.size() + limit;
  LeafCopy leaf;
  for (size_t leaves = 0; leaves < most_leaves; ++leaves) {
    if (leaves == kManyLeaves) most_leaves = std::min<size_t>(most_leaves, Most());  // it takes a lock
    if (leaves == 0 || reverse || !GoRight(&leaf)) {
      GANNET_RETURN_IF_ERROR(finder_->Locate(Keys::PointOf(*next, reverse), &leaf));
    }
    if (const uint64_t state = leaf.image.state(); IsKept(state)) return LeafIsKept(leaf.address, state);
    LoadKeys(&leaf);
    if (TakeLeaf<Keys>(leaf, from, to, reverse, end, result, next)) return false;
    if (result->entries.size() >= end) return true;
  }
  return true;
}

template <class Keys>
Status OwnLeaves<Keys>::Scan(const ScanRange& range, ScanResult* result) const {
  if (range.limit == 0 || range.to < range.from) return absl::OkStatus();
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  Cut next = Keys::Start(from, to, range.reverse);
  const size_t before = result->entries.size();
  const StatusOr<bool> more = ScanSome(from, to, range.reverse, range.limit, SIZE_MAX, result, &next);
  GANNET_RETURN_IF_ERROR(more.status());
  return *more && result->entries.size() - before < range.limit ? EndlessError() : absl::OkStatus();
}

template <class Keys>
Status OwnLeaves<Keys>::ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                                 ScanResult* result) const {
  const Key from = Keys::KeyFrom(range.from);
  const Key to = Keys::KeyFrom(range.to);
  Cut next = Keys::Start(from, to, range.reverse);
  if (position->has_value()) {
    const Cut at = Keys::CutFrom(FewOf((*position)->words));
    next = range.reverse ? std::min(next, at) : std::max(next, at);
  }
  position->reset();
  if (range.limit == 0 || to < from || Keys::IsPast(next, from, to, range.reverse)) return absl::OkStatus();
  const StatusOr<bool> more = ScanSome(from, to, range.reverse, range.limit, most_witnesses, result, &next);
  if (!more.ok()) return more.status();
  if (*more) Keys::PutCut(next, FewOf(&position->emplace().words));
  return absl::OkStatus();
}

template <class Keys>
ScanPosition OwnLeaves<Keys>::PositionBehind(const index::Key& key, bool reverse) {
  ScanPosition position;
  Keys::PutCut(Keys::Behind(Keys::KeyFrom(key), reverse), FewOf(&position.words));
  return position;
}

template <class Keys>
bool OwnLeaves<Keys>::Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) const {
  constexpr size_t kLeavesPerStep = 16;
  ScanResult result;
  Cut next = Keys::CutFrom(FewOf(position->next));
  const StatusOr<bool> more = ScanSome(Keys::kLeast, Keys::Greatest(), false, SIZE_MAX, kLeavesPerStep, &result, &next);
  for (const index::Entry& entry : result.entries) records->push_back(entry.record);
  Keys::PutCut(next, FewOf(&position->next));
  if (!more.ok()) records->push_back({});
  return more.value_or(false);
}

template <class Keys>
Status OwnLeaves<Keys>::Check(LeafCopy* node, std::optional<Key>* low) const {
  const Image& image = node->image;
  const auto fail = [node](const auto&... what) {
    return absl::InternalError(
        absl::StrCat(node->image.level() == 0 ? "leaf " : "node ", node->address.ToString(), ": ", what...));
  };
  const uint64_t state = LoadWord(blocks_->Memory(node->address.offset()));
  if (IsLocked(state) || state != image.state()) return fail("is locked: state ", absl::Hex(state));
  const Key begins = Keys::LowOf(image);
  if (!low->has_value() || begins != **low) {
    return fail("begins at ", Keys::ToString(begins), ", not where it should");
  }
  *low = NextLowOf<Keys>(image);
  if (image.right().is_null() == low->has_value()) return fail("the chain ends before the last key, or after it");
  LoadKeys(node);
  std::set<Key> keys;
  for (uint64_t used = image.template used<Entry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    const Entry entry = image.template entry<Entry>(slot);
    if (!Keys::Knows(node->keys, slot)) {
      return fail("slot ", slot, " leads to ", Keys::TargetOf(entry, node_->id()).ToString(),
                  ", where there is no key that it covers");
    }
    const Key key = Keys::KeyAt(image, node->keys, slot);
    if (!Keys::CoversKey(image, key)) return fail("has the key ", Keys::ToString(key), ", which it does not cover");
    if (!keys.insert(key).second) return fail("has the key ", Keys::ToString(key), " twice");
    if (image.level() == 0 && !Keys::IsEntryOf(*schema_, key, entry)) {
      return fail("has another tag for the key ", Keys::ToString(key));
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet::index::shared_leaf
