#include "index/shared_leaf/change/leaf_insert.h"

#include <algorithm>
#include <utility>

#include "base/sometimes.h"
#include "index/shared_leaf/leaf/leaf_draft.h"

namespace gannet::index::shared_leaf {
namespace {

// Right links that AppendReads follows. Caches that are further behind are brought up to date by a search.
constexpr int kFewRights = 4;

}  // namespace

template <class Keys>
typename LeafInserts<Keys>::Leaf* LeafInserts<Keys>::NewLeaf() {
  if (used_ == leaf_pool_.size()) leaf_pool_.push_back(std::make_unique<Leaf>());
  Leaf* const leaf = leaf_pool_[used_++].get();
  leaf->rights = 0;
  leaf->draft.reset();
  leaf->entries.clear();
  leaf->is_read = leaf->is_noted = leaf->is_locked = false;
  return leaf;
}

template <class Keys>
void LeafInserts<Keys>::DropSplit(Leaf* leaf) {
  if (leaf->split.has_value()) blocks_->PutBack(leaf->split->block);
  leaf->split.reset();
}

template <class Keys>
void LeafInserts<Keys>::DropLeaves() {
  for (size_t i = 0; i < used_; ++i) DropSplit(leaf_pool_[i].get());
  used_ = 0;
  notices_->Begin(connection_);
}

template <class Keys>
void LeafInserts<Keys>::Begin(std::span<Insertion> insertions, uint64_t connection,
                              std::vector<rdma::Operation>* reads) {
  connection_ = connection;
  DropLeaves();
  items_.clear();
  for (Insertion& one : insertions) items_.push_back({&one, Keys::KeyFrom(one.key), nullptr});
  std::ranges::sort(items_, {}, &Item::key);
  pending_ = items_.size();
  refused_ = 0;
  Leaf* last = nullptr;
  if (reads == nullptr) return;
  for (Item& item : items_) {
    const rdma::GlobalAddress leaf = finder_->ExpectLeaf(item.key);
    if (leaf.node() != leaves_->owner() || leaf.offset() == 0 || leaf.offset() % kLineBytes != 0) continue;
    if (last == nullptr || last->place.address != leaf) {
      last = NewLeaf();
      last->place.address = leaf;
      last->is_read = true;
      reads->push_back(rdma::Operation::Read(leaf, &last->place.image, static_cast<uint32_t>(leaves_->leaf_bytes())));
    }
    item.leaf = last;
  }
  for (size_t first = 0, end = 0; first < items_.size(); first = end) {
    Leaf* const leaf = items_[first].leaf;
    while (end < items_.size() && items_[end].leaf == leaf) ++end;
    if (leaf != nullptr) notices_->AppendReads(leaf->place.address, items_[first].key, end - first, reads);
  }
}

template <class Keys>
void LeafInserts<Keys>::Abandon() {
  DropLeaves();
  items_.clear();
  pending_ = 0;
}

template <class Keys>
bool LeafInserts<Keys>::IsWhole(Leaf* leaf) const {
  return leaf != nullptr && leaf->is_read && leaves_->Judge(&leaf->place.image) == LeafLook::kWhole &&
         leaf->place.image.level() == 0;
}

// The leaf of the key, and not yet the leaf of other keys (which would have included this one).
template <class Keys>
bool LeafInserts<Keys>::IsUsable(Leaf* leaf, const typename Keys::Key& key) const {
  return IsWhole(leaf) && !leaf->draft.has_value() && Keys::CoversKey(leaf->place.image, key);
}

template <class Keys>
bool LeafInserts<Keys>::LeadsRight(Leaf* leaf, const typename Keys::Key& key) const {
  if (!IsWhole(leaf) || leaf->rights >= kFewRights || !Keys::EndsBefore(leaf->place.image, Keys::At(key))) return false;
  const rdma::GlobalAddress right = leaf->place.image.right();
  return right.node() == leaves_->owner() && right.offset() != 0 && right.offset() % kLineBytes == 0;
}

// Others have split the leaves. What comes to light goes to the caches, and to those who do not know it either.
template <class Keys>
void LeafInserts<Keys>::AppendReads(std::vector<rdma::Operation>* reads) {
  const Leaf* from = nullptr;
  Leaf* right = nullptr;
  for (Item& item : items_) {
    if (!LeadsRight(item.leaf, item.key)) continue;
    if (item.leaf != from) {
      from = item.leaf;
      right = NewLeaf();
      right->place.address = from->place.image.right();
      right->rights = from->rights + 1;
      right->is_read = true;
      Sometimes<"leaf: inserts by verbs follow a right link">();
      const IndexEntry found = Keys::ChildEntry(Keys::NextLow(from->place.image), right->place.address);
      if (!finder_->NoteSplit(found)) notices_->Add(found);
      reads->push_back(rdma::Operation::Read(right->place.address, &right->place.image,
                                             static_cast<uint32_t>(leaves_->leaf_bytes())));
    }
    item.leaf = right;
  }
}

template <class Keys>
void LeafInserts<Keys>::Add(Leaf* leaf, Item* item) {
  Insertion& one = *item->insertion;
  const IndexEntry entry = Keys::RecordEntry(finder_->schema(), item->key, one.record);
  item->leaf = leaf;
  if constexpr (Keys::kKeysElsewhere) {
    if (MatchTag(leaf->place.image, Keys::EntryOf(entry).tag()) != 0) {
      Sometimes<"leaf: an insert by verbs meets its key's tag">();
      return;
    }
  } else if (const int slot = Keys::SlotOf(leaf->place.image, item->key); slot >= 0) {
    one.outcome = Insertion::Outcome::kExists;
    one.existing = Keys::TargetOf(leaf->place.image.template entry<typename Keys::Entry>(slot), leaves_->owner());
    return;
  }
  leaf->entries.push_back(entry);
  item->is_added = true;
}

template <class Keys>
coro::Task<bool> LeafInserts<Keys>::Prepare(Leaf* leaf) {
  if (leaves_->IsClaimedByAnother(leaf->place.image.head.state)) {
    Sometimes<"leaf: an insert by verbs meets another node's claim">();
    co_return false;
  }
  if (leaf->entries.size() <= finder_->RoomIn(leaf->place)) {
    for (const IndexEntry& entry : leaf->entries) leaf->draft->AddToRoom(Keys::EntryOf(entry));
    co_return !leaf->entries.empty();
  }
  const bool splits = co_await PrepareSplit(leaf);
  if (!splits) Sometimes<"leaf: an insert by verbs meets a full leaf">();
  co_return splits;
}

template <class Keys>
coro::Task<bool> LeafInserts<Keys>::PrepareSplit(Leaf* leaf) {
  if constexpr (!Keys::kKeysElsewhere) {
    constexpr size_t kSlots = Keys::kSlots;
    const size_t added = leaf->entries.size();
    const auto all = static_cast<size_t>(leaf->place.image.template count<typename Keys::Entry>()) + added;
    if (added > kSlots || all <= kSlots || all > 2 * kSlots || !finder_->MaySplit(leaf->place)) co_return false;
    const SplitPlanOf<Keys> plan = PlanSplit<Keys>(leaf->place.image, {}, leaf->entries);
    co_await notices_->Prepare(Keys::KeyOf(Keys::ChildEntry(plan.border, {})));
    const StatusOr<FreeBlock> block = co_await blocks_->Take(connection_);
    if (!block.ok()) co_return false;
    const IndexEntry right = Keys::ChildEntry(plan.border, block->address);
    if (block->connection == connection_ && notices_->Add(right)) {
      leaf->split.emplace(Split{.block = *block,
                                .fresh = Draft(block->address, block->word, 0, leaves_->owner_bits()),
                                .plan = plan,
                                .right = right});
      co_return true;
    }
    blocks_->PutBack(*block);
  }
  co_return false;
}

template <class Keys>
coro::Task<Status> LeafInserts<Keys>::Find() {
  pending_ = 0;
  for (size_t at = 0; at < items_.size();) {
    Leaf* leaf = items_[at].leaf;
    if (!IsUsable(leaf, items_[at].key)) {
      if (leaf == nullptr || leaf->draft.has_value()) leaf = NewLeaf();
      const Status located = co_await finder_->LocateLeaf(items_[at].key, &leaf->place);
      GANNET_CO_RETURN_IF_ERROR(located);
    }
    leaf->draft.emplace(leaf->place.address, leaf->place.image, leaves_->owner_bits());
    leaf->entries.clear();
    const size_t first = at;
    do {
      Add(leaf, &items_[at]);
    } while (++at < items_.size() && Keys::CoversKey(leaf->place.image, items_[at].key));
    const bool prepared = co_await Prepare(leaf);
    if (prepared) {
      pending_ += leaf->entries.size();
      continue;
    }
    leaf->draft.reset();
    for (size_t i = first; i < at; ++i) {
      items_[i].leaf = nullptr;
      items_[i].is_added = false;
    }
  }
  // What is refused, or exists, is decided.
  std::erase_if(items_, [this](const Item& item) {
    if (!item.is_added && item.insertion->outcome == Insertion::Outcome::kRefused) ++refused_;
    return !item.is_added;
  });
  co_return absl::OkStatus();
}

template <class Keys>
void LeafInserts<Keys>::AppendLocks(std::vector<rdma::Operation>* operations) {
  for (size_t i = 0; i < used_; ++i) {
    Leaf& leaf = *leaf_pool_[i];
    leaf.is_noted = leaf.draft.has_value() && leaves_->NoteLock(*leaf.draft, connection_);
    if (!leaf.is_noted) continue;
    leaf.lock_at = operations->size();
    operations->push_back(leaf.draft->Lock());
    operations->back().connection = connection_;
  }
  notices_->AppendLocks(operations);
}

template <class Keys>
coro::Task<Status> LeafInserts<Keys>::TakeLocks(Status posted, std::span<const rdma::Operation> operations) {
  Status first_error;
  locked_ = 0;
  for (size_t i = 0; i < used_; ++i) {
    Leaf& leaf = *leaf_pool_[i];
    leaf.is_locked = false;
    if (!leaf.is_noted) continue;
    const StatusOr<bool> taken = co_await leaves_->TakeLock(operations[leaf.lock_at], posted);
    if (!taken.ok()) {
      if (first_error.ok()) first_error = taken.status();
      SetOutcome(leaf, Insertion::Outcome::kUnknown);
      leaf.draft.reset();
      continue;
    }
    leaf.is_locked = *taken;
    if (*taken) locked_ += leaf.entries.size();
    if (*taken && leaf.entries.size() > 1) Sometimes<"leaf: inserts by verbs share a lock">();
    if (!*taken) Sometimes<"leaf: an insert by verbs meets a leaf that has changed">();
  }
  co_await notices_->TakeLocks(posted, operations);
  co_return first_error;
}

template <class Keys>
void LeafInserts<Keys>::AppendChanges(std::vector<rdma::Operation>* operations) {
  changes_.Clear();
  for (size_t i = 0; i < used_; ++i) {
    Leaf& leaf = *leaf_pool_[i];
    if (!leaf.is_locked) continue;
    leaf.first_change = changes_.size();
    // The records go first, and TakeChange repeats all of this until line 0 is there. So if line 0 is there, they are.
    for (const Item& item : items_) {
      const std::span<const std::byte> record = item.insertion->image;
      if (item.leaf != &leaf || record.empty()) continue;
      changes_.Add(rdma::Operation::Write(record.data(), item.insertion->record, static_cast<uint32_t>(record.size())));
    }
    Change& change = std::ranges::find(items_, &leaf, &Item::leaf)->insertion->change;
    if (leaf.split.has_value()) {
      Sometimes<"leaf: inserts by verbs split a leaf">();
      Split& split = *leaf.split;
      AppendSplit<Keys>(split.plan, leaf.entries, &*leaf.draft, &split.fresh, &changes_);
      change.AddChanged(leaf.place.address, leaf.place.image.head.state, leaf.draft->unlocked());
      // This is not AddCreated, for the reason in LeafChanger::Split.
      change.AddChanged(split.block.address, split.block.word, split.fresh.unlocked());
    } else {
      leaf.draft->AppendChange(&changes_);
      change.AddChanged(leaf.place.address, leaf.place.image.head.state, leaf.draft->unlocked());
    }
    leaf.changes = changes_.size() - leaf.first_change;
  }
  for (rdma::Operation& operation : changes_.operations()) {
    operation.connection = connection_;
    operations->push_back(operation);
  }
  const auto is_made = [this](const IndexEntry& right) {
    const auto used = std::span(leaf_pool_).first(used_);
    return std::ranges::none_of(used, [&right](const std::unique_ptr<Leaf>& leaf) {
      return leaf->split.has_value() && !leaf->is_locked && Keys::KeyOf(leaf->split->right) == Keys::KeyOf(right);
    });
  };
  notices_->AppendChanges(is_made, operations);
}

// Keys of leaves whose lock was not taken remain for another round.
template <class Keys>
coro::Task<Status> LeafInserts<Keys>::TakeChanges(Status posted) {
  Status first_error;
  for (size_t i = 0; i < used_; ++i) {
    Leaf& leaf = *leaf_pool_[i];
    if (!leaf.is_locked) continue;
    Status done = co_await leaves_->TakeChange(leaf.place.address,
                                               changes_.operations().subspan(leaf.first_change, leaf.changes), posted);
    SetOutcome(leaf, done.ok() ? Insertion::Outcome::kDone : Insertion::Outcome::kUnknown);
    if (leaf.split.has_value()) {
      if (done.ok()) finder_->NoteSplit(leaf.split->right);
      leaf.split.reset();  // its block is a leaf; or the connection, over which it was lent, has ended
    }
    if (first_error.ok()) first_error = std::move(done);
  }
  co_await notices_->TakeChanges(posted);
  std::erase_if(items_, [](const Item& item) { return item.insertion->outcome != Insertion::Outcome::kRefused; });
  for (Item& item : items_) {
    item.leaf = nullptr;
    item.is_added = false;
  }
  pending_ = items_.size();
  DropLeaves();
  co_return first_error;
}

template <class Keys>
void LeafInserts<Keys>::SetOutcome(const Leaf& leaf, Insertion::Outcome outcome) {
  for (const Item& item : items_) {
    if (item.leaf == &leaf) item.insertion->outcome = outcome;
  }
}

template class LeafInserts<IntegerKeys>;
template class LeafInserts<ByteKeys>;

}  // namespace gannet::index::shared_leaf
