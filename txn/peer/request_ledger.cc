#include "txn/peer/request_ledger.h"

#include <map>
#include <mutex>

#include "txn/record/record.h"

namespace gannet::txn {

RequestLedger::Claim::Claim(RequestLedger* ledger, const Caller& caller) : ledger_(ledger) {
  std::lock_guard lock(ledger->mutex_);
  Entry& entry = ledger->entries_[caller.name];
  if (caller.number < entry.number) {
    turn_ = Turn::kLate;
    return;
  }
  if (entry.busy) {
    turn_ = Turn::kBusy;
    return;
  }
  entry_ = &entry;
  entry.busy = true;
  if (caller.number == entry.number) {
    turn_ = Turn::kDone;
    return;
  }
  entry.number = caller.number;
  entry.result = absl::OkStatus();
  entry.made.clear();
}

std::vector<DecidedWork> RequestLedger::DecidedBy(rdma::NodeId node) {
  std::lock_guard lock(mutex_);
  std::map<uint64_t, const Entry*> ordered;  // a hash table's order differs between programs
  for (const auto& [name, entry] : entries_) {
    if (LockOwnerNode(name) == node && entry.all_decided) ordered.emplace(name, &entry);
  }
  std::vector<DecidedWork> result;
  for (const auto& [name, entry] : ordered) {
    result.insert(result.end(), entry->decided.begin(), entry->decided.end());
  }
  return result;
}

void RequestLedger::CloseAllOf(rdma::NodeId node) {
  std::lock_guard lock(mutex_);
  for (auto& [name, entry] : entries_) {
    if (LockOwnerNode(name) != node) continue;
    entry.made.clear();
    entry.decided.clear();
    entry.all_decided = false;
  }
}

RequestLedger::Claim::~Claim() {
  if (entry_ == nullptr) return;
  std::lock_guard lock(ledger_->mutex_);
  entry_->busy = false;
}

}  // namespace gannet::txn
