// BlockingTransaction: a transaction for programs without coroutines. Every call returns when it is done.
//
//   Status status = database.Run([&](BlockingTransaction& t) -> Status {
//     Account a;
//     if (Status s = t.Get(accounts, 1, &a); !s.ok()) return s;
//     a.balance += 100;
//     return t.Update(accounts, 1, a);
//   });
#pragma once

#include <concepts>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "txn/run/cursor.h"
#include "txn/run/index_cursor.h"
#include "txn/run/transaction.h"
#include "txn/store/key_range.h"

namespace gannet::coro {
class Worker;
}

namespace gannet::txn {

// Runs `task` on the calling thread, whose worker it is, until it is done. For the results of the calls below:
// blocking.cc has their coroutines, which take long to compile.
template <class T>
T Finish(coro::Worker* worker, coro::Task<T> task);
extern template Status Finish(coro::Worker* worker, coro::Task<Status> task);
extern template StatusOr<bool> Finish(coro::Worker* worker, coro::Task<StatusOr<bool>> task);
extern template StatusOr<RecordHandle> Finish(coro::Worker* worker, coro::Task<StatusOr<RecordHandle>> task);
extern template StatusOr<RowBy> Finish(coro::Worker* worker, coro::Task<StatusOr<RowBy>> task);
extern template StatusOr<std::span<const std::byte>> Finish(coro::Worker* worker,
                                                            coro::Task<StatusOr<std::span<const std::byte>>> task);

// A cursor (txn/run/cursor.h, txn/run/index_cursor.h) whose moves return when they are done. For loops it is a range:
// of the rows that it comes to.
template <class Steps, class Over>
class BlockingCursorOf {
 public:
  BlockingCursorOf(Transaction& transaction, coro::Worker* worker, const Over& over, CursorOptions options)
      : cursor_(transaction, over, std::move(options)), worker_(worker) {}

  Status First() { return Wait(cursor_.First()); }
  Status Last() { return Wait(cursor_.Last()); }
  Status SeekForward(const Key& key) { return Wait(cursor_.SeekForward(key)); }
  Status SeekBackward(const Key& key) { return Wait(cursor_.SeekBackward(key)); }
  Status Next() {
    if constexpr (std::same_as<Steps, Cursor>) {
      // A cursor that is at a row came there by a move that was Ok.
      if (cursor_.NextInBatch()) [[likely]]
        return absl::OkStatus();
    }
    return Wait(cursor_.Next());
  }
  Status Previous() { return Wait(cursor_.Previous()); }
  bool valid() const { return cursor_.valid(); }
  Key key() const { return cursor_.key(); }
  std::span<const std::byte> payload() const { return cursor_.payload(); }
  template <class Row>
  Row As() const {
    return cursor_.template As<Row>();
  }
  RecordHandle handle() const { return cursor_.handle(); }
  StatusOr<index::OwnedKey> index_key() const requires std::same_as<Steps, IndexCursor> { return cursor_.index_key(); }
  // The result of the last move. A loop over the rows ends at the first error; the transaction has failed then, and
  // cannot commit.
  const Status& status() const { return status_; }

  class Iterator {
   public:
    explicit Iterator(BlockingCursorOf* cursor) : cursor_(cursor) {}
    const Steps& operator*() const { return cursor_->cursor_; }
    Iterator& operator++() {
      cursor_->Next().IgnoreError();  // status() has it
      return *this;
    }
    bool operator!=(std::default_sentinel_t) const { return cursor_->valid(); }

   private:
    BlockingCursorOf* cursor_;
  };
  Iterator begin() {
    First().IgnoreError();  // status() has it
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  Status Wait(coro::Async<Status> move) {
    status_ = move.ready() ? std::move(move.value()) : Finish(worker_, std::move(move.task()));
    return status_;
  }

  Steps cursor_;
  coro::Worker* worker_;
  Status status_;
};

using BlockingCursor = BlockingCursorOf<Cursor, Table>;
using BlockingIndexCursor = BlockingCursorOf<IndexCursor, SecondaryIndex>;

// transaction.h has the contracts of these calls.
class BlockingTransaction {
 public:
  BlockingTransaction(Transaction* transaction, coro::Worker* worker) : transaction_(transaction), worker_(worker) {}

