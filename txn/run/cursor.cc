#include "txn/run/cursor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr size_t kFirstRows = 16;  // of a batch: most cursors are not moved far
constexpr size_t kBatchGrowth = 4;
constexpr size_t kRowOverhead = 128;  // of a row in a batch, with its key

// The least and the greatest key that the table can have.
KeyCopy LeastKey(const Table& table) {
  return KeyCopy(table.options().key_kind == index::KeyKind::kInteger ? Key(uint64_t{0}) : Key(""));
}
KeyCopy GreatestKey(const Table& table) {
  if (table.options().key_kind == index::KeyKind::kInteger) return KeyCopy(Key(UINT64_MAX));
  return KeyCopy(std::string(table.options().max_key_bytes, '\xff'));
}

}  // namespace

Cursor::Cursor(Transaction& transaction, const Table& table, CursorOptions options)
    : transaction_(transaction), table_(table), options_(std::move(options)) {}

KeyRange::End Cursor::EndOf(Towards towards) const {
  if (towards == Towards::kGreater) return options_.range.to.value_or(KeyRange::End{GreatestKey(table_)});
  return options_.range.from.value_or(KeyRange::End{LeastKey(table_)});
}

// A row that another transaction inserts behind the batch is a conflict, so only the transaction's own writes can
// change what follows.
coro::Async<Status> Cursor::Move(Towards towards) {
  if (!valid()) return Status(absl::FailedPreconditionError("the cursor is at no row: move it to one first"));
  if (changes_ == transaction_.changes()) [[likely]] {
    if (towards == towards_) {
      if (++at_ < end_ || has_all_) return absl::OkStatus();
      --at_;
    } else if (at_ > begin_) {
      --at_;
      return absl::OkStatus();
    }
  }
  return Seek(towards, {{KeyCopy(key()), false}});
}

coro::Async<Status> Cursor::Seek(Towards towards, const std::optional<KeyRange::End>& from) {
  at_ = end_ = 0;
  KeyRange::End first = EndOf(towards == Towards::kGreater ? Towards::kSmaller : Towards::kGreater);
  const KeyRange::End last = EndOf(towards);
  if (from.has_value()) {
    GANNET_RETURN_IF_ERROR(CheckOrdered(table_));
    const Key key = from->key.view();
    GANNET_RETURN_IF_ERROR(CheckKey(table_, key));
    GANNET_RETURN_IF_ERROR(CheckKey(table_, first.key.view()));
    const bool beyond = towards == Towards::kGreater ? first.key.view() < key : key < first.key.view();
    // At the same key, the stricter end counts.
    if (beyond || (key == first.key.view() && !from->included)) first = *from;
  }
  GrowBatch();
  towards_ = towards;
  index::ScanRange range{.from = first.key.view(), .to = last.key.view(), .limit = batch_rows_};
  if (towards == Towards::kSmaller) {
    std::swap(range.from, range.to);
    range.reverse = true;
  }
  coro::Async<Status> scan =
      transaction_.Scan(table_, range, &rows_, {.keys_only = options_.keys_only, .for_update = options_.for_update});
  if (!scan.ready()) return SeekElsewhere(std::move(scan.task()), std::move(first), last);
  return TakeBatch(scan.value(), first, last);
}

coro::Task<Status> Cursor::SeekElsewhere(coro::Task<Status> scan, KeyRange::End first, KeyRange::End last) {
  const Status scanned = co_await scan;
  co_return TakeBatch(scanned, first, last);
}

Status Cursor::TakeBatch(const Status& scanned, const KeyRange::End& first, const KeyRange::End& last) {
  GANNET_RETURN_IF_ERROR(scanned);
  ++batches_;
  changes_ = transaction_.changes();
  begin_ = 0;
  end_ = rows_.size();
  has_all_ = end_ < batch_rows_;
  if (end_ > 0 && !first.included && rows_.key(0) == first.key.view()) ++begin_;
  if (end_ > begin_ && !last.included && rows_.key(end_ - 1) == last.key.view()) {
    --end_;
    has_all_ = true;
  }
  at_ = begin_;
  return absl::OkStatus();
}

// An excluded end may be one of the rows, so there is always room for another one.
void Cursor::GrowBatch() {
  if (batch_rows_ == 0) {
    batch_rows_ = kFirstRows;
    return;
  }
  const size_t bytes = kRowOverhead + (rows_.empty() ? 0 : rows_.payload(rows_.size() - 1).size());
  batch_rows_ = std::clamp(batch_rows_ * kBatchGrowth, size_t{2}, std::max(size_t{2}, kBatchBytes / bytes));
}

}  // namespace gannet::txn
