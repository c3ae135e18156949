#include "txn/durable/unsaved_loads.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "txn/durable/epoch_words.h"

namespace gannet::txn {

Status UnsavedLoads::Refusal(rdma::NodeId node) {
  return absl::FailedPreconditionError(
      absl::StrCat("a table of node ", node,
                   " was filled by BulkLoader, which is not logged, and no checkpoint has it yet: call "
                   "Database::Checkpoint there, then commit changes"));
}

void UnsavedLoads::AnnounceIn(EpochWords* words) {
  const std::lock_guard lock(mutex_);
  words_ = words;
}

void UnsavedLoads::Count(int64_t loads) {
  const uint64_t before = unsaved_.load(std::memory_order_relaxed);
  const uint64_t unsaved = before + static_cast<uint64_t>(loads);
  GANNET_CHECK(loads >= 0 || before >= static_cast<uint64_t>(-loads), "%d loads are saved of %d", -loads, before);
  unsaved_.store(unsaved, std::memory_order_seq_cst);
  if (words_ != nullptr) words_->AnnounceLoads(unsaved);
}

void UnsavedLoads::Begin(TableId table) {
  Hold(table);
  const std::lock_guard lock(mutex_);
  Count(+1);
}

void UnsavedLoads::End(TableId table, bool seen) {
  {
    const std::lock_guard lock(mutex_);
    if (seen) {
      ++ended_[table];
    } else {
      Count(-1);
    }
  }
  Release(table);
}

void UnsavedLoads::BeginWalk(TableId table, absl::FunctionRef<void()> waits) {
  std::unique_lock lock(mutex_);
  if (loading_.contains(table)) {
    lock.unlock();
    waits();
    lock.lock();
  }
  changed_.wait(lock, [&] { return !loading_.contains(table); });
  walked_ = table;
  const auto ended = ended_.find(table);
  if (ended == ended_.end()) return;
  met_[table] += ended->second;
  ended_.erase(ended);
}

void UnsavedLoads::EndWalk() {
  {
    const std::lock_guard lock(mutex_);
    walked_.reset();
  }
  changed_.notify_all();
}

bool UnsavedLoads::met() const {
  const std::lock_guard lock(mutex_);
  return !met_.empty();
}

bool UnsavedLoads::TryHold(TableId table) {
  const std::lock_guard lock(mutex_);
  return walked_ != table && loading_.insert(table).second;
}

void UnsavedLoads::Hold(TableId table) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return walked_ != table && !loading_.contains(table); });
  loading_.insert(table);
}

void UnsavedLoads::Release(TableId table) {
  {
    const std::lock_guard lock(mutex_);
    const size_t held = loading_.erase(table);
    // Otherwise another thread may be in the table, which has taken it for itself.
    GANNET_CHECK(held == 1, "table %d is released, but it is not loaded and not held", table);
  }
  changed_.notify_all();
}

void UnsavedLoads::Forget(TableId table) {
  const std::lock_guard lock(mutex_);
  for (std::map<TableId, int64_t>* loads : {&ended_, &met_}) {
    const auto found = loads->find(table);
    if (found == loads->end()) continue;
    Count(-found->second);
    loads->erase(found);
  }
}

void UnsavedLoads::EndCheckpoint(bool published) {
  const std::lock_guard lock(mutex_);
  for (const auto& [table, loads] : met_) {
    if (published) {
      Count(-loads);
    } else {
      ended_[table] += loads;
    }
  }
  met_.clear();
}

}  // namespace gannet::txn
