#include "index/dolphin/leaf_inserts.h"

#include <algorithm>

#include "base/sometimes.h"

namespace gannet::index::dolphin {

using shared_leaf::FreeBlock;
using shared_leaf::LeafLock;

template <class Keys>
typename LeafInserts<Keys>::Leaf* LeafInserts<Keys>::Add(rdma::GlobalAddress address) {
  if (used_ == leaves_.size()) leaves_.push_back(std::make_unique<Leaf>());
  Leaf* const leaf = leaves_[used_++].get();
  leaf->place.address = address;
  leaf->was_read = leaf->is_locked = false;
  leaf->items.clear();
  leaf->lock.reset();
  leaf->draft.reset();
  leaf->fresh.reset();
  leaf->hint.reset();
  return leaf;
}

template <class Keys>
void LeafInserts<Keys>::DropLeaves() {
  for (size_t i = 0; i < used_; ++i) {
    std::optional<FreeBlock>& block = leaves_[i]->block;
    if (block.has_value()) parts_->blocks()->PutBack(*block);
    block.reset();
  }
  used_ = 0;
}

template <class Keys>
void LeafInserts<Keys>::Begin(std::span<Insertion> insertions, uint64_t connection,
                              std::vector<rdma::Operation>* reads) {
  connection_ = connection;
  DropLeaves();
  items_.clear();
  made_.clear();
  for (Insertion& one : insertions) items_.push_back({&one, Keys::KeyFrom(one.key)});
  std::ranges::sort(items_, {}, &Item::key);
  pending_ = items_.size();
  refused_ = 0;
  if (reads == nullptr || !parts_->is_ready()) return;
  for (Item& item : items_) {
    const rdma::GlobalAddress expected = parts_->way()->Expect(item.key);
    if (expected.is_null()) continue;
    if (used_ == 0 || leaves_[used_ - 1]->place.address != expected) {
      Leaf* const leaf = Add(expected);
      leaf->was_read = true;
      reads->push_back(parts_->lock()->ReadOf(expected, Part::kHead, &leaf->image));
    }
    leaves_[used_ - 1]->items.push_back(&item);
  }
}

template <class Keys>
void LeafInserts<Keys>::Abandon() {
  DropLeaves();
  items_.clear();
  pending_ = 0;
}

template <class Keys>
bool LeafInserts<Keys>::IsLeafOf(const Leaf& leaf, const Key& key) const {
  return leaf.was_read && Keys::CoversKey(leaf.place.image, key);
}

// Of several keys the first one finds the leaf; those that it covers follow.
template <class Keys>
coro::Task<Status> LeafInserts<Keys>::Find() {
  const Status ready = co_await parts_->Prepare();
  GANNET_CO_RETURN_IF_ERROR(ready);
  std::erase_if(items_, [this](const Item& item) {
    refused_ += item.is_refused ? 1 : 0;
    return item.is_refused;
  });
  pending_ = items_.size();
  TernaryLock<Keys>& lock = *parts_->lock();
  const size_t expected = used_;
  for (size_t i = 0; i < expected; ++i) {
    Leaf& leaf = *leaves_[i];
    leaf.was_read = leaf.was_read && lock.Judge(&leaf.image, Part::kHead) == LeafLook::kWhole;
    if (leaf.was_read) leaf.place.image = Keys::View(leaf.image);
    leaf.items.clear();
  }
  for (size_t at = 0; at < items_.size();) {
    const Key& key = items_[at].key;
    Leaf* leaf = nullptr;
    for (size_t i = 0; i < expected && leaf == nullptr; ++i) {
      if (leaves_[i]->items.empty() && IsLeafOf(*leaves_[i], key)) leaf = leaves_[i].get();
    }
    if (leaf == nullptr) {
      leaf = Add({});
      const Status located = co_await parts_->way()->Locate(Keys::At(key), &leaf->place);
      GANNET_CO_RETURN_IF_ERROR(located);
      leaf->was_read = true;
    }
    do {
      leaf->items.push_back(&items_[at]);
    } while (++at < items_.size() && IsLeafOf(*leaf, items_[at].key));
    if (leaf->block.has_value() || Keys::kKeysElsewhere) continue;
    const StatusOr<FreeBlock> block = co_await parts_->blocks()->Take(connection_);
    if (block.ok()) leaf->block = *block;  // without one, the leaf is not split
  }
  co_return absl::OkStatus();
}

template <class Keys>
void LeafInserts<Keys>::AppendLocks(std::vector<rdma::Operation>* operations) {
  TernaryLock<Keys>& lock = *parts_->lock();
  for (size_t i = 0; i < used_; ++i) {
    Leaf& leaf = *leaves_[i];
    leaf.lock.reset();
    if (leaf.items.empty()) continue;
    const LeafLock wanted(leaf.place.address, leaf.place.image.state(), lock.leaves()->owner_bits());
    if (!lock.leaves()->NoteLock(wanted, connection_)) continue;
    leaf.lock = wanted;
    leaf.lock_at = operations->size();
    lock.AppendLock(wanted, connection_, &leaf.image, operations);
  }
}

template <class Keys>
coro::Task<Status> LeafInserts<Keys>::TakeLocks(Status posted, std::span<const rdma::Operation> operations) {
  Status first_error;
  locked_ = 0;
  TernaryLock<Keys>& lock = *parts_->lock();
  for (size_t i = 0; i < used_; ++i) {
    Leaf& leaf = *leaves_[i];
    if (!leaf.lock.has_value()) continue;
    const StatusOr<bool> taken = co_await lock.leaves()->TakeLock(operations[leaf.lock_at], posted);
    Status status = taken.status();
    if (taken.ok() && *taken) {
      const bool is_alone = posted.ok() && lock.IsAlone(*leaf.lock, operations[leaf.lock_at + 1].result, &leaf.image);
      leaf.is_locked = is_alone && Draft(&leaf);
      if (!is_alone) Sometimes<"leaf: an insert by verbs finds others inside">();
      if (leaf.is_locked) {
        locked_ += leaf.items.size();
      } else {
        // Nothing was written, and the transaction may go on without this leaf.
        status = co_await lock.GiveBack(*leaf.lock);
      }
    }
    if (status.ok()) continue;
    if (first_error.ok()) first_error = status;
    SetOutcome(leaf, Insertion::Outcome::kUnknown);
    leaf.items.clear();
  }
  co_return first_error;
}

template <class Keys>
bool LeafInserts<Keys>::Draft(Leaf* leaf) {
  const typename Keys::Image& image = Keys::View(leaf->image);
  std::vector<IndexEntry> entries;
  bool refused = false;
  for (Item* const item : leaf->items) {
    Insertion& one = *item->insertion;
    const IndexEntry entry = Keys::RecordEntry(parts_->schema(), item->key, one.record);
    if constexpr (Keys::kKeysElsewhere) {
      item->is_refused = shared_leaf::MatchTag(image, Keys::EntryOf(entry).tag()) != 0;
    } else if (const int slot = Keys::SlotOf(image, item->key); slot >= 0) {
      one.outcome = Insertion::Outcome::kExists;
      one.existing = Keys::TargetOf(image.template entry<typename Keys::Entry>(slot), leaf->place.address.node());
    }
    refused = refused || item->is_refused || one.outcome == Insertion::Outcome::kExists;
    entries.push_back(entry);
  }
  if (refused) return false;
  leaf->draft.emplace(leaf->place.address, leaf->image);
  const auto add_all = [&] {
    return std::ranges::all_of(entries, [&](const IndexEntry& one) { return leaf->draft->Add(Keys::EntryOf(one)); });
  };
  if (!HasReserved(leaf->image) && add_all()) return true;
  leaf->draft.emplace(leaf->place.address, leaf->image);
  leaf->draft->Tidy();
  if (add_all() || DraftSplit(leaf, entries)) return true;
  for (Item* const item : leaf->items) item->is_refused = true;
  return false;
}

template <class Keys>
bool LeafInserts<Keys>::DraftSplit(Leaf* leaf, std::span<const IndexEntry> entries) {
  if constexpr (!Keys::kKeysElsewhere) {
    if (!leaf->block.has_value() || leaf->block->connection != connection_) return false;
    leaf->draft.emplace(leaf->place.address, leaf->image);
    leaf->draft->Tidy();
    if (leaf->draft->image().count() < 2) return false;  // there are more keys than a leaf has room for
    const shared_leaf::LeafCopyOf<Keys> place{leaf->place.address, Keys::View(leaf->draft->image())};
    leaf->plan = PlanSplit<Keys>(place, Keys::KeyOf(entries.front()));
    if (!leaf->plan.has_value() || !HasRoom<Keys>(*leaf->plan, entries, leaf->draft->image())) return false;
    leaf->added.assign(entries.begin(), entries.end());
    leaf->fresh.emplace(leaf->block->address, leaf->block->word, parts_->lock()->shape_lines(),
                        parts_->lock()->leaves()->owner_bits());
    leaf->block.reset();  // it is a leaf; or the connection, over which it was lent, has ended
    return true;
  }
  return false;
}

template <class Keys>
void LeafInserts<Keys>::AppendChanges(std::vector<rdma::Operation>* operations) {
  changes_.Clear();
  for (size_t i = 0; i < used_; ++i) {
    Leaf& leaf = *leaves_[i];
    if (!leaf.is_locked) continue;
    leaf.first_change = changes_.size();
    // The records go first, and TakeChange repeats all of this until the leaf is released. So if it is, they are there.
    for (const Item* const item : leaf.items) {
      const std::span<const std::byte> record = item->insertion->image;
      if (record.empty()) continue;
      changes_.Add(
          rdma::Operation::Write(record.data(), item->insertion->record, static_cast<uint32_t>(record.size())));
    }
    if (leaf.fresh.has_value()) {
      AppendSplit<Keys>(*leaf.plan, leaf.added, &*leaf.draft, &*leaf.fresh, &changes_);
    } else {
      leaf.draft->AppendChange(&changes_);
    }
    Change& change = leaf.items.front()->insertion->change;
    change.AddChanged(leaf.place.address, leaf.draft->before(), leaf.draft->after());
    if (leaf.fresh.has_value()) {
      Sometimes<"leaf: inserts by verbs split a leaf that several nodes change">();
      change.AddChanged(leaf.fresh->address(), leaf.fresh->before(), leaf.fresh->after());
    }
    leaf.changes = changes_.size() - leaf.first_change;
    if (leaf.fresh.has_value()) leaf.hint = parts_->way()->HintOf(leaf.plan->border, leaf.fresh->address());
    if (leaf.hint.has_value()) leaf.hint->Append(&changes_);
  }
  for (rdma::Operation& operation : changes_.operations()) {
    operation.connection = connection_;
    operations->push_back(operation);
  }
}

// Keys of leaves whose lock was not taken remain for another round.
template <class Keys>
coro::Task<Status> LeafInserts<Keys>::TakeChanges(Status posted) {
  Status first_error;
  for (size_t i = 0; i < used_; ++i) {
    Leaf& leaf = *leaves_[i];
    if (!leaf.is_locked) continue;
    Status done = co_await parts_->lock()->leaves()->TakeChange(
        leaf.place.address, changes_.operations().subspan(leaf.first_change, leaf.changes), posted);
    SetOutcome(leaf, done.ok() ? Insertion::Outcome::kDone : Insertion::Outcome::kUnknown);
    const bool is_known = leaf.hint.has_value() && parts_->way()->NoteHint(&*leaf.hint);
    if (done.ok() && leaf.fresh.has_value() && !is_known) {
      made_.push_back({leaf.plan->border, leaf.fresh->address()});
    }
    if (first_error.ok()) first_error = std::move(done);
  }
  DropLeaves();
  std::erase_if(items_, [](const Item& item) { return item.insertion->outcome != Insertion::Outcome::kRefused; });
  pending_ = items_.size();
  co_return first_error;
}

template <class Keys>
coro::Task<void> LeafInserts<Keys>::Publish() {
  const std::vector<NewLeaf> made = std::move(made_);
  made_.clear();
  for (const NewLeaf& one : made) co_await parts_->way()->NoteSplit(one.border, one.right);
  if (parts_->is_ready()) co_await parts_->blocks()->Refill();
}

template <class Keys>
void LeafInserts<Keys>::SetOutcome(const Leaf& leaf, Insertion::Outcome outcome) {
  for (const Item* const item : leaf.items) item->insertion->outcome = outcome;
}

template class LeafInserts<IntegerKeys>;
template class LeafInserts<ByteKeys>;

}  // namespace gannet::index::dolphin
