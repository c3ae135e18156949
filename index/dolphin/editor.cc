#include "index/dolphin/editor.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/backoff.h"
#include "index/dolphin/leaf_draft.h"
#include "index/shared_leaf/change/leaf_keys.h"

namespace gannet::index::dolphin {

using shared_leaf::NotMapped;

namespace {

// A leaf with less than this part of its slots is merged with a neighbour.
constexpr int kSparseShare = 4;
// Right links to follow before a search. The caches of a client are behind by one or two splits.
constexpr int kMostRights = 3;

Status StaysInUse(rdma::GlobalAddress leaf) {
  return absl::UnavailableError(absl::StrCat("the leaf at ", leaf.ToString(), " stays in use by others; try again"));
}

}  // namespace

template <class Keys>
coro::Task<Status> Editor<Keys>::Begin(Way* way) {
  way->leaf = locator_->Expect(way->key);
  if (!way->leaf.is_null()) co_return absl::OkStatus();
  const Status located = co_await Locate(way);
  co_return located;
}

template <class Keys>
coro::Task<Status> Editor<Keys>::Locate(Way* way) {
  LeafCopy place;
  const Status located = co_await locator_->Locate(Keys::At(way->key), &place);
  if (located.ok()) way->leaf = place.address;
  way->rights = 0;
  co_return located;
}

template <class Keys>
coro::Task<Status> Editor<Keys>::GoOn(Way* way, const Result& result) {
  if (result.outcome == Outcome::kElsewhere && !result.right.is_null() && way->rights < kMostRights &&
      lock_.leaves()->CheckAddress(result.right).ok()) {
    ++way->rights;
    way->left = result;
    way->leaf = result.right;
    co_return absl::OkStatus();
  }
  const Status located = co_await Locate(way);
  co_return located;
}

template <class Keys>
coro::Task<void> Editor<Keys>::NoteWay(const Way& way, const Result& done) {
  if (way.rights == 0) co_return;
  co_await locator_->NoteDetour(way.left.border, way.left.right, {way.left.reverse, done.reverse});
}

template <class Keys>
coro::Task<StatusOr<Change>> Editor<Keys>::Insert(Key key, rdma::GlobalAddress record, rdma::GlobalAddress* existing,
                                                  std::optional<FullLeaf> full_leaf) {
  Patience patience(lock_.leaves()->patience_nanos());
  Way way(key);
  if (full_leaf.has_value()) {
    way.leaf = full_leaf->leaf;
  } else {
    const Status begun = co_await Begin(&way);
    GANNET_CO_RETURN_IF_ERROR(begun);
  }
  bool was_uncertain = false;
  for (;;) {
    Change change;
    StatusOr<Result> result = Result{};
    if (full_leaf.has_value()) {
      result = std::exchange(full_leaf, std::nullopt)->result;
    } else {
      result = co_await changer_.Insert(way.leaf, key, record.bits(), &change);
    }
    while (result.ok() && result->outcome == Outcome::kFull) {
      const Result full = *result;
      result = co_await changer_.InsertAlone(way.leaf, full, key, record.bits(), &change);
    }
    if (!result.ok()) co_return result.status();
    if (result->outcome == Outcome::kDone) {
      co_await NoteWay(way, *result);
      if (!result->right.is_null() && !result->is_known) co_await locator_->NoteSplit(result->border, result->right);
      co_return std::move(change);
    }
    if (result->outcome == Outcome::kExists) {
      // No other insert has this record: the attempt of which it was not known what became has put it there.
      if (was_uncertain && result->existing == record.bits()) co_return Change();
      const Status exists = absl::AlreadyExistsError(absl::StrCat("the key ", Keys::ToString(key), " is in the index"));
      if (existing == nullptr) co_return exists;
      LeafCopy place;
      const Status located = co_await locator_->Locate(Keys::At(key), &place);
      if (!located.ok()) co_return located;
      const StatusOr<int> slot = co_await shared_leaf::FindKey<Keys>(lock_.leaves(), *schema_, key, &place);
      if (!slot.ok()) co_return slot.status();
      if (*slot >= 0) {
        *existing = Keys::TargetOf(place.image.template entry<typename Keys::Entry>(*slot), place.address.node());
        co_return exists;
      }
      if constexpr (!Keys::kKeysElsewhere) {
        // Only a client that does not keep the rules takes the target of an entry away.
        if (place.image.SlotOf(place.image.WordOf(key)) >= 0) co_return DamagedLeaf(place.address);
      }
      if (!patience.Pause()) co_return StaysInUse(place.address);
      way.leaf = place.address;  // it was removed meanwhile
      way.rights = 0;
      continue;
    }
    was_uncertain |= result->outcome == Outcome::kUncertain;
    if (result->outcome != Outcome::kElsewhere && !patience.Pause()) co_return StaysInUse(way.leaf);
    const Status gone = co_await GoOn(&way, *result);
    GANNET_CO_RETURN_IF_ERROR(gone);
  }
}

template <class Keys>
coro::Task<StatusOr<Change>> Editor<Keys>::Remove(Key key, rdma::GlobalAddress record) {
  Patience patience(lock_.leaves()->patience_nanos());
  Way way(key);
  const Status begun = co_await Begin(&way);
  GANNET_CO_RETURN_IF_ERROR(begun);
  bool was_uncertain = false;
  for (;;) {
    Change change;
    const StatusOr<Result> result = co_await changer_.Remove(way.leaf, key, record.bits(), &change);
    if (!result.ok()) co_return result.status();
    // Nobody else removes the entry of a record that this node has locked. So the next look tells.
    if (result->outcome == Outcome::kAbsent && was_uncertain) co_return Change();
    was_uncertain |= result->outcome == Outcome::kUncertain;
    if (result->outcome == Outcome::kDone) {
      co_await NoteWay(way, *result);
      if (result->entries <= schema_->slots() / kSparseShare) co_await Merge(key, &change);
      co_return std::move(change);
    }
    if (result->outcome == Outcome::kAbsent) co_return NotMapped<Keys>(key, record);
    if (result->outcome != Outcome::kElsewhere && !patience.Pause()) co_return StaysInUse(way.leaf);
    const Status gone = co_await GoOn(&way, *result);
    GANNET_CO_RETURN_IF_ERROR(gone);
  }
}

// A value has no lock, so whoever overwrites one writes blindly; a record has.
template <class Keys>
coro::Task<Status> Editor<Keys>::Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  Patience patience(lock_.leaves()->patience_nanos());
  Way way(key);
  const Status begun = co_await Begin(&way);
  GANNET_CO_RETURN_IF_ERROR(begun);
  bool was_uncertain = false;
  for (;;) {
    StatusOr<Result> result = Result{};
    if (!from.is_null()) {
      result = co_await changer_.Replace(way.leaf, key, from.bits(), to.bits(), nullptr);
    } else if constexpr (!Keys::kKeysElsewhere) {
      result = co_await changer_.Update(way.leaf, key, to.bits());
    } else {
      LeafCopy place;
      const Status located = co_await locator_->Locate(Keys::At(key), &place);
      if (!located.ok()) co_return located;
      const StatusOr<int> slot = co_await shared_leaf::FindKey<Keys>(lock_.leaves(), *schema_, key, &place);
      if (!slot.ok()) co_return slot.status();
      if (*slot < 0) co_return NotMapped<Keys>(key, from);
      const rdma::GlobalAddress now =
          Keys::TargetOf(place.image.template entry<typename Keys::Entry>(*slot), place.address.node());
      if (was_uncertain && now == to) co_return absl::OkStatus();
      result = co_await changer_.Replace(place.address, key, now.bits(), to.bits(), nullptr);
      if (result.ok() && result->outcome == Outcome::kAbsent) result->outcome = Outcome::kBusy;  // it has changed since
    }
    if (!result.ok()) co_return result.status();
    if (result->outcome == Outcome::kDone) {
      co_await NoteWay(way, *result);
      co_return absl::OkStatus();
    }
    // Nobody else changes the entry, as in Remove: it leads to `to`, because the change was made.
    if (result->outcome == Outcome::kAbsent && was_uncertain) co_return absl::OkStatus();
    was_uncertain |= result->outcome == Outcome::kUncertain;
    if (result->outcome == Outcome::kAbsent) co_return NotMapped<Keys>(key, from);
    if (result->outcome != Outcome::kElsewhere && !patience.Pause()) co_return StaysInUse(way.leaf);
    const Status gone = co_await GoOn(&way, *result);
    GANNET_CO_RETURN_IF_ERROR(gone);
  }
}

