// Internal to txn/: a commit's stay in its epoch.
#pragma once

#include "log/kill_point.h"
#include "txn/durable/commit_log.h"
#include "txn/session/transaction_impl.h"

namespace gannet::txn {

// From the locks to the end of the install. Without a log, or without changes, it does nothing.
class TransactionImpl::RedoScope {
 public:
  explicit RedoScope(TransactionImpl* transaction) : transaction_(transaction) {
    if (transaction->redo_bytes_ == 0) return;
    entered_ = transaction->log_->writer().Enter();
    transaction->epoch_ = entered_;
    transaction->logged_ = true;
    log::MayDieHere(log::KillPoint::kCommitLocked);
  }
  ~RedoScope() {
    if (entered_ == 0) return;
    transaction_->log_->writer().Leave(entered_);
    transaction_->log_->writer().Release(transaction_->redo_bytes_);
    transaction_->redo_bytes_ = 0;
  }
  RedoScope(const RedoScope&) = delete;
  RedoScope& operator=(const RedoScope&) = delete;

 private:
  TransactionImpl* transaction_;
  uint64_t entered_ = 0;
};

}  // namespace gannet::txn
