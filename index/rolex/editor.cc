#include "index/rolex/editor.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "index/backoff.h"

namespace gannet::index::rolex {

using remote::LeafLook;

namespace {

// A leaf with at most kSparse entries gives them to its left neighbour, if that has at most kRoomy then.
constexpr int kSparse = 4;
constexpr int kRoomy = 12;
// Right links that a search follows. They lead to greater keys, so there is an end; but a client may have made many.
constexpr int kMostRights = 100'000;

rdma::GlobalAddress TargetOf(const IntegerEntry& entry) {
  return rdma::GlobalAddress::FromBits(entry.target);
}

Status StaysLocked(rdma::GlobalAddress leaf) {
  return absl::UnavailableError(
      absl::StrCat("the leaf at ", leaf.ToString(), " stays locked, or changes all the time; try again"));
}

}  // namespace

coro::Task<Status> Editor::Locate(uint64_t key, LeafPlace* place) {
  rdma::GlobalAddress before;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const StatusOr<rdma::GlobalAddress> begin = co_await guide_->LeadTo(key, attempt);
    if (!begin.ok()) co_return begin.status();
    if (attempt > 2 && *begin == before) break;  // there is nothing further left
    before = *begin;
    place->address = *begin;
    uint64_t last_low = 0;
    for (int rights = 0; rights < kMostRights; ++rights) {
      const StatusOr<LeafLook> look = co_await leaves_->Read(place->address, &place->image);
      // A wrong address is what a stale or hostile hint may have.
      if (!look.ok() && !absl::IsInvalidArgument(look.status())) co_return look.status();
      if (!look.ok() || *look != LeafLook::kWhole || place->image.level() != 0 || key < place->image.head.low ||
          (rights > 0 && place->image.head.low <= last_low)) {
        break;
      }
      if (rights > 0) guide_->NoteLeaf({place->image.head.low, place->address.offset()});
      if (key <= place->image.head.high) co_return absl::OkStatus();
      last_low = place->image.head.low;
      place->address = place->image.right();
      if (place->address.is_null()) break;
    }
  }
  co_return absl::DataLossError(absl::StrCat("a ROLEX index of node ", leaves_->owner(), " has no way to the key ", key,
                                             ": a client may have damaged it"));
}

coro::Task<StatusOr<Change>> Editor::Insert(uint64_t key, rdma::GlobalAddress record, rdma::GlobalAddress* existing) {
  LeafPlace place;
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    const Status located = co_await Locate(key, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    const int slot = FindSlot(place.image, key);
    if (slot >= 0) {
      if (existing != nullptr) *existing = TargetOf(place.image.entry<IntegerEntry>(slot));
      co_return absl::AlreadyExistsError(absl::StrCat("the key ", key, " is in the index"));
    }
    Change change;
    const IntegerEntry entry{key, record.bits()};
    if (place.image.count<IntegerEntry>() < IntegerEntry::kSlots) {
      const StatusOr<bool> done = co_await changer_.Add(place, entry, &change);
      if (!done.ok()) co_return done.status();
      if (*done) co_return std::move(change);
    } else {
      IntegerEntry right;
      const StatusOr<bool> done = co_await changer_.Split(place, entry, &change, &right);
      if (!done.ok()) co_return done.status();
      if (*done) {
        co_await AddSynonym({right.key, TargetOf(right).offset()});
        co_return std::move(change);
      }
    }
    if (!patience.Pause()) co_return StaysLocked(place.address);
  }
}

coro::Task<StatusOr<Change>> Editor::Remove(uint64_t key, rdma::GlobalAddress record) {
  LeafPlace place;
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    const Status located = co_await Locate(key, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    const int slot = FindSlot(place.image, key);
    if (slot < 0 || TargetOf(place.image.entry<IntegerEntry>(slot)) != record) {
      co_return absl::NotFoundError(absl::StrCat("the key ", key, " is not mapped to ", record.ToString()));
    }
    const uint64_t before = place.image.head.state;
    Change change;
    const StatusOr<bool> done = co_await changer_.Remove(&place, slot, &change);
    if (!done.ok()) co_return done.status();
    if (*done) {
      Change merged;
      const bool is_merged = co_await MergeLeft(place, &merged);
      if (!is_merged) co_return std::move(change);
      // The merge has changed the leaf's word again, and nobody else has in between.
      Change both;
      for (const WordChange& word : merged.words()) {
        both.AddChanged(word.word, word.word == place.address ? before : word.before, word.after);
      }
      co_return std::move(both);
    }
    if (!patience.Pause()) co_return StaysLocked(place.address);
  }
}

