#include "txn/run/index_cursor.h"

#include <algorithm>
#include <utility>

#include "txn/run/transaction_impl.h"

namespace gannet::txn {
namespace {

constexpr size_t kFirstGroup = 16;  // as the first batch of a Cursor
constexpr size_t kGroupGrowth = 4;

}  // namespace

IndexCursor::IndexCursor(Transaction& transaction, const SecondaryIndex& index, const CursorOptions& options)
    : transaction_(transaction),
      index_(index),
      options_({.keys_only = options.keys_only, .for_update = options.for_update}) {
  StatusOr<KeyRange> range = index.EncodeRange(options.range);
  wrong_ = range.status();
  if (!range.ok()) return;
  // The entries of a unique index have the primary keys in their payloads.
  entries_.emplace(transaction, index.entries(),
                   CursorOptions{.range = *std::move(range), .keys_only = !index.unique()});
}

coro::Async<Status> IndexCursor::Seek(Step step, const Key& key) {
  std::string encoded;
  if (Status s = index_.EncodeKey(key, /*whole=*/false, &encoded); !s.ok()) {
    has_row_ = false;
    return s;
  }
  // The entries of a key begin with it, and are all before what is behind it.
  if (step == Step::kSeekForward) return Move(step, KeyRange::End{KeyCopy(Key(std::string_view(encoded))), true});
  return Move(step, KeyRange::End{KeyRange::Prefix(encoded).to->key, false});
}

coro::Async<Status> IndexCursor::MoveEntry(Step step, const std::optional<KeyRange::End>& to) {
  switch (step) {
    case Step::kFirst:
      return entries_->First();
    case Step::kLast:
      return entries_->Last();
    case Step::kSeekForward:
      return entries_->Seek(Cursor::Towards::kGreater, to);
    case Step::kSeekBackward:
      return entries_->Seek(Cursor::Towards::kSmaller, to);
    case Step::kNext:
      return entries_->Next();
    case Step::kPrevious:
      return entries_->Previous();
  }
  return absl::InternalError("no such step");
}

coro::Task<Status> IndexCursor::Move(Step step, std::optional<KeyRange::End> to) {
  has_row_ = false;
  if (!transaction_.failure().ok()) co_return transaction_.failure();
  if (!wrong_.ok()) co_return wrong_;
  coro::Async<Status> preparing = transaction_.impl_->ReadyToReadBy(index_);
  Status status = co_await preparing;
  if (!status.ok()) co_return status;
  coro::Async<Status> moving = MoveEntry(step, to);
  status = co_await moving;
  if (!status.ok() || !entries_->valid()) co_return status;
  const bool has_read =
      batch_ == entries_->batches_ && entries_->at_ >= first_ && entries_->at_ - first_ < rows_.size();
  if (!has_read) {
    coro::Task<Status> reading = ReadRows();
    status = co_await reading;
    if (!status.ok()) co_return status;
  }
  row_ = entries_->at_ - first_;
  has_row_ = true;
  co_return absl::OkStatus();
}

coro::Task<Status> IndexCursor::ReadRows() {
  const size_t bytes = sizeof(RecordHandle) + (rows_.empty() ? 0 : rows_.payload(rows_.size() - 1).size()) + 128;
  const size_t most = std::max<size_t>(1, Cursor::kBatchBytes / bytes);
  group_ = group_ == 0 ? kFirstGroup : std::min(group_ * kGroupGrowth, most);
  const size_t at = entries_->at_;
  const bool backwards = batch_ == entries_->batches_ && at < first_;
  IndexReader::EntrySpan span{.from = at, .to = std::min(entries_->end_, at + group_)};
  if (backwards) span = {.from = at + 1 - std::min(group_, at + 1 - entries_->begin_), .to = at + 1};
  batch_ = entries_->batches_;
  first_ = span.from;
  coro::Task<Status> reading = transaction_.impl_->RowsOfEntries(index_, entries_->rows_, span, options_, &rows_);
  Status status = co_await reading;
  if (!status.ok()) rows_ = ScanRows();
  co_return status;
}

}  // namespace gannet::txn
