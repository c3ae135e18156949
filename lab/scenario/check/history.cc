#include "lab/scenario/check/history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace gannet::scenario {

std::string RowKey::ToString() const {
  return absl::StrCat(table, ":", key);
}

void Draft::Read(RowKey row, WriteId seen) {
  accesses_.push_back({AccessKind::kRead, row.table, row.key, seen, 0});
}

void Draft::Write(RowKey row, WriteId id, uint64_t version) {
  accesses_.push_back({AccessKind::kWrite, row.table, row.key, id, version});
}

void Draft::Remove(RowKey row, WriteId id, uint64_t version) {
  accesses_.push_back({AccessKind::kRemove, row.table, row.key, id, version});
}

void Draft::Insert(RowKey row, WriteId id, uint64_t version) {
  Read(row, kAbsent);
  Write(row, id, version);
}

void Draft::BeginScan(const ScanQuery& query) {
  GANNET_CHECK(scan_ == SIZE_MAX, "the scan before was not ended");
  query_ = query;
  scan_ = accesses_.size();
  accesses_.push_back({AccessKind::kScan, query.table, query.from, query.to, 0});
}

void Draft::Row(uint64_t key, WriteId seen) {
  GANNET_CHECK(scan_ != SIZE_MAX, "key=%u: no scan has begun", key);
  accesses_.push_back({AccessKind::kScanRow, query_.table, key, seen, 0});
}

void Draft::EndScan() {
  GANNET_CHECK(scan_ != SIZE_MAX, "no scan has begun");
  Access& scan = accesses_[scan_];
  scan.version = accesses_.size() - scan_ - 1;
  if (scan.version >= query_.limit) {
    const bool nothing = scan.version == 0;  // limit 0: an empty range
    const uint64_t last = nothing ? 0 : accesses_.back().key;
    if (nothing) {
      scan.key = 1;
      scan.id = 0;
    } else {
      (query_.reverse ? scan.key : scan.id) = last;
    }
  }
  scan_ = SIZE_MAX;
}

void Draft::DropOpenScan() {
  if (scan_ == SIZE_MAX) return;
  accesses_.resize(scan_);
  scan_ = SIZE_MAX;
}

void Draft::Abandon() {
  size_t kept = 0;
  for (Access& access : accesses_) {
    const bool writes = access.kind == AccessKind::kWrite || access.kind == AccessKind::kRemove;
    if (!writes && access.kind != AccessKind::kAbandoned) continue;
    access.kind = AccessKind::kAbandoned;
    accesses_[kept++] = access;
  }
  accesses_.resize(kept);
  scan_ = SIZE_MAX;
}

void Draft::KeepReads() {
  size_t kept = 0;
  bool wrote = false;
  for (size_t i = 0; i < accesses_.size(); ++i) {
    Access access = accesses_[i];
    if (access.kind == AccessKind::kWrite || access.kind == AccessKind::kRemove) {
      // An Insert begins with a read that found nothing. That may be the very thing that was wrong.
      const bool inserts = !wrote && kept > 0 && accesses_[kept - 1].kind == AccessKind::kRead &&
                           accesses_[kept - 1].row() == access.row() && accesses_[kept - 1].id == kAbsent;
      if (inserts) --kept;
      wrote = true;
      access.kind = AccessKind::kAbandoned;
    } else if (wrote && access.kind != AccessKind::kAbandoned) {
      continue;
    }
    accesses_[kept++] = access;
  }
  accesses_.resize(kept);
}

OperationId History::Invoke(uint32_t client, uint64_t now) {
  const auto op = static_cast<OperationId>(operations_.size());
  operations_.push_back({client, Outcome::kInfo, now, kNever, 0, 0});
  std::unique_ptr<Draft> draft;
  if (free_.empty()) {
    draft = std::make_unique<Draft>();
  } else {
    draft = std::move(free_.back());
    free_.pop_back();
  }
  open_.emplace(op, std::move(draft));
  return op;
}

Draft& History::draft(OperationId op) {
  const auto found = open_.find(op);
  GANNET_CHECK(found != open_.end(), "operation %u is not running", op);
  return *found->second;
}

Draft& History::BeginAttempt(OperationId op, uint64_t now) {
  Draft& result = draft(op);
  operations_[op].invoked = std::max(operations_[op].invoked, now);
  result.Abandon();
  return result;
}

void History::Complete(OperationId op, uint64_t now, Outcome outcome) {
  Draft& done = draft(op);
  done.DropOpenScan();
  Operation& operation = operations_[op];
  GANNET_CHECK(now >= operation.invoked, "operation %u: invoked at %u, completed at %u", op, operation.invoked, now);
  operation.outcome = outcome;
  operation.completed = now;
  operation.first_access = accesses_.size();
  operation.num_accesses = static_cast<uint32_t>(done.accesses_.size());
  accesses_.insert(accesses_.end(), done.accesses_.begin(), done.accesses_.end());
  done.accesses_.clear();
  const auto entry = open_.find(op);
  free_.push_back(std::move(entry->second));
  open_.erase(entry);
}

void History::CompleteRefused(OperationId op, uint64_t now) {
  Draft& refused = draft(op);
  refused.DropOpenScan();
  refused.KeepReads();
  Complete(op, now, Outcome::kOk);
}

std::span<const Access> History::accesses(OperationId op) const {
  const auto open = open_.find(op);
  if (open == open_.end())
    return std::span(accesses_).subspan(operations_[op].first_access, operations_[op].num_accesses);
  const Draft& running = *open->second;
  return std::span(running.accesses_).first(std::min(running.accesses_.size(), running.scan_));
}

}  // namespace gannet::scenario
