// IndexCursor: goes through the rows of a table in the order of a secondary index, in both directions.
//
//   IndexCursor cursor(t, by_city, {.range = KeyRange::Closed(Key::Tuple("Bergen"), Key::Tuple("Oslo"))});
//   Status status = co_await cursor.First();
//   for (; status.ok() && cursor.valid(); status = co_await cursor.Next()) Print(cursor.key(), cursor.As<Account>());
//
// Without coroutines (txn/run/blocking.h): for (const IndexCursor& row : t.RowsBy(by_city, KeyRange::All())) ...
//
// The ends of ranges, and the keys to seek, are keys of the index: tuples of its fields, or of the first ones, which
// then stand for all keys that begin so; or what its function returned. Rows with equal keys are in the order of their
// primary keys. What txn/run/cursor.h says about memory, phantoms and the transaction's own writes is true here, too: a
// row that the transaction moves forward in the index is met again. Moves return what Transaction::GetBy does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "txn/run/cursor.h"
#include "txn/run/transaction.h"
#include "txn/store/secondary_index.h"

namespace gannet::txn {

class IndexCursor {
 public:
  // Both must outlive it.
  IndexCursor(Transaction& transaction, const SecondaryIndex& index, const CursorOptions& options = {});

  // Each of these moves the cursor, as those of Cursor do.
  coro::Async<Status> First() { return Move(Step::kFirst, {}); }
  coro::Async<Status> Last() { return Move(Step::kLast, {}); }
  // These move to the first row whose key in the index is not smaller than `key`, or to the last one whose key is not
  // greater.
  coro::Async<Status> SeekForward(const Key& key) { return Seek(Step::kSeekForward, key); }
  coro::Async<Status> SeekBackward(const Key& key) { return Seek(Step::kSeekBackward, key); }
  coro::Async<Status> Next() { return Move(Step::kNext, {}); }
  coro::Async<Status> Previous() { return Move(Step::kPrevious, {}); }

  // True if the cursor is at a row. The rest is about this row, and valid until the cursor moves.
  bool valid() const { return has_row_; }
  Key key() const { return rows_.key(row_); }  // primary
  std::span<const std::byte> payload() const { return rows_.payload(row_); }
  template <class Row>
  Row As() const {
    return rows_.As<Row>(row_);
  }
  // The handle of the row, if the cursor is for update.
  RecordHandle handle() const { return rows_.handle(row_); }
  // The row's key in the index.
  StatusOr<index::OwnedKey> index_key() const { return index_.SecondaryKeyOf(entries_->key().bytes()); }

 private:
  enum class Step : uint8_t { kFirst, kLast, kSeekForward, kSeekBackward, kNext, kPrevious };

  coro::Async<Status> Seek(Step step, const Key& key);
  coro::Task<Status> Move(Step step, std::optional<KeyRange::End> to);
  // Reads the rows of the batch's entries around the current one.
  coro::Task<Status> ReadRows();
  coro::Async<Status> MoveEntry(Step step, const std::optional<KeyRange::End>& to);

  Transaction& transaction_;
  const SecondaryIndex& index_;
  const ScanOptions options_;
  Status wrong_;                   // of the range
  std::optional<Cursor> entries_;  // none: the range is wrong
  // rows_ has the rows of the entries [first_, first_ + rows_.size()) of the batch with this number.
  ScanRows rows_;
  uint64_t batch_ = 0;
  size_t first_ = 0;
  size_t row_ = 0;    // in rows_
  size_t group_ = 0;  // number of rows to read at a time
  bool has_row_ = false;
};

}  // namespace gannet::txn