  Status Get(const Table& table, Key key, PayloadRoom row) { return Wait(transaction_->Get(table, key, row)); }
  Status Get(const Table& table, Key key, PayloadRoom out, PayloadPart part) {
    return Wait(transaction_->Get(table, key, out, part));
  }
  template <class Row, class Field>
  Status Get(const Table& table, Key key, Field Row::*field, std::type_identity_t<Field>* value) {
    return Wait(transaction_->Get(table, key, field, value));
  }
  template <std::same_as<std::string> Text>
  Status Get(const Table& table, Key key, Text* payload) {
    return Wait(transaction_->Get(table, key, payload));
  }
  StatusOr<std::span<const std::byte>> GetView(const Table& table, Key key) {
    return Wait(transaction_->GetView(table, key));
  }
  StatusOr<bool> Exists(const Table& table, Key key) { return Wait(transaction_->Exists(table, key)); }
  Status GetMany(std::span<GetRequest> requests) { return Wait(transaction_->GetMany(requests)); }
  StatusOr<RecordHandle> GetForUpdate(const Table& table, Key key, PayloadRoom row) {
    return Wait(transaction_->GetForUpdate(table, key, row));
  }
  StatusOr<RecordHandle> GetForUpdate(const Table& table, Key key, PayloadRoom out, PayloadPart part) {
    return Wait(transaction_->GetForUpdate(table, key, out, part));
  }
  template <class Row, class Field>
  StatusOr<RecordHandle> GetForUpdate(const Table& table, Key key, Field Row::*field,
                                      std::type_identity_t<Field>* value) {
    return Wait(transaction_->GetForUpdate(table, key, field, value));
  }
  Status Update(RecordHandle handle, PayloadBytes row) { return transaction_->Update(handle, row); }
  Status Update(RecordHandle handle, PayloadBytes data, PayloadPart part) {
    return transaction_->Update(handle, data, part);
  }
  template <class Row, class Field>
  Status Update(RecordHandle handle, Field Row::*field, const std::type_identity_t<Field>& value) {
    return transaction_->Update(handle, field, value);
  }
  Status Update(const Table& table, Key key, PayloadBytes row) { return Wait(transaction_->Update(table, key, row)); }
  Status Update(const Table& table, Key key, PayloadBytes data, PayloadPart part) {
    return Wait(transaction_->Update(table, key, data, part));
  }
  template <class Row, class Field>
  Status Update(const Table& table, Key key, Field Row::*field, const std::type_identity_t<Field>& value) {
    return Wait(transaction_->Update(table, key, field, value));
  }
  Status Insert(const Table& table, Key key, PayloadBytes row) { return transaction_->Insert(table, key, row); }
  Status Upsert(const Table& table, Key key, PayloadBytes row) { return Wait(transaction_->Upsert(table, key, row)); }
  StatusOr<bool> UpdateIf(const Table& table, Key key, PayloadBytes expected, PayloadBytes row) {
    return Wait(transaction_->UpdateIf(table, key, expected, row));
  }
  template <class Row, class Number, class Delta>
  requires std::is_arithmetic_v<Number> Status Add(const Table& table, Key key, Number Row::*field, Delta delta,
                                                   std::type_identity_t<Number>* sum = nullptr) {
    return Wait(transaction_->Add(table, key, field, delta, sum));
  }
  template <class Number>
  requires std::is_arithmetic_v<Number> Status Add(const Table& table, Key key, Number delta,
                                                   std::type_identity_t<Number>* sum = nullptr) {
    return Wait(transaction_->Add(table, key, delta, sum));
  }
  template <class Number, class Delta>
  requires std::is_arithmetic_v<Number> Status AddAt(const Table& table, Key key, uint32_t offset, Delta delta,
                                                     std::type_identity_t<Number>* sum = nullptr) {
    return Wait(transaction_->AddAt<Number>(table, key, offset, delta, sum));
  }
  Status Remove(RecordHandle handle) { return transaction_->Remove(handle); }
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

  // The rows of a range in order, one after the other, without gathering them.
  BlockingCursor Rows(const Table& table, KeyRange range = KeyRange::All()) {
    return OpenCursor(table, {.range = std::move(range)});
  }
  BlockingCursor OpenCursor(const Table& table, CursorOptions options = {}) {
    return {*transaction_, worker_, table, std::move(options)};
  }

  StatusOr<RowBy> GetBy(const SecondaryIndex& index, const Key& key, bool for_update = false) {
    return Wait(transaction_->GetBy(index, key, for_update));
  }
  // The rows of a range in the order of an index, one after the other.
  BlockingIndexCursor RowsBy(const SecondaryIndex& index, KeyRange range = KeyRange::All()) {
    return OpenCursor(index, {.range = std::move(range)});
  }
  BlockingIndexCursor OpenCursor(const SecondaryIndex& index, CursorOptions options = {}) {
    return {*transaction_, worker_, index, std::move(options)};
  }

  Status Validate() { return Wait(transaction_->Validate()); }

  // The underlying transaction, for operations that have no blocking form here.
  Transaction& transaction() { return *transaction_; }

 private:
  template <class T>
  T Wait(coro::Async<T> async) {
    if (async.ready()) return std::move(async.value());
    return Finish(worker_, std::move(async.task()));
  }

  Transaction* transaction_;
  coro::Worker* worker_;
};

}  // namespace gannet::txn
