// Internal to txn/: a commit's stay in its epoch.
#pragma once

#include "log/kill_point.h"
#include "txn/commit/commit.h"
#include "txn/durable/commit_log.h"

namespace gannet::txn {

// Enter begins the stay, when all locks are held and before anything is validated; it lasts to the end of the
// install. Without a log, or without changes, it does nothing.
class Commit::RedoScope {
 public:
  explicit RedoScope(Commit* commit) : commit_(commit) {}
  // May be called again. Must be called once, also by a commit that has failed.
  void Enter() {
    if (commit_->redo_bytes_ == 0 || entered_ != 0) return;
    entered_ = commit_->log_->writer().Enter();
    commit_->epoch_ = entered_;
    commit_->logged_ = true;
    log::MayDieHere(log::KillPoint::kCommitLocked);
  }
  ~RedoScope() {
    if (entered_ == 0) return;
    commit_->log_->writer().Leave(entered_);
    commit_->log_->writer().Release(commit_->redo_bytes_);
    commit_->redo_bytes_ = 0;
  }
  RedoScope(const RedoScope&) = delete;
  RedoScope& operator=(const RedoScope&) = delete;

 private:
  Commit* commit_;
  uint64_t entered_ = 0;
};

}  // namespace gannet::txn
