#include "index/blink/separator_notices.h"

#include <algorithm>

#include "base/sometimes.h"
#include "index/shared_leaf/leaf/leaf_draft.h"

namespace gannet::index::blink {

template <class Keys>
void SeparatorNotices<Keys>::Begin(uint64_t connection) {
  connection_ = connection;
  nodes_.clear();
}

template <class Keys>
typename SeparatorNotices<Keys>::Node* SeparatorNotices<Keys>::NodeAbove(const Key& low) {
  if (cache_ == nullptr) return nullptr;
  const SharedNodes::Reading<Keys> cached(*cache_);
  const auto* const node = cached->Find(1, Keys::At(low));
  if (node == nullptr) return nullptr;
  const auto known =
      std::ranges::find_if(nodes_, [node](const Node& one) { return one.place.address == node->address; });
  if (known != nodes_.end()) return &*known;
  nodes_.emplace_back().place = *node;
  return &nodes_.back();
}

template <class Keys>
void SeparatorNotices<Keys>::Drop(const Key& low) {
  const SharedNodes::Changing<Keys> cached(*cache_);
  cached->Drop(1, Keys::At(low));
}

template <class Keys>
void SeparatorNotices<Keys>::Keep(const LeafCopy& node) {
  const SharedNodes::Changing<Keys> cached(*cache_);
  cached->Put(node);
}

template <class Keys>
bool SeparatorNotices<Keys>::Add(const IndexEntry& leaf) {
  if constexpr (!Keys::kKeysElsewhere) {
    Node* const node = NodeAbove(Keys::KeyOf(leaf));
    if (node == nullptr) return false;
    // Another client may have added it, and this one's cache knows.
    if (const int slot = shared_leaf::FindSlot(node->place.image, Keys::KeyOf(leaf)); slot >= 0) {
      return node->place.image.template entry<typename Keys::Entry>(slot).target == leaf.target;
    }
    if (node->separators.size() >= static_cast<size_t>((*editor_)->RoomIn(node->place))) {
      // The change that adds the separator is to split the node. Then the copy would be of no use.
      Drop(Keys::KeyOf(leaf));
      return false;
    }
    node->separators.push_back(leaf);
    return true;
  }
  return false;
}

template <class Keys>
void SeparatorNotices<Keys>::AppendLocks(std::vector<rdma::Operation>* operations) {
  for (Node& node : nodes_) {
    if (node.separators.empty()) continue;
    node.draft.emplace(node.place.address, node.place.image, leaves_->owner_bits());
    if (!leaves_->NoteLock(*node.draft, connection_)) continue;
    node.is_noted = true;
    node.lock_at = operations->size();
    operations->push_back(node.draft->Lock());
    operations->back().connection = connection_;
  }
}

template <class Keys>
coro::Task<void> SeparatorNotices<Keys>::TakeLocks(Status posted, std::span<const rdma::Operation> operations) {
  for (Node& node : nodes_) {
    if (!node.is_noted) continue;
    const StatusOr<bool> taken = co_await leaves_->TakeLock(operations[node.lock_at], posted);
    node.is_locked = taken.ok() && *taken;
    if (node.is_locked) continue;
    Sometimes<"blink: a cached inner node is too old for a separator">();
    Drop(Keys::KeyOf(node.separators[0]));
  }
}

template <class Keys>
void SeparatorNotices<Keys>::AppendChanges(absl::FunctionRef<bool(const IndexEntry&)> is_made,
                                           std::vector<rdma::Operation>* operations) {
  changes_.Clear();
  for (Node& node : nodes_) {
    if (!node.is_locked) continue;
    for (const IndexEntry& separator : node.separators) {
      if (is_made(separator)) node.is_changed |= node.draft->Add(Keys::EntryOf(separator)) >= 0;
    }
    node.first_change = changes_.size();
    if (node.is_changed) {
      node.draft->AppendChange(&changes_);
    } else {
      changes_.Add(node.draft->GiveBack());
    }
    node.changes = changes_.size() - node.first_change;
  }
  for (rdma::Operation& operation : changes_.operations()) {
    operation.connection = connection_;
    operations->push_back(operation);
  }
}

template <class Keys>
coro::Task<void> SeparatorNotices<Keys>::TakeChanges(Status posted) {
  for (Node& node : nodes_) {
    if (!node.is_locked) continue;
    const Status done = co_await leaves_->TakeChange(
        node.place.address, changes_.operations().subspan(node.first_change, node.changes), posted);
    if (!done.ok() || !node.is_changed) continue;
    Sometimes<"blink: inserts by verbs add a separator">();
    Keep({node.place.address, node.draft->image()});
  }
}

template class SeparatorNotices<IntegerKeys>;
template class SeparatorNotices<ByteKeys>;

}  // namespace gannet::index::blink
