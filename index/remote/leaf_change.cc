#include "index/remote/leaf_change.h"

#include "index/remote/leaf_draft.h"
#include "index/remote/leaf_split.h"

namespace gannet::index::remote {

coro::Task<StatusOr<bool>> LeafChanger::Publish(LeafDraft* draft) {
  const StatusOr<bool> locked = co_await leaves_->Lock(*draft);
  if (!locked.ok() || !*locked) co_return locked;
  Posting posting;
  draft->AppendChange(&posting);
  const Status status = co_await leaves_->Commit(draft->address(), &posting);
  if (!status.ok()) co_return status;
  co_return true;
}

coro::Task<StatusOr<bool>> LeafChanger::Add(const LeafPlace& place, IntegerEntry entry, Change* change) {
  LeafDraft draft(place.address, place.image, leaves_->owner_bits());
  draft.Add(entry);
  const StatusOr<bool> done = co_await Publish(&draft);
  if (done.ok() && *done) change->AddChanged(place.address, place.image.head.state, draft.unlocked());
  co_return done;
}

coro::Task<StatusOr<bool>> LeafChanger::Split(const LeafPlace& place, IntegerEntry entry, Change* change,
                                              IntegerEntry* right) {
  const StatusOr<FreeBlock> block = co_await blocks_->Take();
  if (!block.ok()) co_return block.status();
  LeafDraft old(place.address, place.image, leaves_->owner_bits());
  LeafDraft fresh(block->address, block->word, place.image.level(), leaves_->owner_bits());
  const StatusOr<bool> locked = co_await leaves_->Lock(old);
  if (!locked.ok() || !*locked) {
    blocks_->PutBack(*block);
    co_return locked;
  }
  const SplitPlan plan = PlanSplit(place.image, {&entry, 1});
  Posting posting;
  AppendSplit(plan, {&entry, 1}, &old, &fresh, &posting);
  const Status status = co_await leaves_->Commit(old.address(), &posting);
  GANNET_CO_RETURN_IF_ERROR(status);
  change->AddChanged(place.address, place.image.head.state, old.unlocked());
  // Not AddCreated: a transaction that killed the leaf that was in this block has its dead word as a witness.
  change->AddChanged(block->address, block->word, fresh.unlocked());
  *right = IntegerEntry{plan.high + 1, block->address.bits()};
  co_return true;
}

coro::Task<StatusOr<bool>> LeafChanger::Remove(LeafPlace* place, int slot, Change* change) {
  LeafDraft draft(place->address, place->image, leaves_->owner_bits());
  draft.Remove(slot);
  const StatusOr<bool> done = co_await Publish(&draft);
  if (!done.ok() || !*done) co_return done;
  change->AddChanged(place->address, place->image.head.state, draft.unlocked());
  place->image = draft.image();
  co_return true;
}

coro::Task<StatusOr<bool>> LeafChanger::Replace(const LeafPlace& place, int slot, IntegerEntry entry) {
  LeafDraft draft(place.address, place.image, leaves_->owner_bits());
  draft.Replace(slot, entry);
  const StatusOr<bool> done = co_await Publish(&draft);
  co_return done;
}

coro::Task<StatusOr<bool>> LeafChanger::Absorb(const LeafPlace& left, const LeafPlace& right, Change* change) {
  LeafDraft to(left.address, left.image, leaves_->owner_bits());
  LeafDraft from(right.address, right.image, leaves_->owner_bits());
  const StatusOr<bool> locked = co_await leaves_->Lock(to);
  if (!locked.ok() || !*locked) co_return locked;
  const StatusOr<bool> both = co_await leaves_->Lock(from);
  if (!both.ok() || !*both) {
    const Status back = co_await leaves_->GiveBack(to);
    GANNET_CO_RETURN_IF_ERROR(back);
    co_return both;
  }
  Posting posting;
  AppendAbsorb(&to, &from, &posting);
  const Status status = co_await leaves_->Commit(to.address(), &posting);
  if (!status.ok()) {
    // Its lock may have been taken over another connection. If it is dead by now, this finds that.
    LeafDraft held(right.address, right.image, leaves_->owner_bits());
    co_await leaves_->GiveBack(held);
    co_return status;
  }
  leaves_->NoteReleased(right.address);
  change->AddChanged(left.address, left.image.head.state, to.unlocked());
  change->AddChanged(right.address, right.image.head.state, from.unlocked());
  co_await blocks_->Return({right.address, from.unlocked()});
  co_return true;
}

}  // namespace gannet::index::remote
