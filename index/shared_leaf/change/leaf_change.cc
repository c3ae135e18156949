#include "index/shared_leaf/change/leaf_change.h"

#include "index/shared_leaf/leaf/leaf_draft.h"
#include "index/shared_leaf/leaf/leaf_split.h"

namespace gannet::index::shared_leaf {

template <class Keys>
coro::Task<StatusOr<bool>> BasicLeafChanger<Keys>::Publish(Draft* draft) {
  const StatusOr<bool> locked = co_await leaves_->Lock(*draft);
  if (!locked.ok() || !*locked) co_return locked;
  Posting posting;
  draft->AppendChange(&posting);
  const Status status = co_await leaves_->Commit(draft->address(), &posting);
  if (!status.ok()) co_return status;
  co_return true;
}

template <class Keys>
coro::Task<StatusOr<bool>> BasicLeafChanger<Keys>::Add(const LeafCopy& place, Entry entry, Change* change) {
  Draft draft(place.address, place.image, leaves_->owner_bits());
  draft.AddToRoom(entry);
  const StatusOr<bool> done = co_await Publish(&draft);
  if (done.ok() && *done) change->AddChanged(place.address, place.image.head.state, draft.unlocked());
  co_return done;
}

template <class Keys>
coro::Task<StatusOr<bool>> BasicLeafChanger<Keys>::Split(const LeafCopy& place, IndexEntry entry, Change* change,
                                                         IndexEntry* right, SplitHints<Keys>* hints, SplitHint* hint) {
  const StatusOr<FreeBlock> block = co_await blocks_->Take(/*connection=*/0);
  if (!block.ok()) co_return block.status();
  Draft old(place.address, place.image, leaves_->owner_bits());
  Draft fresh(block->address, block->word, place.image.level(), leaves_->owner_bits(), leaves_->fence_lines());
  const StatusOr<bool> locked = co_await leaves_->Lock(old, block->connection);
  if (!locked.ok() || !*locked) {
    blocks_->PutBack(*block);
    co_return locked;
  }
  const SplitPlanOf<Keys> plan = PlanSplit<Keys>(place.image, place.keys, {&entry, 1});
  Posting posting;
  AppendSplit<Keys>(plan, {&entry, 1}, &old, &fresh, &posting);
  *right = Keys::ChildEntry(plan.border, block->address);
  if (hints != nullptr) *hint = hints->HintOf({right, 1});
  if (hints != nullptr && hint->has_value()) posting.Add(**hint);
  const Status status = co_await leaves_->Commit(old.address(), &posting);
  GANNET_CO_RETURN_IF_ERROR(status);
  if (hints != nullptr && hint->has_value()) *hint = posting.operations().back();
  change->AddChanged(place.address, place.image.head.state, old.unlocked());
  // This is not AddCreated, because a transaction that killed the leaf that was in this block has its dead word as a
  // witness.
  change->AddChanged(block->address, block->word, fresh.unlocked());
  co_return true;
}

template <class Keys>
coro::Task<StatusOr<bool>> BasicLeafChanger<Keys>::Remove(LeafCopy* place, int slot, Change* change) {
  Draft draft(place->address, place->image, leaves_->owner_bits());
  draft.Remove(slot);
  const StatusOr<bool> done = co_await Publish(&draft);
  if (!done.ok() || !*done) co_return done;
  change->AddChanged(place->address, place->image.head.state, draft.unlocked());
  place->image = draft.image();
  co_return true;
}

template <class Keys>
coro::Task<StatusOr<bool>> BasicLeafChanger<Keys>::Replace(const LeafCopy& place, int slot, Entry entry) {
  Draft draft(place.address, place.image, leaves_->owner_bits());
  draft.Replace(slot, entry);
  const StatusOr<bool> done = co_await Publish(&draft);
  co_return done;
}

template <class Keys>
coro::Task<StatusOr<bool>> BasicLeafChanger<Keys>::Absorb(const LeafCopy& left, const LeafCopy& right, Change* change,
                                                          std::optional<Condition> only_if) {
  Draft to(left.address, left.image, leaves_->owner_bits());
  Draft from(right.address, right.image, leaves_->owner_bits());
  const StatusOr<bool> locked = co_await leaves_->Lock(to);
  if (!locked.ok() || !*locked) co_return locked;
  const StatusOr<bool> both = co_await leaves_->Lock(from, leaves_->ConnectionOf(left.address));
  if (!both.ok() || !*both) {
    const Status back = co_await leaves_->GiveBack(to);
    GANNET_CO_RETURN_IF_ERROR(back);
    co_return both;
  }
  if (only_if.has_value()) {
    const StatusOr<bool> holds = co_await (*only_if)();
    if (!holds.ok() || !*holds) {
      const Status right_back = co_await leaves_->GiveBack(from);
      const Status left_back = co_await leaves_->GiveBack(to);
      GANNET_CO_RETURN_IF_ERROR(right_back);
      GANNET_CO_RETURN_IF_ERROR(left_back);
      co_return holds;
    }
  }
  Posting posting;
  AppendAbsorb<Keys>(&to, &from, &posting);
  // If this fails, the left leaf may have the entries and the right link of the other one already. Then nothing leads
  // to the right leaf any more. So it stays locked, and the owner repairs both when the connection has ended.
  const Status status = co_await leaves_->Commit(to.address(), &posting);
  GANNET_CO_RETURN_IF_ERROR(status);
  leaves_->NoteReleased(right.address);
  change->AddChanged(left.address, left.image.head.state, to.unlocked());
  change->AddChanged(right.address, right.image.head.state, from.unlocked());
  co_await blocks_->Return({right.address, from.unlocked()});
  co_return true;
}

template class BasicLeafChanger<IntegerKeys>;
template class BasicLeafChanger<ByteKeys>;

}  // namespace gannet::index::shared_leaf
