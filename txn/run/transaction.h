// Transaction: serializable reads and writes of records on any node.
//
//   coro::Task<Status> Transfer(Transaction& t, const Table& accounts, uint64_t from, uint64_t to, int64_t cents) {
//     Account a, b;
//     StatusOr<RecordHandle> ha = co_await t.GetForUpdate(accounts, from, &a);
//     if (!ha.ok()) co_return ha.status();
//     StatusOr<RecordHandle> hb = co_await t.GetForUpdate(accounts, to, &b);
//     if (!hb.ok()) co_return hb.status();
//     a.balance -= cents;
//     b.balance += cents;
//     t.Update(*ha, a);
//     t.Update(*hb, b);
//     co_return absl::OkStatus();
//   }
//   Status status = co_await session.Run([&](Transaction& t) { return Transfer(t, accounts, 1, 2, 100); });
//
// The protocol (after FaRM, SOSP'15, and DrTM+H, OSDI'18; docs/architecture.md has the picture):
//
//   execute -> lock the write set -> validate read set and witnesses -> [log] -> install -> unlock
//
// Execution reads by the cheapest path and buffers writes. The data that a body reads may never have existed together.
// So Session::Run returns a body's error only after the read set validates, and a body must not loop endlessly on such
// data. Reads see the transaction's own writes, inserts and removals.
//
// What an operation returns, other than Ok, is one of two kinds:
//
//   a result    NotFound, OutOfRange, AlreadyExists, InvalidArgument, FailedPrecondition; and ResourceExhausted of a
//               write. The transaction continues, as if the operation had not been called.
//   a failure   Aborted (it met another transaction), Unavailable, DeadlineExceeded, Unknown, Internal, and every other
//               code that a read returns. The transaction has failed and cannot continue.
//
// A record that a lost node has locked is a conflict (Aborted), because the other nodes release it within milliseconds.
// It becomes Unavailable when the loss is older than DatabaseOptions::call_timeout, so no Run waits without end.
//
// A write by its key that would return NotFound or AlreadyExists, although the transaction has read otherwise, fails
// with Aborted in its place. If the transaction has read much, or the write can be done, its commit does.
//
// A failed transaction does nothing more. It remembers its first failure: each further operation returns it, Commit
// returns it and rolls back, and Session::Run acts on it, whatever the body returns. So a body may ignore a failure:
// nothing is committed that depends on a failed read. After Commit every call returns FailedPrecondition.
//
// Awaiting is done on the session's worker thread. One transaction is used by one coroutine at a time. Memory passed in
// (outputs, keys of byte kind, payloads) needs to live only until the call or its await has returned. Arguments may lie
// in memory that the same call overwrites: a key in the output of its Get, the ends of a range in the rows of its Scan.
//
// Payloads (txn/store/payload.h) are rows or bytes. Without an offset or a field an operation is about a whole row,
// which then has exactly the size of what is passed. Otherwise it returns InvalidArgument, which names the table and
// both sizes: a struct that is not that of the table, or is not any more, is noticed. Parts are named, by their offset
// or as a field, `&Item::stock`, of the table's struct, whose size is compared, too. (Rows of a table of variable
// length may be longer than the struct of their first fields.)
//
// An access to a table that was dropped returns FailedPrecondition, whatever the operation.
//
// Errors about a key name it: `table 'cities', key "Oslo"`, `table 'taxis', key [1, 2] x [3, 4] id 7`.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/coro/async.h"
#include "base/status.h"
#include "index/key.h"
#include "index/types.h"
#include "txn/store/payload.h"
#include "txn/store/requests.h"
#include "txn/store/table.h"

namespace gannet::txn {

class Session;
class TransactionImpl;
struct SessionState;

class Transaction {
 public:
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Copies the whole payload, or a part of it. NotFound if there is no such key; OutOfRange if the payload ends before
  // the part. If it fails, return the failure: Run handles it.
  coro::Async<Status> Get(const Table& table, Key key, PayloadRoom row);
  coro::Async<Status> Get(const Table& table, Key key, PayloadRoom out, PayloadPart part);
  template <class Row, class Field>
  coro::Async<Status> Get(const Table& table, Key key, Field Row::*field, std::type_identity_t<Field>* value) {
    return Get(table, key, payload::ObjectBytes(*value), PayloadPart(field));
  }

  // The whole payload: as a view of this transaction's memory, which is valid until the transaction ends, or by value.
  // For rows of variable length, and for rows that are only looked at.
  coro::Async<StatusOr<std::span<const std::byte>>> GetView(const Table& table, Key key);
  template <std::same_as<std::string> Text>  // nullptr is none
  coro::Async<Status> Get(const Table& table, Key key, Text* payload) {
    return GetText(table, key, payload);
  }

