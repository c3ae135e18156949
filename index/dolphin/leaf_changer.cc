#include "index/dolphin/leaf_changer.h"

#include <optional>

#include "base/mutant.h"
#include "base/sometimes.h"

namespace gannet::index::dolphin {
namespace {

LeafChanger::Outcome OutcomeOf(LeafLook look) {
  return look == LeafLook::kDead ? LeafChanger::Outcome::kElsewhere : LeafChanger::Outcome::kBusy;
}

bool HasReserved(const LeafImage& image) {
  for (int slot = 0; slot < image.slots(); ++slot) {
    if (IsReservedWord(image.key_word(slot))) return true;
  }
  return false;
}

// A leaf that an insert cannot enter on the shared side.
LeafChanger::Result FullAs(const LeafImage& image) {
  LeafChanger::Result result{.outcome = LeafChanger::Outcome::kFull,
                             .state = UnlockedState(image.lock.state, image.head.number),
                             .splits = true};
  for (int slot = 0; slot < image.slots(); ++slot) result.splits &= IsKeyWord(image.key_word(slot));
  return result;
}

// The next slot that was free in the image.
int SlotToReserve(const LeafImage& image, int from) {
  const int slot = image.FreeSlot(from);
  if (slot < 0 || !GANNET_MUTANT(kAnySlot)) return slot;
  const int next = image.FreeSlot(slot + 1);
  return next < 0 ? slot : next;
}

}  // namespace

coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::Depart(const TernaryLock::Stay& stay, Departure departure,
                                                              Change* change) {
  const StatusOr<TernaryLock::Left> left = co_await lock_->Leave(stay, departure);
  if (!left.ok()) co_return left.status();
  if (!left->is_done) co_return Result{.outcome = Outcome::kAbsent};
  if (left->before != 0 && change != nullptr) {
    change->AddChanged(stay.leaf, left->before, UnlockedState(NextState(left->before, false), stay.image.head.number));
  }
  co_return Result{.outcome = Outcome::kDone};
}

coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::Depart(const TernaryLock::Stay& stay, Result result) {
  const StatusOr<TernaryLock::Left> left = co_await lock_->Leave(stay, {});
  if (!left.ok()) co_return left.status();
  co_return result;
}

coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::Insert(rdma::GlobalAddress leaf, uint64_t key, uint64_t target,
                                                              Change* change) {
  TernaryLock::Stay stay;
  const StatusOr<LeafLook> look = co_await lock_->Enter(leaf, Part::kKeys, &stay);
  if (!look.ok()) co_return look.status();
  if (*look != LeafLook::kWhole) co_return Result{.outcome = OutcomeOf(*look)};
  const LeafImage& image = stay.image;
  if (!image.Covers(key)) {
    const StatusOr<Result> result = co_await Depart(stay, Result{.outcome = Outcome::kElsewhere});
    co_return result;
  }
  const uint64_t word = image.WordOf(key);
  Result result;
  if (image.SlotOf(word) >= 0) {
    result.outcome = Outcome::kExists;
  } else if (image.SlotOf(word | kReservedBit) >= 0) {
    // Another insert of the key; or one that was given up, which goes when this one comes back alone.
    SometimesInTests<"dolphin: an insert meets a reserved slot of its key">();
    result = FullAs(image);
  } else {
    int slot = SlotToReserve(image, 0);
    while (slot >= 0) {
      const StatusOr<std::optional<uint64_t>> found = co_await lock_->Reserve(stay, slot, word);
      if (!found.ok()) co_return found.status();
      if (found->has_value() && **found == 0) {
        const Departure departure{.what = Departure::Do::kInsert, .slot = slot, .key_word = word, .target = target};
        const StatusOr<Result> done = co_await Depart(stay, departure, change);
        co_return done;
      }
      // If it is not known whose reservation it is, this insert comes back alone.
      if (!found->has_value() || **found == (word | kReservedBit) || **found == word) break;
      SometimesInTests<"dolphin: an insert finds another key in its slot">();
      slot = SlotToReserve(image, slot + 1);
    }
    result = FullAs(image);
  }
  const StatusOr<Result> parted = co_await Depart(stay, result);
  co_return parted;
}

// The block of a new leaf is there before the lock is taken.
coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::InsertAlone(rdma::GlobalAddress leaf, Result full, uint64_t key,
                                                                   uint64_t target, Change* change) {
  std::optional<shared_leaf::FreeBlock> block;
  if (full.splits) {
    const StatusOr<shared_leaf::FreeBlock> taken = co_await blocks_->Take(/*connection=*/0);
    if (!taken.ok()) co_return taken.status();
    block = *taken;
  }
  LeafImage image;
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

coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::InsertLocked(rdma::GlobalAddress leaf, const LeafImage& image,
                                                                    uint64_t key, uint64_t target,
                                                                    std::optional<shared_leaf::FreeBlock>* block,
                                                                    Change* change) {
  Result result{.outcome = Outcome::kDone};
  Status status;
  LeafDraft draft(leaf, image);
  std::optional<LeafDraft> fresh;
  Posting posting;
  if (const int slot = image.Find(key); slot >= 0) {
    result = {.outcome = Outcome::kExists, .existing = image.target(slot)};
  } else if (!image.Covers(key)) {
    result.outcome = Outcome::kElsewhere;
  } else if (!HasReserved(image) && draft.Add(key, target)) {
    draft.AppendWords(&posting);
    draft.AppendRelease(&posting);
  } else {
    draft.Tidy();
    if (draft.Add(key, target)) {
      SometimesInTests<"dolphin: a leaf is tidied">();
      draft.AppendLines(&posting);
      draft.AppendHead(&posting);
      draft.AppendRelease(&posting);
    } else if (!block->has_value()) {
      result = {.outcome = Outcome::kFull, .state = draft.before(), .splits = true};
    } else if (const std::optional<SplitPlan> plan = PlanSplit(draft.image(), key); plan.has_value()) {
      SometimesInTests<"dolphin: a leaf is split">();
      const shared_leaf::FreeBlock& at = **block;
      fresh.emplace(at.address, at.word, lock_->key_lines(), lock_->leaves()->owner_bits());
      AppendSplit(*plan, key, target, &draft, &*fresh, &posting);
      result.right = at.address;
      result.border = plan->border;
      block->reset();  // it is a leaf; or the connection, over which it was lent, has ended
    } else {
      status = DamagedLeaf(leaf);
    }
  }
  if (posting.empty()) {
    const Status back = co_await lock_->GiveBack(leaf, image);
    GANNET_CO_RETURN_IF_ERROR(back);
    GANNET_CO_RETURN_IF_ERROR(status);
    co_return result;
  }
  status = co_await Commit(draft, &posting, change);
  GANNET_CO_RETURN_IF_ERROR(status);
  // This is not AddCreated, for the reason in BasicLeafChanger::Split (shared_leaf/change/leaf_change.cc).
  if (fresh.has_value() && change != nullptr) change->AddChanged(fresh->address(), fresh->before(), fresh->after());
  co_return result;
}

coro::Task<Status> LeafChanger::Commit(const LeafDraft& draft, Posting* posting, Change* change) {
  const Status status = co_await lock_->Commit(draft.address(), posting);
  if (status.ok() && change != nullptr) change->AddChanged(draft.address(), draft.before(), draft.after());
  co_return status;
}

coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::ChangeSlot(rdma::GlobalAddress leaf, uint64_t key,
                                                                  Departure departure, Change* change) {
  const bool reads_target = departure.what != Departure::Do::kUpdate;
  TernaryLock::Stay stay;
  const StatusOr<LeafLook> look = co_await lock_->Enter(leaf, reads_target ? Part::kWhole : Part::kKeys, &stay);
  if (!look.ok()) co_return look.status();
  if (*look != LeafLook::kWhole) co_return Result{.outcome = OutcomeOf(*look)};
  const LeafImage& image = stay.image;
  const int slot = image.Covers(key) ? image.SlotOf(image.WordOf(key)) : -1;
  if (slot < 0 || (reads_target && image.target(slot) != departure.from)) {
    const Outcome outcome = image.Covers(key) ? Outcome::kAbsent : Outcome::kElsewhere;
    const StatusOr<Result> unchanged = co_await Depart(stay, Result{.outcome = outcome});
    co_return unchanged;
  }
  departure.slot = slot;
  departure.key_word = image.key_word(slot);
  const StatusOr<Result> done = co_await Depart(stay, departure, change);
  co_return done;
}

coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::Update(rdma::GlobalAddress leaf, uint64_t key, uint64_t value) {
  return ChangeSlot(leaf, key, {.what = Departure::Do::kUpdate, .target = value}, nullptr);
}

coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::Remove(rdma::GlobalAddress leaf, uint64_t key, uint64_t target,
                                                              Change* change) {
  return ChangeSlot(leaf, key, {.what = Departure::Do::kRemove, .from = target}, change);
}

coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::Replace(rdma::GlobalAddress leaf, uint64_t key, uint64_t from,
                                                               uint64_t to, Change* change) {
  return ChangeSlot(leaf, key, {.what = Departure::Do::kReplace, .target = to, .from = from}, change);
}

coro::Task<StatusOr<LeafChanger::Result>> LeafChanger::Absorb(rdma::GlobalAddress left, uint64_t state,
                                                              Change* change) {
  LeafImage image;
  const StatusOr<bool> locked = co_await lock_->Lock(left, state, /*connection=*/0, &image);
  if (!locked.ok()) co_return locked.status();
  if (!*locked) co_return Result{.outcome = Outcome::kBusy};
  const rdma::GlobalAddress right = image.right();
  Outcome outcome = Outcome::kAbsent;
  Status status;
  LeafImage from;
  bool both = false;
  if (!image.is_last() && right != left) {
    outcome = Outcome::kBusy;
    const StatusOr<bool> taken = co_await lock_->LockAsItIs(right, lock_->leaves()->ConnectionOf(left), &from);
    status = taken.status();
    both = taken.ok() && *taken;
  }
  LeafDraft to(left, image);
  to.Tidy();
  if (both && (from.head.low != image.head.high + 1 || !MayAbsorb(to.image(), from))) {
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
  SometimesInTests<"dolphin: a leaf absorbs its sibling">();
  Posting posting;
  LeafDraft gone(right, from);
  AppendAbsorb(&to, &gone, &posting);
  // If this fails, nothing may lead to the right leaf any more. It stays locked, and the owner repairs both when the
  // connection has ended.
  status = co_await Commit(to, &posting, change);
  GANNET_CO_RETURN_IF_ERROR(status);
  lock_->leaves()->NoteReleased(right);
  if (change != nullptr) change->AddChanged(right, gone.before(), gone.after());
  co_await blocks_->Return({right, gone.after()});
  co_return Result{.outcome = Outcome::kDone};
}

}  // namespace gannet::index::dolphin
