// Caller: one transaction, used by coroutines (txn/run/transaction.h) or by blocking programs (txn/run/blocking.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/coro/async.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "txn/run/blocking.h"
#include "txn/run/cursor.h"
#include "txn/run/index_cursor.h"
#include "txn/run/session.h"
#include "txn/run/transaction.h"

namespace gannet::model {

template <class T>
T Block(txn::Session& session, coro::Async<T> async) {
  if (async.ready()) return std::move(async.value());
  return session.worker().BlockOn(std::move(async.task()));
}

// The exception that bodies throw.
struct Thrown {
  uint64_t by;  // the number of a step, or of a thread
};

class Caller {
 public:
  explicit Caller(txn::Transaction* transaction) : transaction_(*transaction) {}
  virtual ~Caller() = default;

  // An offset of kWhole stands for the form of a call without one.
  static constexpr uint32_t kWhole = txn::GetRequest::kWhole;
  virtual coro::Async<Status> Get(const txn::Table& table, index::Key key, std::span<std::byte> out, uint32_t offset) {
    return offset == kWhole ? transaction_.Get(table, key, out) : transaction_.Get(table, key, out, offset);
  }
  virtual coro::Async<Status> GetMany(std::span<txn::GetRequest> requests) { return transaction_.GetMany(requests); }
  virtual coro::Async<StatusOr<txn::RecordHandle>> GetForUpdate(const txn::Table& table, index::Key key,
                                                                std::span<std::byte> out, uint32_t offset) {
    if (offset == kWhole) return transaction_.GetForUpdate(table, key, out);
    return transaction_.GetForUpdate(table, key, out, offset);
  }
  virtual coro::Async<Status> Update(const txn::Table& table, index::Key key, std::span<const std::byte> data,
                                     uint32_t offset) {
    return offset == kWhole ? transaction_.Update(table, key, data) : transaction_.Update(table, key, data, offset);
  }
  virtual Status Insert(const txn::Table& table, index::Key key, std::span<const std::byte> payload) {
    return transaction_.Insert(table, key, payload);
  }
  virtual coro::Async<Status> Remove(const txn::Table& table, index::Key key) {
    return transaction_.Remove(table, key);
  }
  virtual coro::Async<Status> Scan(const txn::Table& table, const index::ScanRange& range, txn::ScanRows* rows,
                                   txn::ScanOptions options) {
    return transaction_.Scan(table, range, rows, options);
  }
  virtual coro::Async<StatusOr<std::span<const std::byte>>> GetView(const txn::Table& table, index::Key key) {
    return transaction_.GetView(table, key);
  }
  virtual coro::Async<Status> Get(const txn::Table& table, index::Key key, std::string* payload) {
    return transaction_.Get(table, key, payload);
  }
  virtual coro::Async<StatusOr<bool>> Exists(const txn::Table& table, index::Key key) {
    return transaction_.Exists(table, key);
  }
  virtual coro::Async<Status> Upsert(const txn::Table& table, index::Key key, std::span<const std::byte> payload) {
    return transaction_.Upsert(table, key, payload);
  }
  virtual coro::Async<StatusOr<bool>> UpdateIf(const txn::Table& table, index::Key key,
                                               std::span<const std::byte> expected,
                                               std::span<const std::byte> payload) {
    return transaction_.UpdateIf(table, key, expected, payload);
  }
  virtual coro::Async<StatusOr<txn::RowBy>> GetBy(const txn::SecondaryIndex& index, const index::Key& key,
                                                  bool for_update) {
    return transaction_.GetBy(index, key, for_update);
  }
  // Moves are passed to Done.
  txn::IndexCursor OpenCursor(const txn::SecondaryIndex& index, const txn::CursorOptions& options) {
    return {transaction_, index, options};
  }
  template <class Number>
  coro::Async<Status> Add(const txn::Table& table, index::Key key, Number delta, Number* sum, uint32_t offset) {
    if (offset == kWhole) return Done(transaction_.Add(table, key, delta, sum));
    return Done(transaction_.AddAt<Number>(table, key, offset, delta, sum));
  }
  // What a call on the transaction itself, or on its cursor, returned.
  virtual coro::Async<Status> Done(coro::Async<Status> async) { return async; }
  // Moves are passed to Done.
  txn::Cursor OpenCursor(const txn::Table& table, txn::CursorOptions options) {
    return {transaction_, table, std::move(options)};
  }
  virtual coro::Async<Status> Validate() { return transaction_.Validate(); }
  Status Update(txn::RecordHandle handle, std::span<const std::byte> data, uint32_t offset) {
    return offset == kWhole ? transaction_.Update(handle, data) : transaction_.Update(handle, data, offset);
  }
  Status Remove(txn::RecordHandle handle) { return transaction_.Remove(handle); }
  void Rollback() { transaction_.Rollback(); }
  coro::Async<Status> Commit() { return transaction_.Commit(); }