  // True if there is such a key.
  coro::Async<StatusOr<bool>> Exists(const Table& table, Key key);

  // Reads all at once: one doorbell per node for remote records, interleaved prefetches for local ones. Each request
  // gets its own status, and the result is Ok. Any other result is a failure, which each request then has, too, or
  // InvalidArgument: a key does not fit its table.
  coro::Async<Status> GetMany(std::span<GetRequest> requests);

  // Does what Get does; the record will (probably) be updated or removed through the handle, without another lookup.
  coro::Async<StatusOr<RecordHandle>> GetForUpdate(const Table& table, Key key, PayloadRoom row);
  coro::Async<StatusOr<RecordHandle>> GetForUpdate(const Table& table, Key key, PayloadRoom out, PayloadPart part);
  template <class Row, class Field>
  coro::Async<StatusOr<RecordHandle>> GetForUpdate(const Table& table, Key key, Field Row::*field,
                                                   std::type_identity_t<Field>* value) {
    return GetForUpdate(table, key, payload::ObjectBytes(*value), PayloadPart(field));
  }

  // Replaces the whole payload, in a table of variable length by one of any size; or a part of it, and the payload
  // keeps its size. Buffered until commit. InvalidArgument if it does not fit the row.
  Status Update(RecordHandle handle, PayloadBytes row);
  Status Update(RecordHandle handle, PayloadBytes data, PayloadPart part);
  template <class Row, class Field>
  Status Update(RecordHandle handle, Field Row::*field, const std::type_identity_t<Field>& value) {
    return Update(handle, payload::ObjectBytes(value), PayloadPart(field));
  }
  // NotFound if there is no such key.
  coro::Async<Status> Update(const Table& table, Key key, PayloadBytes row);
  coro::Async<Status> Update(const Table& table, Key key, PayloadBytes data, PayloadPart part);
  template <class Row, class Field>
  coro::Async<Status> Update(const Table& table, Key key, Field Row::*field, const std::type_identity_t<Field>& value) {
    return Update(table, key, payload::ObjectBytes(value), PayloadPart(field));
  }

  // The insert is buffered until commit. If the key exists, this or the commit returns AlreadyExists (and so does Run).
  Status Insert(const Table& table, Key key, PayloadBytes row);

  // Inserts the row or, if there is one, replaces its whole payload: AlreadyExists is no result. Buffered until commit.
  coro::Async<Status> Upsert(const Table& table, Key key, PayloadBytes row);

  // Replaces the whole payload if it is `expected`; returns whether it was. NotFound if there is no such key.
  coro::Async<StatusOr<bool>> UpdateIf(const Table& table, Key key, PayloadBytes expected, PayloadBytes row);

  // Adds `delta` to a number of the payload, and stores the new number in *sum, if that is not null, when it returns.
  // NotFound; OutOfRange if the payload ends before it, or if the sum of integers does not fit the number. The delta
  // may have another type: the sum is exact. (It is a read and an update: two transactions that add to one number
  // conflict.)
  //
  // The number is a field; or the whole row, and has the type of `delta`; or the Number at an offset.
  template <class Row, class Number, class Delta>
  requires std::is_arithmetic_v<Number> coro::Async<Status> Add(const Table& table, Key key, Number Row::*field,
                                                                Delta delta,
                                                                std::type_identity_t<Number>* sum = nullptr) {
    return AddTo(table, key, PayloadPart(field), payload::Sum::Of<Number>(delta), sum);
  }
  template <class Number>
  requires std::is_arithmetic_v<Number> coro::Async<Status> Add(const Table& table, Key key, Number delta,
                                                                std::type_identity_t<Number>* sum = nullptr) {
    return AddTo(table, key, PayloadPart::Whole(), payload::Sum::Of<Number>(delta), sum);
  }
  template <class Number, class Delta>
  requires std::is_arithmetic_v<Number> coro::Async<Status> AddAt(const Table& table, Key key, uint32_t offset,
                                                                  Delta delta,
                                                                  std::type_identity_t<Number>* sum = nullptr) {
    return AddTo(table, key, offset, payload::Sum::Of<Number>(delta), sum);
  }

  // The removal is buffered until commit.
  Status Remove(RecordHandle handle);
  coro::Async<Status> Remove(const Table& table, Key key);  // NotFound if there is no such key

