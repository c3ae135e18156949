// BlockingTransaction: a transaction for programs without coroutines. Every call returns when it is done.
//
//   Status status = database.Run([&](BlockingTransaction& t) -> Status {
//     Account a;
//     if (Status s = t.Get(accounts, 1, &a); !s.ok()) return s;
//     a.balance += 100;
//     return t.Update(accounts, 1, a);
//   });
#pragma once

#include <span>

#include "base/coro/async.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "txn/transaction.h"

namespace gannet::txn {

// transaction.h has the contracts of these calls.
class BlockingTransaction {
 public:
  BlockingTransaction(Transaction* transaction, coro::Worker* worker) : transaction_(transaction), worker_(worker) {}

  Status Get(const Table& table, Key key, std::span<std::byte> out, uint32_t offset = 0) {
    return Wait(transaction_->Get(table, key, out, offset));
  }
  template <PayloadType Row>
  Status Get(const Table& table, Key key, Row* row) {
    return Wait(transaction_->Get(table, key, row));
  }
  Status GetMany(std::span<GetRequest> requests) { return Wait(transaction_->GetMany(requests)); }
  template <PayloadType Row>
  StatusOr<RecordHandle> GetForUpdate(const Table& table, Key key, Row* row) {
    return Wait(transaction_->GetForUpdate(table, key, row));
  }
  template <PayloadType Row>
  Status Update(RecordHandle handle, const Row& row) {
    return transaction_->Update(handle, row);
  }
  Status Update(const Table& table, Key key, std::span<const std::byte> data) {
    return Wait(transaction_->Update(table, key, data));
  }
  template <PayloadType Row>
  Status Update(const Table& table, Key key, const Row& row) {
    return Update(table, key, std::as_bytes(std::span(&row, 1)));
  }
  Status Insert(const Table& table, Key key, std::span<const std::byte> payload) {
    return transaction_->Insert(table, key, payload);
  }
  template <PayloadType Row>
  Status Insert(const Table& table, Key key, const Row& row) {
    return transaction_->Insert(table, key, row);
  }
  Status Remove(const Table& table, Key key) { return Wait(transaction_->Remove(table, key)); }
  Status Scan(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options = {}) {
    return Wait(transaction_->Scan(table, range, rows, options));
  }
  Status Search(const Table& table, const index::Rectangle& window, ScanRows* rows, ScanOptions options = {}) {
    return Wait(transaction_->Search(table, window, rows, options));
  }
  Status Nearest(const Table& table, const index::NearestQuery& query, ScanRows* rows, ScanOptions options = {}) {
    return Wait(transaction_->Nearest(table, query, rows, options));
  }

  // The underlying transaction, for operations that have no blocking form here.
  Transaction& transaction() { return *transaction_; }

 private:
  template <class T>
  T Wait(coro::Async<T> async) {
    if (async.ready()) return std::move(async.value());
    return worker_->BlockOn(std::move(async.task()));
  }

  Transaction* transaction_;
  coro::Worker* worker_;
};

}  // namespace gannet::txn
