#include "cli/rows/row_scan.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stop.h"
#include "cli/rows/row_walk.h"
#include "index/registry.h"

namespace gannet::cli {

using txn::KeyCopy;
using txn::KeyRange;

Status Named(const char* flag, const std::string& value, const Status& wrong) {
  return Status(wrong.code(), absl::StrCat(flag, " ", value, ": ", wrong.message()));
}

StatusOr<KeyRange> RangeBetween(const RowRange& asked, absl::FunctionRef<StatusOr<KeyCopy>(std::string_view)> parse) {
  KeyRange range;
  if (asked.from.has_value()) {
    StatusOr<KeyCopy> from = parse(*asked.from);
    if (!from.ok()) return Named("--from", *asked.from, from.status());
    range.from = KeyRange::End{.key = *std::move(from), .included = true};
  }
  if (asked.to.has_value()) {
    StatusOr<KeyCopy> to = parse(*asked.to);
    if (!to.ok()) return Named("--to", *asked.to, to.status());
    range.to = KeyRange::End{.key = *std::move(to), .included = false};
  }
  return range;
}

namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

StatusOr<KeyRange> RangeOf(const RowText& text, const RowRange& asked, index::KeyKind kind) {
  if (asked.prefix.has_value()) {
    if (kind == index::KeyKind::kInteger) {
      return absl::InvalidArgumentError(
          absl::StrCat("--prefix ", *asked.prefix, ": integer keys have no prefix; give --from and --to"));
    }
    const StatusOr<KeyCopy> prefix = text.ParseKey(*asked.prefix);
    if (!prefix.ok()) return Named("--prefix", *asked.prefix, prefix.status());
    return KeyRange::Prefix(prefix->bytes());
  }
  return RangeBetween(asked, [&text](std::string_view key) { return text.ParseKey(key); });
}

// The rows that one transaction reads.
struct Chunk {
  std::vector<RowBytesOwned> rows;
  bool more = false;
};

Status ReadChunk(txn::BlockingTransaction& t, const txn::Table& table, const txn::CursorOptions& options, bool reverse,
                 uint64_t limit, Chunk* chunk) {
  *chunk = {};
  size_t bytes = 0;
  txn::BlockingCursor cursor = t.OpenCursor(table, options);
  Status moved = reverse ? cursor.Last() : cursor.First();
  while (moved.ok() && cursor.valid() && chunk->rows.size() < limit) {
    if (chunk->rows.size() == kRowsAtOnce || bytes >= kChunkBytes) {
      chunk->more = true;
      break;
    }
    const auto payload = cursor.payload();
    chunk->rows.push_back({.key = KeyCopy(cursor.key()),
                           .payload = std::string(reinterpret_cast<const char*>(payload.data()), payload.size())});
    bytes += payload.size() + chunk->rows.back().key.bytes().size();
    moved = reverse ? cursor.Previous() : cursor.Next();
  }
  return moved;
}

Status ScanInOrder(const RowRunner& run, const txn::Table& table, KeyRange range, const RowRange& asked, bool keys_only,
                   const std::atomic<bool>* stop, RowVisitor visit) {
  uint64_t left = asked.limit;
  Chunk chunk;
  do {
    GANNET_RETURN_IF_ERROR(run([&](txn::BlockingTransaction& t) {
      return ReadChunk(t, table, {.range = range, .keys_only = keys_only}, asked.reverse, left, &chunk);
    }));
    for (const RowBytesOwned& row : chunk.rows) {
      GANNET_RETURN_IF_ERROR(CheckStop(stop, kReadingRows));
      GANNET_RETURN_IF_ERROR(visit(row.key.view(), row.payload));
    }
    left -= chunk.rows.size();
    if (chunk.rows.empty()) break;
    (asked.reverse ? range.to : range.from) = KeyRange::End{.key = chunk.rows.back().key, .included = false};
  } while (chunk.more && left > 0);
  return absl::OkStatus();
}

Status CheckNeedsNoOrder(const txn::Table& table, const RowRange& asked) {
  const char* flag = asked.from.has_value()     ? "--from"
                     : asked.to.has_value()     ? "--to"
                     : asked.prefix.has_value() ? "--prefix"
                     : asked.reverse            ? "--reverse"
                                                : nullptr;
  if (flag == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": the index of table '", table.name(), "' is not ordered (",
                                                 index::EntryOf(table.options().index).name,
                                                 "); leave the flag out, and all rows come in any order"));
}

}  // namespace

Status ScanRows(RowStore& store, const RowRunner& run, bool in_transaction, const txn::Table& table,
                const RowText& text, const RowRange& asked, bool keys_only, const std::atomic<bool>* stop,
                RowVisitor visit) {
  if (asked.limit == 0) return absl::OkStatus();
  if (table.index_traits().ordered) {
    StatusOr<KeyRange> range = RangeOf(text, asked, table.options().key_kind);
    if (!range.ok()) return range.status();
    return ScanInOrder(run, table, *std::move(range), asked, keys_only, stop, visit);
  }
  GANNET_RETURN_IF_ERROR(CheckNeedsNoOrder(table, asked));
  if (in_transaction) {
    return absl::FailedPreconditionError(absl::StrCat("the index of table '", table.name(),
                                                      "' is not ordered: its rows are read outside of a transaction "
                                                      "only; commit first"));
  }
  uint64_t left = asked.limit;
  return WalkRows(store.database(), table, [&](const index::Key& key, std::string_view payload) -> StatusOr<bool> {
    GANNET_RETURN_IF_ERROR(CheckStop(stop, kReadingRows));
    GANNET_RETURN_IF_ERROR(visit(key, payload));
    return --left > 0;
  });
}

}  // namespace gannet::cli
