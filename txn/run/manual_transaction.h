// ManualTransaction: a transaction that its program begins and commits itself, without coroutines and without a
// function that is its body. For bindings of other languages, and for transactions that a user steers.
//
//   StatusOr<ManualTransaction> t = database.Begin();
//   if (!t.ok()) return t.status();
//   Status status;
//   do {
//     status = (*t)->Upsert(counts, "gannet", uint64_t{1});
//     if (status.ok()) status = t->Commit();
//   } while (t->TryAgain(status));
//
// Where a function can be the body, Database::Run is shorter, and cannot be used wrongly.
//
// Its reads may not belong together until Commit or Validate has returned Ok: a program that decides by what it read
// not to write, and tells somebody, calls Commit (or Validate and waits for the disk by itself).
//
// While it is open, no memory that others free is used again, as in every transaction: it should end soon.
//
// Used by one thread at a time. It holds a session of Database::Run until it is destroyed, and must be destroyed before
// the database is closed.
#pragma once

#include <memory>

#include "base/status.h"
#include "txn/run/blocking.h"
#include "txn/run/transaction.h"

namespace gannet::txn {

class ManualTransaction {
 public:
  ManualTransaction(ManualTransaction&&) noexcept;
  ManualTransaction& operator=(ManualTransaction&&) = delete;
  // Rolls back what was not committed.
  ~ManualTransaction();

  // The operations. After Commit they return FailedPrecondition, until Rollback or TryAgain.
  BlockingTransaction* operator->() { return &operations_; }
  BlockingTransaction& operator*() { return operations_; }

  // Commits. Returns Ok, Aborted (see TryAgain), AlreadyExists, Unknown, or another error: then nothing happened.
  Status Commit();
  // Drops the buffered writes, and forgets the reads and a failure: the transaction is as if it had just begun, also
  // after Commit.
  void Rollback();

  // If `status` is Aborted, waits for a short random time, begins the transaction again, and returns true. It is then
  // the same transaction for precedence (txn/peer/precedence.h): one that loses for too long goes first. Otherwise
  // returns false and does nothing.
  bool TryAgain(const Status& status);

 private:
  friend class Database;
  struct Borrowed;
  explicit ManualTransaction(std::unique_ptr<Borrowed> borrowed);
  void Begin();

  std::unique_ptr<Borrowed> borrowed_;
  BlockingTransaction operations_;
};

}  // namespace gannet::txn