template <class Keys>
coro::Task<Status> Editor<Keys>::Enliven(const shared_leaf::FreeBlock& block) {
  rdma::Operation cas[] = {rdma::Operation::CompareAndSwap(block.address, block.word, NextLife(block.word))};
  const Status status = co_await lock_.leaves()->Post(cas);
  GANNET_CO_RETURN_IF_ERROR(status);
  if (cas[0].result != block.word) co_return DamagedLeaf(block.address);
  co_return absl::OkStatus();
}

template <class Keys>
coro::Task<Status> Editor<Keys>::Fill(rdma::GlobalAddress leaf, std::span<const typename Keys::Entry> entries,
                                      std::optional<Key> next_low, rdma::GlobalAddress right) {
  Patience patience(lock_.leaves()->patience_nanos());
  typename Keys::Leaf image;
  for (;;) {
    const StatusOr<bool> locked = co_await lock_.LockAsItIs(leaf, /*connection=*/0, &image);
    if (!locked.ok()) co_return locked.status();
    if (*locked) break;
    if (!patience.Pause()) co_return StaysInUse(leaf);
  }
  LeafDraft<Keys> draft(leaf, image);
  draft.Tidy();
  for (const typename Keys::Entry& entry : entries) {
    const bool added = draft.Add(entry);
    GANNET_CHECK(added, "%d entries for a leaf", entries.size());
  }
  draft.SetNextLow(next_low);
  draft.set_right(right);
  shared_leaf::Posting posting;
  draft.AppendChange(&posting);
  const Status done = co_await lock_.Commit(leaf, &posting, posting.size());
  co_return done;
}