 protected:
  txn::Transaction& transaction_;
};

// All results are ready at once.
class BlockingCaller final : public Caller {
 public:
  explicit BlockingCaller(txn::BlockingTransaction* blocking)
      : Caller(&blocking->transaction()), blocking_(*blocking) {}

  coro::Async<Status> Get(const txn::Table& table, index::Key key, std::span<std::byte> out, uint32_t offset) override {
    return offset == kWhole ? blocking_.Get(table, key, out) : blocking_.Get(table, key, out, offset);
  }
  coro::Async<Status> GetMany(std::span<txn::GetRequest> requests) override { return blocking_.GetMany(requests); }
  coro::Async<StatusOr<txn::RecordHandle>> GetForUpdate(const txn::Table& table, index::Key key,
                                                        std::span<std::byte> out, uint32_t offset) override {
    return offset == kWhole ? blocking_.GetForUpdate(table, key, out) : blocking_.GetForUpdate(table, key, out, offset);
  }
  coro::Async<Status> Update(const txn::Table& table, index::Key key, std::span<const std::byte> data,
                             uint32_t offset) override {
    return offset == kWhole ? blocking_.Update(table, key, data) : blocking_.Update(table, key, data, offset);
  }
  Status Insert(const txn::Table& table, index::Key key, std::span<const std::byte> payload) override {
    return blocking_.Insert(table, key, payload);
  }
  coro::Async<Status> Remove(const txn::Table& table, index::Key key) override { return blocking_.Remove(table, key); }
  coro::Async<Status> Scan(const txn::Table& table, const index::ScanRange& range, txn::ScanRows* rows,
                           txn::ScanOptions options) override {
    return blocking_.Scan(table, range, rows, options);
  }
  coro::Async<StatusOr<std::span<const std::byte>>> GetView(const txn::Table& table, index::Key key) override {
    return blocking_.GetView(table, key);
  }
  coro::Async<Status> Get(const txn::Table& table, index::Key key, std::string* payload) override {
    return blocking_.Get(table, key, payload);
  }
  coro::Async<StatusOr<bool>> Exists(const txn::Table& table, index::Key key) override {
    return blocking_.Exists(table, key);
  }
  coro::Async<Status> Upsert(const txn::Table& table, index::Key key, std::span<const std::byte> payload) override {
    return blocking_.Upsert(table, key, payload);
  }
  coro::Async<StatusOr<bool>> UpdateIf(const txn::Table& table, index::Key key, std::span<const std::byte> expected,
                                       std::span<const std::byte> payload) override {
    return blocking_.UpdateIf(table, key, expected, payload);
  }
  coro::Async<StatusOr<txn::RowBy>> GetBy(const txn::SecondaryIndex& index, const index::Key& key,
                                          bool for_update) override {
    return Block(transaction_.session(), transaction_.GetBy(index, key, for_update));
  }
  coro::Async<Status> Done(coro::Async<Status> async) override {
    return Block(transaction_.session(), std::move(async));
  }
  coro::Async<Status> Validate() override { return Block(transaction_.session(), transaction_.Validate()); }

 private:
  txn::BlockingTransaction& blocking_;
};

}  // namespace gannet::model
