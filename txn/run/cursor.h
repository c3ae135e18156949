// Cursor: goes through the rows of an ordered table in a transaction, in both directions, without gathering them.
//
//   Cursor cursor(t, cities, {.range = KeyRange::Prefix("S")});
//   Status status = co_await cursor.First();
//   for (; status.ok() && cursor.valid(); status = co_await cursor.Next()) Print(cursor.key(), cursor.As<City>());
//
// Without coroutines (txn/run/blocking.h): for (const Cursor& city : t.Rows(cities, KeyRange::Prefix("S"))) ...
//
// A cursor reads batches of rows (Transaction::Scan), which grow up to kBatchBytes; that is the memory that it takes.
// The transaction itself remembers 16 bytes for each row that it has read, to validate them: the rows, and the gaps
// between them, stay as they were read until the commit, or the transaction is run again.
//
// A cursor sees the transaction's own writes, also those made after it came to its row: the next move goes to the next
// row that there is then. The current row stays as it was read.
//
// A cursor is used by the coroutine of its transaction, and not after the transaction's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/key.h"
#include "txn/run/transaction.h"
#include "txn/store/key_range.h"
#include "txn/store/table.h"

namespace gannet::txn {

struct CursorOptions {
  KeyRange range = KeyRange::All();  // the cursor stays in it
  bool keys_only = false;            // payloads are not read (and rows not validated beyond their existence)
  bool for_update = false;           // handle() may be passed to Update and Remove
};

class Cursor {
 public:
  static constexpr size_t kBatchBytes = size_t{256} << 10;

  // Both must outlive it.
  Cursor(Transaction& transaction, const Table& table, CursorOptions options = {});

  // Each of these moves the cursor. If it returns Ok and there is no such row, valid() is false. Other results are
  // those of Transaction::Scan; valid() is false then, too.
  coro::Async<Status> First() { return Seek(Towards::kGreater, {}); }
  coro::Async<Status> Last() { return Seek(Towards::kSmaller, {}); }
  // Moves to the first row whose key is not smaller than `key`.
  coro::Async<Status> SeekForward(const Key& key) { return Seek(Towards::kGreater, {{KeyCopy(key), true}}); }
  // Moves to the last row whose key is not greater than `key`.
  coro::Async<Status> SeekBackward(const Key& key) { return Seek(Towards::kSmaller, {{KeyCopy(key), true}}); }
  // FailedPrecondition if the cursor is at no row.
  coro::Async<Status> Next() {
    if (NextInBatch()) [[likely]]
      return absl::OkStatus();
    return Move(Towards::kGreater);
  }
  // The part of Next that most moves take: true if the next row is in the batch. The cursor is at that row then, and
  // otherwise where it was.
  bool NextInBatch() {
    if (towards_ != Towards::kGreater || at_ + 1 >= end_ || changes_ != transaction_.changes()) return false;
    ++at_;
    return true;
  }
  coro::Async<Status> Previous() { return Move(Towards::kSmaller); }

  // True if the cursor is at a row. The rest is about this row, and valid until the cursor moves.
  bool valid() const { return at_ < end_; }
  Key key() const { return rows_.key(at_); }
  std::span<const std::byte> payload() const { return rows_.payload(at_); }
  template <class Row>
  Row As() const {
    return rows_.As<Row>(at_);
  }
  RecordHandle handle() const { return rows_.handle(at_); }

 private:
  friend class IndexCursor;
  enum class Towards : uint8_t { kGreater, kSmaller };

  coro::Async<Status> Move(Towards towards);
  // Moves to the first row in this direction, from `from` or, if there is none, from that end of the range.
  coro::Async<Status> Seek(Towards towards, const std::optional<KeyRange::End>& from);
  coro::Task<Status> SeekElsewhere(coro::Task<Status> scan, KeyRange::End first, KeyRange::End last);
  // The rows that were scanned become the batch, without excluded ends.
  Status TakeBatch(const Status& scanned, const KeyRange::End& first, const KeyRange::End& last);
  KeyRange::End EndOf(Towards towards) const;
  void GrowBatch();

  Transaction& transaction_;
  const Table& table_;
  const CursorOptions options_;
  ScanRows rows_;
  Towards towards_ = Towards::kGreater;  // the order of the batch
  bool has_all_ = false;                 // no row of the range follows the batch in its order
  size_t begin_ = 0;                     // of the batch in rows_
  size_t at_ = 0;
  size_t end_ = 0;
  uint64_t batches_ = 0;   // number of them up to now
  uint64_t changes_ = 0;   // of the transaction, when the batch was read
  size_t batch_rows_ = 0;  // at most, in the batch
};

}  // namespace gannet::txn