coro::Task<Status> Editor::Replace(uint64_t key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  LeafPlace place;
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    const Status located = co_await Locate(key, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    const int slot = FindSlot(place.image, key);
    if (slot < 0 || (!from.is_null() && TargetOf(place.image.entry<IntegerEntry>(slot)) != from)) {
      co_return absl::NotFoundError(absl::StrCat("the key ", key, " is not mapped to ", from.ToString()));
    }
    const IntegerEntry entry{key, to.bits()};
    const StatusOr<bool> done = co_await changer_.Replace(place, slot, entry);
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
    if (!patience.Pause()) co_return StaysLocked(place.address);
  }
}

coro::Task<bool> Editor::MergeLeft(const LeafPlace& leaf, Change* change) {
  const uint64_t low = leaf.image.head.low;
  if (low == 0 || leaf.image.count<IntegerEntry>() > kSparse) co_return false;
  LeafPlace left;
  const Status located = co_await Locate(low - 1, &left);
  if (!located.ok() || left.image.right() != leaf.address || left.image.head.high + 1 != low ||
      left.image.count<IntegerEntry>() > kRoomy) {
    co_return false;
  }
  const StatusOr<bool> merged = co_await changer_.Absorb(left, leaf, change);
  if (!merged.ok() || !*merged) co_return false;
  co_await CountDeath(low);
  co_return true;
}

coro::Task<void> Editor::AddSynonym(Synonym leaf) {
  guide_->NoteLeaf(leaf);
  const StatusOr<rdma::GlobalAddress> table = co_await guide_->SynonymsFor(leaf.low);
  if (!table.ok()) co_return;
  rdma::Operation take[] = {rdma::Operation::FetchAndAdd(*table + kUsedOffset, 1)};
  const Status taken = co_await leaves_->PostHint(take);
  if (!taken.ok() || (take[0].result & kRetiredBit) != 0) co_return;
  const uint64_t slot = take[0].result;
  if (slot < kSynonyms) {
    rdma::Operation write[] = {rdma::Operation::Write(&leaf, *table + SynonymOffset(slot), sizeof(leaf))};
    const Status written = co_await leaves_->PostHint(write);
    if (!written.ok()) co_return;
  }
  if (slot == kTrainAt || slot == kUrgentAt) co_await Enqueue(*table, slot == kUrgentAt);
}

coro::Task<void> Editor::CountDeath(uint64_t key) {
  const StatusOr<rdma::GlobalAddress> table = co_await guide_->SynonymsFor(key);
  if (!table.ok()) co_return;
  rdma::Operation count[] = {rdma::Operation::FetchAndAdd(*table + kDeadOffset, 1)};
  const Status counted = co_await leaves_->PostHint(count);
  const uint64_t dead = count[0].result + 1;
  if (counted.ok() && dead >= kFewDead && std::has_single_bit(dead)) co_await Enqueue(*table, false);
}

coro::Task<void> Editor::Enqueue(rdma::GlobalAddress synonyms, bool urgent) {
  const rdma::GlobalAddress queue = guide_->queue();
  rdma::Operation take[] = {rdma::Operation::FetchAndAdd(queue + (urgent ? kUrgentTailOffset : kTailOffset), 1)};
  const Status taken = co_await leaves_->PostHint(take);
  if (!taken.ok()) co_return;
  const uint64_t table = synonyms.offset();
  rdma::Operation write[] = {
      rdma::Operation::Write(&table, queue + QueueOffset(urgent, take[0].result), sizeof(table))};
  co_await leaves_->PostHint(write);
}

}  // namespace gannet::index::rolex
