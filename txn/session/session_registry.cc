#include "txn/session/session_registry.h"

#include <algorithm>
#include <mutex>

#include "absl/strings/str_cat.h"

namespace gannet::txn {
namespace {

Status Closed() {
  return absl::FailedPreconditionError("the database has been closed; open it again");
}

}  // namespace

Status SessionRegistry::NotHome() const {
  return absl::FailedPreconditionError(
      absl::StrCat("this database was opened by process ", process_, "; open it after fork"));
}

Status SessionRegistry::CheckOpen() const {
  GANNET_RETURN_IF_ERROR(CheckHome());
  const std::lock_guard lock(mutex_);
  return closed_ ? Closed() : absl::OkStatus();
}

Status SessionRegistry::Add(uint64_t owner_bits, PendingOperations* pending, const SessionCounts& counts,
                            uint64_t* number) {
  const std::lock_guard lock(mutex_);
  if (closed_) return Closed();
  ++open_;
  *number = ++opened_;
  counts_.push_back(counts);
  for (auto left = left_pending_.begin(); left != left_pending_.end(); ++left) {
    if (left->first != owner_bits) continue;
    pending->TakeOver(std::move(left->second));
    left_pending_.erase(left);
    break;
  }
  return absl::OkStatus();
}

void SessionRegistry::Remove(uint64_t owner_bits, PendingOperations* pending, const SessionCounts& counts) {
  const std::lock_guard lock(mutex_);
  --open_;
  std::erase_if(counts_, [&counts](const SessionCounts& open) { return open.paths == counts.paths; });
  counts.transactions->AddTo(&transactions_of_closed_);
  const size_t counters = counts.paths->tables() * kAccessKinds;
  if (paths_of_closed_.size() < counters) paths_of_closed_.resize(counters);
  for (size_t i = 0; i < counters; ++i) {
    paths_of_closed_[i] +=
        counts.paths->statistics(static_cast<TableId>(i / kAccessKinds), static_cast<AccessKind>(i % kAccessKinds));
  }
  if (!pending->leaves_any()) return;
  if (std::vector<std::shared_ptr<PendingOperation>> left = pending->Leave(); !left.empty()) {
    left_pending_.emplace_back(owner_bits, std::move(left));
  }
}

PathStatistics SessionRegistry::PathsOf(TableId table, AccessKind kind) const {
  const std::lock_guard lock(mutex_);
  const size_t place = table * kAccessKinds + static_cast<size_t>(kind);
  PathStatistics sum;
  if (place < paths_of_closed_.size()) sum += paths_of_closed_[place];
  for (const SessionCounts& open : counts_) sum += open.paths->statistics(table, kind);
  return sum;
}

TransactionStatistics SessionRegistry::transactions() const {
  const std::lock_guard lock(mutex_);
  TransactionStatistics sum = transactions_of_closed_;
  for (const SessionCounts& open : counts_) open.transactions->AddTo(&sum);
  return sum;
}

SessionRegistry::Call::Call(SessionRegistry* registry, const char* name) : registry_(registry), name_(name) {
  const std::lock_guard lock(registry_->mutex_);
  registry_->calls_.push_back(name);
}

SessionRegistry::Call::~Call() {
  if (!registry_->home_.is_here()) return;
  const std::lock_guard lock(registry_->mutex_);
  registry_->calls_.erase(std::ranges::find(registry_->calls_, name_));
}

StatusOr<bool> SessionRegistry::Close() {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  if (!calls_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Database::Close: Database::", calls_.front(), " is in progress; let it return first"));
  }
  if (open_ > 0) {
    return absl::FailedPreconditionError(absl::StrCat("Database::Close: ", open_,
                                                      open_ == 1 ? " session is open" : " sessions are open",
                                                      " (opened by OpenSession, or used by a Run in progress); "
                                                      "destroy each, and let each Run return, before Close"));
  }
  closed_ = true;
  return true;
}

bool SessionRegistry::CloseAnyway() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(closed_, true);
}

}  // namespace gannet::txn
