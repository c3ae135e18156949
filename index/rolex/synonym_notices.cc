#include "index/rolex/synonym_notices.h"

#include <utility>

#include "base/sometimes.h"

namespace gannet::index::rolex {

template <class Keys>
void SynonymNotices<Keys>::Begin(uint64_t connection) {
  connection_ = connection;
  leaves_.clear();
}

template <class Keys>
bool SynonymNotices<Keys>::Add(const IndexEntry& leaf) {
  const auto synonyms = models_->KnownSynonyms(Keys::KeyOf(leaf));
  if (!synonyms.has_value()) return false;
  leaves_.push_back({.leaf = leaf, .table = synonyms->table, .number = synonyms->number});
  return true;
}

template <class Keys>
void SynonymNotices<Keys>::AppendLocks(std::vector<rdma::Operation>* operations) {
  for (Leaf& leaf : leaves_) {
    leaf.take_at = operations->size();
    operations->push_back(rdma::Operation::FetchAndAdd(leaf.table + kUsedOffset, 1));
    operations->back().connection = connection_;
  }
}

template <class Keys>
coro::Task<void> SynonymNotices<Keys>::TakeLocks(Status posted, std::span<const rdma::Operation> operations) {
  for (Leaf& leaf : leaves_) {
    if (!posted.ok()) break;
    const uint64_t slot = operations[leaf.take_at].result;
    if ((slot & kRetiredBit) != 0) continue;
    leaf.slot = slot;
    if (slot == kTrainAt || slot == kUrgentAt) due_.push_back({leaf.table, slot == kUrgentAt});
  }
  co_return;
}

template <class Keys>
void SynonymNotices<Keys>::AppendChanges(absl::FunctionRef<bool(const IndexEntry&)> is_made,
                                         std::vector<rdma::Operation>* operations) {
  changes_.Clear();
  for (const Leaf& leaf : leaves_) {
    if (!leaf.slot.has_value() || !is_made(leaf.leaf)) continue;
    Sometimes<"rolex: inserts by verbs add a synonym">();
    const Synonym synonym{leaf.number, Keys::TargetOf(Keys::EntryOf(leaf.leaf), owner_).offset()};
    changes_.Write(leaf.table + SynonymOffset(*leaf.slot), std::as_bytes(std::span(&synonym, 1)));
  }
  for (rdma::Operation& operation : changes_.operations()) {
    operation.connection = connection_;
    operations->push_back(operation);
  }
}

template <class Keys>
coro::Task<void> SynonymNotices<Keys>::TakeChanges(Status /*posted*/) {
  co_return;
}

template <class Keys>
coro::Task<void> SynonymNotices<Keys>::Finish() {
  const std::vector<Due> due = std::exchange(due_, {});
  for (const Due& one : due) co_await (*editor_)->Enqueue(one.table, one.urgent);
}

template class SynonymNotices<IntegerKeys>;
template class SynonymNotices<ByteKeys>;

}  // namespace gannet::index::rolex
