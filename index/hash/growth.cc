// Growth of the hash index: one bucket splits at a time (geometry.h says which one, and where its keys go).
//
// A split changes the old bucket's chain like any other change: the chain is locked, its keys are divided, and the new
// bucket is filled before anything leads to it. Then the old bucket is published with its greater depth, which leads
// readers to the new one. Last the table's size is published, which saves readers the detour.
//
// A split is part of the change of the insert that caused it, so a transaction does not conflict with itself.
#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/sometimes.h"
#include "index/hash/hash_index.h"

namespace gannet::index {

using hash::BucketName;
using hash::LockedChain;

namespace {

// The slots of a chain, divided by one bit of their keys' paths.
struct Division {
  using Slots = absl::InlinedVector<uint64_t, 8 * hash::kSlots>;
  Slots stay;
  Slots move;
};

// Adds a split to the change of an operation. A word that the operation has changed before is listed once. If others
// have changed it in between, what they did must not be hidden, so the word keeps its place in the change.
void AddSplit(const Change& split, const Witness& filled, Change* change) {
  const WordChange& from = split.words()[0];
  Change both;
  bool listed = false;
  for (WordChange word : change->words()) {
    if (word.word == from.word) {
      listed = true;
      if (word.after == from.before) word.after = from.after;
    }
    both.AddChanged(word.word, word.before, word.after);
  }
  if (!listed) both.AddChanged(from.word, from.before, from.after);
  both.AddCreated(filled);
  *change = std::move(both);
}

}  // namespace

void HashIndex::GrowIfCrowded(Context& context, Change* change) {
  // About every tenth insert adds an overflow bucket; a split makes room for four.
  constexpr int kSplitsAtOnce = 4;
  if (!crowded()) return;
  std::unique_lock lock(growth_mutex_, std::try_to_lock);
  const uint64_t overflow = overflow_buckets_.load(std::memory_order_relaxed);
  if (!lock.owns_lock() || overflow < grow_again_at_) return;
  grow_again_at_ = 0;
  for (int i = 0; i < kSplitsAtOnce && crowded(); ++i) {
    if (SplitNext(context, change)) continue;
    grow_again_at_ = overflow + std::max<uint64_t>(overflow / 8, 64);
    return;
  }
}

bool HashIndex::SplitNext(Context& context, Change* change) {
  const hash::TableSize before = size();
  const int depth = before.level() + 1;
  if (depth > hash::kMaxDepth) return false;
  if (segments_[depth] == nullptr && !AllocateSegment(depth).ok()) return false;
  const uint64_t number = before.count() - (initial_ << before.level());
  const BucketName from{number % initial_, static_cast<uint32_t>(number / initial_)};
  const BucketName to{from.place, from.path | uint32_t{1} << before.level()};
  if (!Split(context, Head(from), Head(to), depth, change)) return false;
  size_.store(before.Next(initial_).word(), std::memory_order_release);
  return true;
}

bool HashIndex::Split(Context& context, std::byte* from, std::byte* to, int depth, Change* change) {
  Sometimes<"hash: a bucket splits">();
  LockedChain chain(memory_, from);
  Division division;
  for (int i = 0; i < chain.count(); ++i) Prefetch(memory_ + hash::RecordOffsetOf(chain.slot(i)));
  for (int i = 0; i < chain.count(); ++i) {
    const uint64_t slot = chain.slot(i);
    const OwnedKey key = LoadKey(memory_ + hash::RecordOffsetOf(slot), options_.key_kind);
    const bool moves = (hash::HashOf(hash_, key.view()).path() >> (depth - 1) & 1) != 0;
    (moves ? division.move : division.stay).push_back(slot);
  }
  Witness filled;
  if (!FillNewBucket(context, to, division.move, depth, &filled)) return false;
  chain.Rewrite(division.stay, depth);
  absl::InlinedVector<std::byte*, hash::kUsualChain> empty;
  while (std::byte* bucket = chain.TakeEmptyBucket()) empty.push_back(bucket);
  chain.Publish();
  AddSplit(ChangeOf(chain), filled, change);
  for (std::byte* bucket : empty) RetireOverflow(context, bucket);
  return true;
}

// `head` is zero, and not reachable yet. Returns false, with `head` zero again, if there is no memory for its overflow.
bool HashIndex::FillNewBucket(Context& context, std::byte* head, std::span<const uint64_t> slots, int depth,
                              Witness* filled) {
  LockedChain chain(memory_, head);
  for (const uint64_t slot : slots) {
    if (!chain.HasRoom() && !AddOverflow(context, &chain).ok()) {
      chain.Rewrite({}, 0);
      while (std::byte* bucket = chain.TakeEmptyBucket()) RetireOverflow(context, bucket);
      return false;
    }
    chain.Append(slot);
  }
  chain.SetDepth(depth);
  chain.Publish();
  *filled = {AddressOf(head), chain.after()};
  return true;
}

}  // namespace gannet::index