  // Rows of the range in order, phantoms excluded. FailedPrecondition if the table's index is not ordered. After an
  // error the rows are undefined.
  coro::Async<Status> Scan(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options = {});

  // The next two are for tables with a spatial index, whose keys are rectangles (index/rectangle.h), phantoms excluded:
  // a rectangle that enters or leaves what was searched before the commit is a conflict. FailedPrecondition if the
  // table's index is not spatial; InvalidArgument names what is wrong with the rectangle or the point. After an error
  // the rows are undefined.

  // Rows whose rectangles meet `window`, in the order of their keys.
  coro::Async<Status> Search(const Table& table, const index::Rectangle& window, ScanRows* rows,
                             ScanOptions options = {});
  // The query.count rows whose rectangles are nearest to the point, by distance; all, if there are fewer. Of equally
  // distant ones any may be left out.
  coro::Async<Status> Nearest(const Table& table, const index::NearestQuery& query, ScanRows* rows,
                              ScanOptions options = {});

  // The row with this key of a unique index (txn/store/secondary_index.h): a tuple of its fields, or what its function
  // returned; of one field that is not negative, also the number. Ranges of any index: txn/index_cursor.h. Reads by an
  // index see all writes of the transaction. If one of these gave a row the key that another row has in a unique index,
  // the read returns AlreadyExists, which names the key, as the commit would. FailedPrecondition: the index is not
  // unique, or still being built.
  coro::Async<StatusOr<RowBy>> GetBy(const SecondaryIndex& index, const Key& key, bool for_update = false);

  // Makes the buffered writes visible, all or none. Returns Ok; Aborted (conflict: run it again); AlreadyExists
  // (a row with the key of an Insert, or with a row's key in a unique index); another error from before the commit
  // point (nothing happened), first of all the failure of an operation; or Unknown (a node died or could not be reached
  // at the commit point, or the log did not become durable in time). With DurabilityMode::kSync the await returns when
  // the commit is durable; after AlreadyExists, or if nothing was written, when what was read is durable. The
  // transaction is over then. In a body of Session::Run, which commits it, Commit returns FailedPrecondition, and
  // nothing is committed.
  coro::Async<Status> Commit();
  // Drops the buffered writes and forgets the reads and a failure: the transaction is as if it had just begun.
  // Destroying an uncommitted transaction drops its writes, too. A body of Session::Run returns an error instead.
  void Rollback();
  // Ok if everything read so far is still current: it then was a state of the database. Else a failure. It does not
  // wait for the disk: only the results of Commit and of Session::Run may be told to others.
  coro::Async<Status> Validate();

  Session& session();

 private:
  friend class Session;
  friend class IndexBuild;
  friend class Cursor;
  friend class IndexCursor;
  coro::Async<Status> AddTo(const Table& table, Key key, PayloadPart part, const payload::Sum& addition, void* sum);
  coro::Async<Status> GetText(const Table& table, Key key, std::string* payload);
  static coro::Task<Status> Assign(coro::Task<StatusOr<std::span<const std::byte>>> view, std::string* payload);
  // Session::Run ends the transaction; its body must not.
  void RunConcludes() { run_concludes_ = true; }
  Status RefuseToEnd(const char* why);
  coro::Async<Status> DoCommit();
  explicit Transaction(std::unique_ptr<TransactionImpl> impl);
  // Returns the working part to the session.
  void Release();
  // Number of the operations that have changed its writes.
  uint64_t changes() const { return *changes_; }
  // Ok while the transaction can continue; else the failure of an operation, or that it is over.
  const Status& failure() const { return *failure_; }
  // WhenDurable then does not wait, and stores the epoch (or 0) there.
  void LeaveEpochAt(uint64_t* epoch) { epoch_at_ = epoch; }
  // Returns a result that depends on reads when everything that was read is durable. `begun`: when the commit began, if
  // its time is to be noted; 0: it is not.
  coro::Async<Status> WhenDurable(Status status, uint64_t begun = 0);
  static coro::Task<Status> AwaitDurable(SessionState* session, uint64_t epoch, Status status, uint64_t begun = 0);
  coro::Task<Status> AfterCommit(coro::Task<Status> commit, uint64_t begun);
  // The time for `begun`.
  uint64_t BeginsCommit();

  SessionState* session_;
  std::unique_ptr<TransactionImpl> impl_;  // null after Commit
  const Status* failure_;                  // impl_'s; after Commit: that the transaction is over
  const uint64_t* changes_;                // impl_'s; after Commit: zero
  uint64_t* epoch_at_ = nullptr;
  bool run_concludes_ = false;
};

}  // namespace gannet::txn
