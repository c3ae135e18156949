#include "txn/request_ledger.h"

#include <mutex>

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

RequestLedger::Claim::~Claim() {
  if (entry_ == nullptr) return;
  std::lock_guard lock(ledger_->mutex_);
  entry_->busy = false;
}

}  // namespace gannet::txn
