#include "index/shared_leaf/change/leaf_editor.h"

#include "absl/strings/str_cat.h"
#include "index/backoff.h"
#include "index/shared_leaf/change/leaf_keys.h"

namespace gannet::index::shared_leaf {
namespace {

Status StaysLocked(rdma::GlobalAddress leaf) {
  return absl::UnavailableError(
      absl::StrCat("the leaf at ", leaf.ToString(), " stays locked, or changes all the time; try again"));
}

}  // namespace

template <class Keys>
coro::Task<StatusOr<Change>> LeafEditor<Keys>::Insert(Key key, rdma::GlobalAddress record,
                                                      rdma::GlobalAddress* existing) {
  return InsertAt(0, Keys::RecordEntry(*schema_, key, record), existing);
}

template <class Keys>
coro::Task<Status> LeafEditor<Keys>::Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
  std::optional<Entry> old;
  if (!from.is_null()) old = EntryOf(key, from);
  return ReplaceAt(0, Keys::RecordEntry(*schema_, key, to), old);
}

template <class Keys>
coro::Task<StatusOr<Change>> LeafEditor<Keys>::InsertAt(uint8_t level, IndexEntry entry,
                                                        rdma::GlobalAddress* existing) {
  LeafCopy place;
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    const Status located = co_await LocateToChange(Keys::At(Keys::KeyOf(entry)), level, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    StatusOr<int> slot = -1;
    if constexpr (Keys::kKeysElsewhere) {
      slot = co_await FindSame(level, entry, &place);
    } else {
      slot = Keys::SlotOf(place.image, Keys::KeyOf(entry));
    }
    if (!slot.ok()) co_return slot.status();
    if (*slot >= 0) {
      if (existing != nullptr) *existing = TargetOf(place.image.template entry<Entry>(*slot));
      co_return absl::AlreadyExistsError(
          absl::StrCat("the key ", Keys::ToString(Keys::KeyOf(entry)), " is in the index"));
    }
    if (level > 0) {
      const Status lives = co_await LookAtChild(level, entry);
      GANNET_CO_RETURN_IF_ERROR(lives);
    }
    Change change;
    StatusOr<bool> done = false;
    if (RoomIn(place) > 0) {
      done = co_await changer_.Add(place, Keys::EntryOf(entry), &change);
    } else {
      done = true;
      if constexpr (Keys::kKeysElsewhere) done = co_await KnowAllKeys(&place);
      if (done.ok() && *done) {
        std::optional<IndexEntry> right;
        SplitHint hint;
        done = co_await Split(place, entry, &change, &right, &hint);
        if (done.ok() && *done && right.has_value()) {
          std::vector<IndexEntry> rights(1, *right);
          co_await PublishSplit(level, std::move(rights), hint);
        }
      }
    }
    if (!done.ok()) co_return done.status();
    if (*done) co_return std::move(change);
    if (!patience.Pause()) co_return StaysLocked(place.address);
  }
}

template <class Keys>
coro::Task<StatusOr<int>> LeafEditor<Keys>::FindSame(uint8_t level, const IndexEntry& entry, LeafCopy* place) {
  // The separator of a child is its low fence: it needs no comparison.
  if (level > 0) co_return SlotOf<Keys>(place->image, Keys::EntryOf(entry));
  const Key key = Keys::KeyOf(entry);
  const StatusOr<int> slot = co_await FindKey<Keys>(leaves_, *schema_, key, place);
  co_return slot;
}

template <class Keys>
coro::Task<StatusOr<bool>> LeafEditor<Keys>::KnowAllKeys(LeafCopy* place) {
  const Status read = co_await ReadAllKeys<Keys>(leaves_, *schema_, place, /*sure=*/true);
  if (!read.ok()) co_return read;
  co_return KnowsAll<Keys>(*place);
}

template <class Keys>
coro::Task<StatusOr<bool>> LeafEditor<Keys>::Split(const LeafCopy& place, IndexEntry entry, Change* change,
                                                   std::optional<IndexEntry>* right, SplitHint* hint) {
  IndexEntry made;
  const StatusOr<bool> done = co_await changer_.Split(place, entry, change, &made, this, hint);
  if (done.ok() && *done) *right = made;
  co_return done;
}

template <class Keys>
coro::Task<StatusOr<Change>> LeafEditor<Keys>::Remove(Key key, rdma::GlobalAddress record) {
  LeafCopy place;
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    const Status located = co_await LocateToChange(Keys::At(key), 0, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    const int slot = SlotOf<Keys>(place.image, EntryOf(key, record));
    if (slot < 0) co_return NotMapped<Keys>(key, record);
    const uint64_t before = place.image.head.state;
    Change removed;
    const StatusOr<bool> done = co_await changer_.Remove(&place, slot, &removed);
    if (!done.ok()) co_return done.status();
    if (*done) {
      Change merged;
      const bool is_merged = co_await MergeLeft(place, &merged);
      if (!is_merged) co_return std::move(removed);
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

template <class Keys>
coro::Task<Status> LeafEditor<Keys>::ReplaceAt(uint8_t level, IndexEntry to, std::optional<Entry> from) {
  LeafCopy place;
  const Key key = Keys::KeyOf(to);
  Patience patience(leaves_->patience_nanos());
  for (;;) {
    const Status located = co_await LocateToChange(Keys::At(key), level, &place);
    GANNET_CO_RETURN_IF_ERROR(located);
    StatusOr<int> slot = -1;
    if (from.has_value()) {
      slot = SlotOf<Keys>(place.image, *from);
    } else {
      slot = co_await FindKey<Keys>(leaves_, *schema_, key, &place);
    }
    if (!slot.ok()) co_return slot.status();
    if (*slot < 0) co_return NotMapped<Keys>(key, from.has_value() ? TargetOf(*from) : rdma::GlobalAddress());
    if (level > 0) {
      const Status lives = co_await LookAtChild(level, to);
      GANNET_CO_RETURN_IF_ERROR(lives);
    }
    const StatusOr<bool> done = co_await changer_.Replace(place, *slot, Keys::EntryOf(to));
    if (!done.ok()) co_return done.status();
    if (*done) co_return absl::OkStatus();
    if (!patience.Pause()) co_return StaysLocked(place.address);
  }
}

template class LeafEditor<IntegerKeys>;
template class LeafEditor<ByteKeys>;

}  // namespace gannet::index::shared_leaf