template <class Keys>
coro::Task<bool> Editor<Keys>::Absorb(const LeafCopy& left, const LeafCopy& right, Change* change) {
  using Entry = typename Keys::Entry;
  const int both = left.image.template count<Entry>() + right.image.template count<Entry>();
  if (both > schema_->slots() * 2 / 3) co_return false;
  const StatusOr<Result> absorbed = co_await changer_.Absorb(left.address, left.image.state(), change);
  if (!absorbed.ok() || absorbed->outcome != Outcome::kDone) co_return false;
  co_await locator_->NoteAbsorbed(Keys::LowOf(right.image), right.address);
  co_return true;
}

// It is tried once: the next removal tries again.
template <class Keys>
coro::Task<void> Editor<Keys>::Merge(Key key, Change* change) {
  LeafCopy leaf;
  const Status located = co_await locator_->Locate(Keys::At(key), &leaf);
  if (!located.ok()) co_return;
  index::Change merged;
  LeafCopy other;
  bool done = false;
  if (!Keys::IsLast(leaf.image)) {
    const Status found = co_await locator_->Locate(Keys::At(Keys::NextLow(leaf.image)), &other);
    if (found.ok()) done = co_await Absorb(leaf, other, &merged);
  }
  if (!done && !Keys::IsFirst(leaf.image)) {
    const Status found = co_await locator_->Locate(shared_leaf::PointBelow<Keys>(Keys::LowOf(leaf.image)), &other);
    if (found.ok()) done = co_await Absorb(other, leaf, &merged);
  }
  if (!done) co_return;
  const WordChange removed = change->empty() ? WordChange{} : change->words().front();
  index::Change all;
  bool is_known = !removed.word.is_null();
  for (const WordChange& word : merged.words()) {
    const bool is_again = word.word == removed.word;
    is_known = is_known && (!is_again || word.before == removed.after);
    all.AddChanged(word.word, is_again ? removed.before : word.before, word.after);
  }
  *change = is_known ? std::move(all) : index::Change();
}

template class Editor<IntegerKeys>;
template class Editor<ByteKeys>;

}  // namespace gannet::index::dolphin
