#include "index/remote/leaf_insert.h"

#include <algorithm>
#include <utility>

#include "base/sometimes.h"
#include "index/remote/leaf_draft.h"

namespace gannet::index::remote {

template <class Keys>
typename LeafInserts<Keys>::Leaf* LeafInserts<Keys>::NewLeaf() {
  if (used_ == leaf_pool_.size()) leaf_pool_.push_back(std::make_unique<Leaf>());
  Leaf* const leaf = leaf_pool_[used_++].get();
  leaf->draft.reset();
  leaf->is_read = leaf->is_noted = leaf->is_locked = false;
  leaf->keys = 0;
  return leaf;
}

template <class Keys>
void LeafInserts<Keys>::Begin(std::span<Insertion> insertions, uint64_t connection,
                              std::vector<rdma::Operation>* reads) {
  connection_ = connection;
  used_ = 0;
  items_.clear();
  for (Insertion& one : insertions) items_.push_back({&one, Keys::KeyFrom(one.key), nullptr});
  std::ranges::sort(items_, {}, &Item::key);
  pending_ = items_.size();
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
}

// The leaf of the key, and not yet the leaf of other keys (which would have included this one).
template <class Keys>
bool LeafInserts<Keys>::IsUsable(Leaf* leaf, const typename Keys::Key& key) {
  return leaf != nullptr && leaf->is_read && !leaf->draft.has_value() &&
         leaves_->Judge(&leaf->place.image) == LeafLook::kWhole && leaf->place.image.level() == 0 &&
         Keys::CoversKey(leaf->place.image, key);
}

template <class Keys>
void LeafInserts<Keys>::Add(Leaf* leaf, Item* item) {
  Insertion& one = *item->insertion;
  const auto entry = Keys::EntryOf(Keys::RecordEntry(finder_->schema(), item->key, one.record));
  item->leaf = leaf;
  if constexpr (Keys::kKeysElsewhere) {
    if (MatchTag(leaf->place.image, entry.tag()) != 0) {
      Sometimes<"leaf: an insert by verbs meets its key's tag">();
      return;
    }
  } else if (const int slot = FindSlot(leaf->place.image, item->key); slot >= 0) {
    one.outcome = Insertion::Outcome::kExists;
    one.existing = Keys::TargetOf(leaf->place.image.template entry<typename Keys::Entry>(slot), leaves_->owner());
    return;
  }
  if (leaf->keys >= finder_->RoomIn(leaf->place) || leaf->draft->Add(entry) < 0) {
    Sometimes<"leaf: an insert by verbs meets a full leaf">();
    return;
  }
  ++leaf->keys;
  item->is_added = true;
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
    const size_t first = at;
    do {
      Add(leaf, &items_[at]);
    } while (++at < items_.size() && Keys::CoversKey(leaf->place.image, items_[at].key));
    pending_ += leaf->keys;
    if (leaf->keys == 0) {
      leaf->draft.reset();
      for (size_t i = first; i < at; ++i) items_[i].leaf = nullptr;
    }
  }
  // What is refused, or exists, is decided.
  std::erase_if(items_, [](const Item& item) { return !item.is_added; });
  co_return absl::OkStatus();
}

template <class Keys>
void LeafInserts<Keys>::AppendLocks(std::vector<rdma::Operation>* operations) {
  for (size_t i = 0; i < used_; ++i) {
    Leaf& leaf = *leaf_pool_[i];
    leaf.is_noted = leaf.draft.has_value() && leaves_->NoteLock(leaf.place.address, connection_);
    if (!leaf.is_noted) continue;
    leaf.lock_at = operations->size();
    operations->push_back(leaf.draft->Lock());
    operations->back().connection = connection_;
  }
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
    if (*taken) locked_ += leaf.keys;
    if (*taken && leaf.keys > 1) Sometimes<"leaf: inserts by verbs share a lock">();
    if (!*taken) Sometimes<"leaf: an insert by verbs meets a leaf that has changed">();
  }
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
    leaf.draft->AppendChange(&changes_);
    leaf.changes = changes_.size() - leaf.first_change;
    const auto first = std::ranges::find(items_, &leaf, &Item::leaf);
    first->insertion->change.AddChanged(leaf.place.address, leaf.place.image.head.state, leaf.draft->unlocked());
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
    Leaf& leaf = *leaf_pool_[i];
    if (!leaf.is_locked) continue;
    Status done = co_await leaves_->TakeChange(leaf.place.address,
                                               changes_.operations().subspan(leaf.first_change, leaf.changes), posted);
    SetOutcome(leaf, done.ok() ? Insertion::Outcome::kDone : Insertion::Outcome::kUnknown);
    if (first_error.ok()) first_error = std::move(done);
  }
  std::erase_if(items_, [](const Item& item) { return item.insertion->outcome != Insertion::Outcome::kRefused; });
  for (Item& item : items_) {
    item.leaf = nullptr;
    item.is_added = false;
  }
  pending_ = items_.size();
  used_ = 0;
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

}  // namespace gannet::index::remote
