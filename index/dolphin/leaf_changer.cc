#include "index/dolphin/leaf_changer.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/shared_leaf/change/leaf_keys.h"

namespace gannet::index::dolphin {
namespace {

template <class Keys>
typename LeafChanger<Keys>::Outcome OutcomeOf(LeafLook look) {
  using Outcome = typename LeafChanger<Keys>::Outcome;
  return look == LeafLook::kDead ? Outcome::kElsewhere : Outcome::kBusy;
}

// A leaf that an insert cannot enter on the shared side.
template <class Keys>
typename LeafChanger<Keys>::Result FullAs(const typename Keys::Leaf& image) {
  typename LeafChanger<Keys>::Result result{.outcome = LeafChanger<Keys>::Outcome::kFull,
                                            .state = UnlockedState(image.lock.state, image.head.number),
                                            .splits = true};
  for (int slot = 0; slot < image.slots(); ++slot) result.splits &= image.HasEntryWord(slot);
  return result;
}

// A whole leaf that does not cover the key.
template <class Keys>
typename LeafChanger<Keys>::Result ElsewhereThan(const typename Keys::Leaf& image, const typename Keys::Key& key) {
  typename LeafChanger<Keys>::Result result{.outcome = LeafChanger<Keys>::Outcome::kElsewhere};
  const auto& view = Keys::View(image);
  if (Keys::IsLast(view) || !Keys::EndsBefore(view, Keys::At(key))) return result;
  result.right = image.right();
  result.border = Keys::NextLow(view);
  result.reverse = image.lock.reverse;
  return result;
}

// The next slot that was free in the image.
template <class Leaf>
int SlotToTake(const Leaf& image, int from, [[maybe_unused]] rdma::NodeId node) {
  const int slot = image.FreeSlot(from);
  if (slot < 0 || !GANNET_MUTANT(kAnySlot) || node % 2 == 0) return slot;
  const int next = image.FreeSlot(slot + 1);
  return next < 0 ? slot : next;
}

Status NotKnown(rdma::GlobalAddress leaf) {
  return absl::UnavailableError(
      absl::StrCat("it is not known what became of a change of the leaf at ", leaf.ToString()));
}

}  // namespace

template <class Keys>
auto LeafChanger<Keys>::Depart(const Stay& stay, Departure departure, Change* change) -> coro::Task<StatusOr<Result>> {
  const StatusOr<typename Lock::Left> left = co_await lock_->Leave(stay, {&departure, 1});
  if (!left.ok()) co_return left.status();
  if (!left->is_known && departure.is_cas()) co_return Result{.outcome = Outcome::kUncertain};
  if (!left->is_known) co_return NotKnown(stay.leaf);
  // A CAS that finds another word is followed by the raise, too.
  if (left->before != 0 && change != nullptr) {
    change->AddChanged(stay.leaf, left->before, UnlockedState(NextState(left->before, false), stay.image.head.number));
  }
  Result result{.outcome = Outcome::kDone, .reverse = stay.image.lock.reverse};
  // Another insert has the slot: this one starts over.
  if (!left->is_done) result.outcome = departure.what == Do::kInsert ? Outcome::kBusy : Outcome::kAbsent;
  co_return result;
}

template <class Keys>
auto LeafChanger<Keys>::Depart(const Stay& stay, Result result) -> coro::Task<StatusOr<Result>> {
  const StatusOr<typename Lock::Left> left = co_await lock_->Leave(stay, {});
  if (!left.ok()) co_return left.status();
  co_return result;
}

template <class Keys>
auto LeafChanger<Keys>::Insert(rdma::GlobalAddress leaf, Key key, uint64_t target, Change* change)
    -> coro::Task<StatusOr<Result>> {
  Stay stay;
  const StatusOr<LeafLook> look = co_await lock_->Enter(leaf, Part::kKeys, &stay);
  if (!look.ok()) co_return look.status();
  if (*look != LeafLook::kWhole) co_return Result{.outcome = OutcomeOf<Keys>(*look)};
  const StatusOr<Result> result = co_await InsertInside(stay, key, target, change);
  co_return result;
}

template <class Keys>
auto LeafChanger<Keys>::InsertInside(const Stay& stay, Key key, uint64_t target, Change* change)
    -> coro::Task<StatusOr<Result>>
requires(!Keys::kKeysElsewhere) {
  const Leaf& image = stay.image;
  const uint64_t word = image.WordOf(key);
  Result result;
  if (!image.Covers(key)) {
    result = ElsewhereThan<Keys>(image, key);
  } else if (image.SlotOf(word) >= 0) {
    result.outcome = Outcome::kExists;
  } else if (image.SlotOf(word | kReservedBit) >= 0) {
    // Another insert of the key; or one that was given up, which goes when this one comes back alone.
    SometimesInTests<"dolphin: an insert meets a reserved slot of its key">();
    result = FullAs<Keys>(image);
  } else {
    int slot = SlotToTake(image, 0, lock_->node());
    while (slot >= 0) {
      typename Lock::Reservation reservation{slot, word};
      const Status reserved = co_await lock_->Reserve(stay, {&reservation, 1});
      GANNET_CO_RETURN_IF_ERROR(reserved);
      const std::optional<uint64_t>& found = reservation.found;
      if (found == uint64_t{0}) {
        const Departure departure{.what = Do::kFill,
                                  .at = image.target_offset(slot),
                                  .word = target,
                                  .key_at = image.key_offset(slot),
                                  .key_word = word};
        const StatusOr<Result> done = co_await Depart(stay, departure, change);
        co_return done;
      }
      // If it is not known whose reservation it is, this insert comes back alone.
      if (!found.has_value() || *found == (word | kReservedBit) || *found == word) break;
      SometimesInTests<"dolphin: an insert finds another key in its slot">();
      slot = SlotToTake(image, slot + 1, lock_->node());
    }
    result = FullAs<Keys>(image);
  }
  const StatusOr<Result> parted = co_await Depart(stay, result);
  co_return parted;
}

// Each insert takes the lowest slot that is free in the image and that no earlier one takes. Alone, it would have seen
// what is in the slots before its own. Here it learns that from what the CASes of the earlier ones have found: if one
// of them has met this key, or may have, that one stays, and this one is void.
template <class Keys>
auto LeafChanger<Keys>::ChangeTogether(const Stay& stay, std::span<Together> changes) -> coro::Task<Status>
requires(!Keys::kKeysElsewhere) {
  const Leaf& image = stay.image;
  std::vector<Departure> departures;
  std::vector<typename Lock::Reservation> reservations;
  std::vector<Together*> inserts;
  int slot = -1;
  for (Together& one : changes) {
    const uint64_t word = image.WordOf(one.key);
    const int at = image.Covers(one.key) ? image.SlotOf(word) : -1;
    if (!image.Covers(one.key)) {
      one.result.outcome = Outcome::kElsewhere;
    } else if (one.is_update) {
      one.result.outcome = at < 0 ? Outcome::kAbsent : Outcome::kDone;
      if (at >= 0) departures.push_back({.what = Do::kUpdate, .at = image.target_offset(at), .word = one.word});
    } else if (at >= 0) {
      one.result.outcome = Outcome::kExists;
    } else if (image.SlotOf(word | kReservedBit) >= 0 || slot == image.slots()) {
      one.result.outcome = Outcome::kFull;
    } else if (slot = SlotToTake(image, slot + 1, lock_->node()); slot < 0) {
      one.result.outcome = Outcome::kFull;
      slot = image.slots();
    } else {
      reservations.push_back({slot, word});
      inserts.push_back(&one);
    }
  }
  if (!reservations.empty()) {
    const Status reserved = co_await lock_->Reserve(stay, reservations);
    GANNET_CO_RETURN_IF_ERROR(reserved);
  }
  for (size_t i = 0; i < reservations.size(); ++i) {
    const typename Lock::Reservation& own = reservations[i];
    const auto meets = [&own](const typename Lock::Reservation& other) {
      return !other.found.has_value() || (*other.found & ~kReservedBit) == own.key_word;
    };
    if (own.found != uint64_t{0}) {
      inserts[i]->result.outcome = meets(own) ? Outcome::kFull : Outcome::kBusy;
    } else if (!GANNET_MUTANT(kNotVoid) &&
               std::any_of(reservations.begin(), reservations.begin() + static_cast<ptrdiff_t>(i), meets)) {
      SometimesInTests<"dolphin: an insert of several is void, because an earlier one has met its key">();
      inserts[i]->result.outcome = Outcome::kBusy;
      departures.push_back({.what = Do::kVoid, .at = image.key_offset(own.slot), .word = kGone});
    } else {
      inserts[i]->result.outcome = Outcome::kDone;
      departures.push_back({.what = Do::kFill,
                            .at = image.target_offset(own.slot),
                            .word = inserts[i]->word,
                            .key_at = image.key_offset(own.slot),
                            .key_word = own.key_word});
    }
  }
  const StatusOr<typename Lock::Left> left = co_await lock_->Leave(stay, departures);
  if (!left.ok()) co_return left.status();
  if (!left->is_known) co_return NotKnown(stay.leaf);
  for (Together& one : changes) {
    if (one.result.outcome != Outcome::kFull) continue;
    one.result = FullAs<Keys>(image);
    one.result.splits = one.result.splits || slot >= 0;  // the others have filled it
    if (left->before != 0) one.result.state = UnlockedState(NextState(left->before, false), image.head.number);
  }
  co_return absl::OkStatus();
}

template <class Keys>
auto LeafChanger<Keys>::InsertInside(const Stay& stay, Key key, uint64_t target, Change* change)
    -> coro::Task<StatusOr<Result>>
requires(Keys::kKeysElsewhere) {
  shared_leaf::LeafCopyOf<Keys> place{.address = stay.leaf, .image = Keys::View(stay.image)};
  const bool covers = Keys::CoversKey(place.image, key);
  StatusOr<int> same(-1);
  if (covers) same = co_await shared_leaf::FindKey<Keys>(lock_->leaves(), *schema_, key, &place);
  Result result;
  if (!covers) {
    result = ElsewhereThan<Keys>(stay.image, key);
  } else if (same.ok() && *same >= 0) {
    result.outcome = Outcome::kExists;
    result.existing = TargetAt(place.image, *same);
  } else if (const int slot = SlotToTake(stay.image, 0, lock_->node()); same.ok() && slot >= 0) {
    const Departure departure{
        .what = Do::kInsert, .at = stay.image.key_offset(slot), .word = EntryFor(key, target).bits};
    const StatusOr<Result> done = co_await Depart(stay, departure, change);
    if (done.ok() && done->outcome == Outcome::kBusy) SometimesInTests<"dolphin: an insert finds its slot in use">();
    co_return done;
  } else {
    result = FullAs<Keys>(stay.image);
  }
  const StatusOr<Result> parted = co_await Depart(stay, result);
  GANNET_CO_RETURN_IF_ERROR(same.status());
  co_return parted;
}

// The block of a new leaf is there before the lock is taken.
template <class Keys>
auto LeafChanger<Keys>::InsertAlone(rdma::GlobalAddress leaf, Result full, Key key, uint64_t target, Change* change)
    -> coro::Task<StatusOr<Result>> {
  std::optional<shared_leaf::FreeBlock> block;
  if (full.splits) {
    const StatusOr<shared_leaf::FreeBlock> taken = co_await blocks_->Take(/*connection=*/0);
    if (!taken.ok()) co_return taken.status();
    block = *taken;
  }
  Leaf image;
  const StatusOr<bool> locked =
      co_await lock_->Lock(leaf, full.state, block.has_value() ? block->connection : 0, &image);
  StatusOr<Result> result = Result{.outcome = Outcome::kBusy};
  if (!locked.ok()) {
    result = locked.status();
  } else if (*locked) {
    result = co_await InsertLocked(leaf, image, key, target, &block, change);
  }
  if (block.has_value()) blocks_->PutBack(*block);
  co_return result;
}

template <class Keys>
auto LeafChanger<Keys>::InsertLocked(rdma::GlobalAddress leaf, const Leaf& image, Key key, uint64_t target,
                                     std::optional<shared_leaf::FreeBlock>* block, Change* change)
    -> coro::Task<StatusOr<Result>> {
  Result result{.outcome = Outcome::kDone, .reverse = image.lock.reverse};
  LeafDraft<Keys> draft(leaf, image);
  std::optional<LeafDraft<Keys>> fresh;
  Posting posting;
  const IndexEntry added = IndexEntryFor(key, target);
  const Entry entry = Keys::EntryOf(added);
  shared_leaf::LeafCopyOf<Keys> place{.address = leaf, .image = Keys::View(image)};
  const StatusOr<int> same = co_await shared_leaf::FindKey<Keys>(lock_->leaves(), *schema_, key, &place);
  if (!same.ok()) {
    const Status back = co_await lock_->GiveBack(leaf, image);
    GANNET_CO_RETURN_IF_ERROR(back);
    co_return same.status();
  }
  Status status;
  if (*same >= 0) {
    result = {.outcome = Outcome::kExists, .existing = TargetAt(place.image, *same)};
  } else if (!Keys::CoversKey(place.image, key)) {
    result.outcome = Outcome::kElsewhere;
  } else if (!HasReserved(image) && draft.Add(entry)) {
    draft.AppendChange(&posting);
  } else {
    draft.Tidy();
    if (draft.Add(entry)) {
      Sometimes<"dolphin: a leaf is tidied">();
      draft.AppendChange(&posting);
    } else if (!block->has_value()) {
      result = {.outcome = Outcome::kFull, .state = draft.before(), .splits = true};
    } else {
      status = co_await shared_leaf::ReadAllKeys<Keys>(lock_->leaves(), *schema_, &place);
      std::optional<SplitPlan<Keys>> plan;
      if (status.ok() && shared_leaf::KnowsAll<Keys>(place)) plan = PlanSplit<Keys>(place, key);
      if (plan.has_value()) {
        Sometimes<"dolphin: a leaf is split">();
        const shared_leaf::FreeBlock& at = **block;
        fresh.emplace(at.address, at.word, lock_->shape_lines(), lock_->leaves()->owner_bits());
        AppendSplit<Keys>(*plan, {&added, 1}, &draft, &*fresh, &posting);
        result.right = at.address;
        result.border = plan->border;
        block->reset();  // it is a leaf; or the connection, over which it was lent, has ended
      } else if (status.ok()) {
        status = DamagedLeaf(leaf);
      }
    }
  }
  if (posting.empty()) {
    const Status back = co_await lock_->GiveBack(leaf, image);
    GANNET_CO_RETURN_IF_ERROR(back);
    GANNET_CO_RETURN_IF_ERROR(status);
    co_return result;
  }
  std::optional<EntryHint> hint;
  if (fresh.has_value() && locator_ != nullptr) hint = locator_->HintOf(result.border, result.right);
  status = co_await Commit(draft, &posting, change, &hint);
  GANNET_CO_RETURN_IF_ERROR(status);
  result.is_known = hint.has_value() && locator_->NoteHint(&*hint);
  // This is not AddCreated, for the reason in BasicLeafChanger::Split (shared_leaf/change/leaf_change.cc).
  if (fresh.has_value() && change != nullptr) change->AddChanged(fresh->address(), fresh->before(), fresh->after());
  co_return result;
}

template <class Keys>
coro::Task<Status> LeafChanger<Keys>::Commit(const LeafDraft<Keys>& draft, Posting* posting, Change* change,
                                             std::optional<EntryHint>* hint) {
  const size_t changes = posting->size();
  if (hint != nullptr && hint->has_value()) (*hint)->Append(posting);
  const Status status = co_await lock_->Commit(draft.address(), posting, changes);
  if (status.ok() && change != nullptr) change->AddChanged(draft.address(), draft.before(), draft.after());
  co_return status;
}

template <class Keys>
auto LeafChanger<Keys>::DepartureFor(const Leaf& image, const Key& key, const Wanted& wanted) const
    -> std::optional<Departure> {
  using What = typename Wanted::What;
  Departure departure{.what = Do::kSwap};
  if constexpr (Keys::kKeysElsewhere) {
    departure.expected = EntryFor(key, wanted.from).bits;
    const int slot = SlotWith(image, departure.expected);
    if (slot < 0) return std::nullopt;
    departure.at = image.key_offset(slot);
    departure.word = wanted.what == What::kRemove ? kGone : EntryFor(key, wanted.to).bits;
  } else {
    const int slot = image.Covers(key) ? image.SlotOf(image.WordOf(key)) : -1;
    if (slot < 0 || (wanted.what != What::kUpdate && image.target(slot) != wanted.from)) return std::nullopt;
    if (wanted.what == What::kRemove) {
      departure.at = image.key_offset(slot);
      departure.expected = image.key_word(slot);
      departure.word = kGone;
    } else {
      GANNET_CHECK(wanted.what == What::kUpdate, "a record of an integer key is replaced inside leaf %s",
                   image.right().ToString());
      departure.what = Do::kUpdate;
      departure.at = image.target_offset(slot);
      departure.word = wanted.to;
    }
  }
  return departure;
}

template <class Keys>
auto LeafChanger<Keys>::ChangeSlot(rdma::GlobalAddress leaf, Key key, Wanted wanted, Change* change)
    -> coro::Task<StatusOr<Result>> {
  Stay stay;
  const Part part = wanted.what == Wanted::What::kUpdate ? Part::kKeys : Part::kWhole;
  const StatusOr<LeafLook> look = co_await lock_->Enter(leaf, part, &stay);
  if (!look.ok()) co_return look.status();
  if (*look != LeafLook::kWhole) co_return Result{.outcome = OutcomeOf<Keys>(*look)};
  const std::optional<Departure> departure = DepartureFor(stay.image, key, wanted);
  if (!departure.has_value()) {
    const bool covers = Keys::CoversKey(Keys::View(stay.image), key);
    const Result result = covers ? Result{.outcome = Outcome::kAbsent} : ElsewhereThan<Keys>(stay.image, key);
    const StatusOr<Result> unchanged = co_await Depart(stay, result);
    co_return unchanged;
  }
  StatusOr<Result> done = co_await Depart(stay, *departure, change);
  if (done.ok() && wanted.what == Wanted::What::kRemove) done->entries = stay.image.count() - 1;
  co_return done;
}

template <class Keys>
auto LeafChanger<Keys>::Update(rdma::GlobalAddress leaf, Key key, uint64_t value) -> coro::Task<StatusOr<Result>>
requires(!Keys::kKeysElsewhere) {
  return ChangeSlot(leaf, key, {.what = Wanted::What::kUpdate, .to = value}, nullptr);
}

template <class Keys>
auto LeafChanger<Keys>::Remove(rdma::GlobalAddress leaf, Key key, uint64_t target, Change* change)
    -> coro::Task<StatusOr<Result>> {
  return ChangeSlot(leaf, key, {.what = Wanted::What::kRemove, .from = target}, change);
}

template <class Keys>
auto LeafChanger<Keys>::Replace(rdma::GlobalAddress leaf, Key key, uint64_t from, uint64_t to, Change* change)
    -> coro::Task<StatusOr<Result>> {
  if constexpr (Keys::kKeysElsewhere) {
    const StatusOr<Result> swapped =
        co_await ChangeSlot(leaf, key, {.what = Wanted::What::kReplace, .from = from, .to = to}, change);
    co_return swapped;
  } else {
    Leaf image;
    const StatusOr<bool> locked = co_await lock_->LockAsItIs(leaf, /*connection=*/0, &image);
    if (!locked.ok()) co_return locked.status();
    if (!*locked) co_return Result{.outcome = Outcome::kBusy};
    const int slot = Keys::SlotOf(image, key);
    if (slot < 0 || image.target(slot) != from) {
      const Status back = co_await lock_->GiveBack(leaf, image);
      GANNET_CO_RETURN_IF_ERROR(back);
      co_return Result{.outcome = image.Covers(key) ? Outcome::kAbsent : Outcome::kElsewhere};
    }
    LeafDraft<Keys> draft(leaf, image);
    draft.Replace(slot, EntryFor(key, to));
    Posting posting;
    draft.AppendChange(&posting);
    const Status done = co_await Commit(draft, &posting, change);
    GANNET_CO_RETURN_IF_ERROR(done);
    co_return Result{.outcome = Outcome::kDone};
  }
}

template <class Keys>
auto LeafChanger<Keys>::Absorb(rdma::GlobalAddress left, uint64_t state, Change* change)
    -> coro::Task<StatusOr<Result>> {
  Leaf image;
  const StatusOr<bool> locked = co_await lock_->Lock(left, state, /*connection=*/0, &image);
  if (!locked.ok()) co_return locked.status();
  if (!*locked) co_return Result{.outcome = Outcome::kBusy};
  const rdma::GlobalAddress right = image.right();
  Outcome outcome = Outcome::kAbsent;
  Status status;
  Leaf from;
  bool both = false;
  const std::optional<Key> next_low = shared_leaf::NextLowOf<Keys>(Keys::View(image));
  if (next_low.has_value() && right != left) {
    outcome = Outcome::kBusy;
    const StatusOr<bool> taken = co_await lock_->LockAsItIs(right, lock_->leaves()->ConnectionOf(left), &from);
    status = taken.status();
    both = taken.ok() && *taken;
  }
  LeafDraft<Keys> to(left, image);
  to.Tidy();
  if (both && (Keys::LowOf(Keys::View(from)) != *next_low || !MayAbsorb<Keys>(to.image(), from))) {
    outcome = Outcome::kAbsent;
    const Status back = co_await lock_->GiveBack(right, from);
    GANNET_CO_RETURN_IF_ERROR(back);
    both = false;
  }
  if (!both) {
    const Status back = co_await lock_->GiveBack(left, image);
    GANNET_CO_RETURN_IF_ERROR(back);
    GANNET_CO_RETURN_IF_ERROR(status);
    co_return Result{.outcome = outcome};
  }
  Sometimes<"dolphin: a leaf absorbs its sibling">();
  Posting posting;
  LeafDraft<Keys> gone(right, from);
  AppendAbsorb<Keys>(&to, &gone, &posting);
  // If this fails, nothing may lead to the right leaf any more. It stays locked, and the owner repairs both when the
  // connection has ended.
  status = co_await Commit(to, &posting, change);
  GANNET_CO_RETURN_IF_ERROR(status);
  lock_->leaves()->NoteReleased(right);
  if (change != nullptr) change->AddChanged(right, gone.before(), gone.after());
  co_await blocks_->Return({right, gone.after()});
  co_return Result{.outcome = Outcome::kDone};
}

template class LeafChanger<IntegerKeys>;
template class LeafChanger<ByteKeys>;

}  // namespace gannet::index::dolphin
