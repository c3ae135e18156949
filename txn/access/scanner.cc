#include "txn/access/scanner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "txn/node/row_checks.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

using index::NearestQuery;
using index::Rectangle;
using index::RectangleKey;
using index::RectangleKeyBytes;

// The rectangle of a key that is in a spatial index, or was accepted for one.
StatusOr<Rectangle> BoxOf(const Key& key) {
  StatusOr<RectangleKey> decoded = index::DecodeRectangleKey(key);
  if (!decoded.ok()) return decoded.status();
  return decoded->box;
}

// The range of all keys of a spatial table.
index::ScanRange AllRectangles() {
  constexpr double kMost = index::kMaxCoordinate;
  static const RectangleKeyBytes first({Rectangle::Point(-kMost, -kMost), 0});
  static const RectangleKeyBytes last({Rectangle::Point(kMost, kMost), UINT64_MAX});
  return {.from = first.view(), .to = last.view()};
}

}  // namespace

// A rectangle that meets the window begins anywhere to the left of the window's right edge.
index::ScanRange Scanner::RectanglesFor(const Rectangle& window) {
  constexpr double kMost = index::kMaxCoordinate;
  const RectangleKeyBytes last({{window.max_x, kMost, kMost, kMost}, UINT64_MAX});
  return {.from = AllRectangles().from, .to = writes_.arena().Keep(last.view())};
}

Status Scanner::CheckSpatial(const Table& table) const {
  GANNET_RETURN_IF_ERROR(CheckOwnTable(*session_->local, table));
  if (table.index_traits().spatial) return CheckUsable(table);
  return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " has no spatial index (",
                                                    index::EntryOf(table.options().index).name,
                                                    "): create it with one to search it for rectangles"));
}

inline Status Scanner::Finish(Status read, const Table& table, const RowsWanted& wanted, ScanRows* rows,
                              ScanOptions options) {
  if (!read.ok()) [[unlikely]] {
    rows->rows_.clear();
    return failure_.Note(std::move(read));
  }
  if (writes_.has_inserts() || wanted.is_spatial()) [[unlikely]]
    MergeOwnInserts(table, wanted, rows, options);
  if (rows->rows_.size() > wanted.range.limit) rows->rows_.Resize(wanted.range.limit);
  return read;
}

inline coro::Async<Status> Scanner::Read(const Table& table, const RowsWanted& wanted, ScanRows* rows,
                                         ScanOptions options) {
  if (!table.OwnsRange(wanted.range.from, wanted.range.to, session_->self) || !session_->direct) {
    return ReadOfOwners(table, wanted, rows, options);
  }
  return Finish(local_.Append(table, wanted, rows, options), table, wanted, rows, options);
}

coro::Async<Status> Scanner::Scan(const Table& table, const index::ScanRange& range, ScanRows* rows,
                                  ScanOptions options) {
  // The ends may be keys of *rows. This transaction keeps copies of their bytes, also for the coroutines that it calls.
  const Key from = writes_.arena().Keep(range.from);
  const Key to = writes_.arena().Keep(range.to);
  rows->Clear();
  if (Status s = CheckOwnTable(*session_->local, table); !s.ok()) return s;
  if (Status s = CheckOrdered(table); !s.ok()) return s;
  if (Status s = CheckKey(table, from); !s.ok()) return s;
  if (Status s = CheckKey(table, to); !s.ok()) return s;
  if (to < from || range.limit == 0) return absl::OkStatus();
  return Read(table, {.range = {.from = from, .to = to, .reverse = range.reverse, .limit = range.limit}}, rows,
              options);
}

coro::Async<Status> Scanner::Search(const Table& table, const Rectangle& window, ScanRows* rows, ScanOptions options) {
  rows->Clear();
  if (Status s = CheckSpatial(table); !s.ok()) return s;
  if (Status s = index::CheckRectangle(window); !s.ok()) return s;
  return Read(table, {.range = RectanglesFor(window), .window = window}, rows, options);
}

coro::Async<Status> Scanner::Nearest(const Table& table, const NearestQuery& query, ScanRows* rows,
                                     ScanOptions options) {
  rows->Clear();
  if (Status s = CheckSpatial(table); !s.ok()) return s;
  if (Status s = index::CheckRectangle(Rectangle::Point(query.x, query.y)); !s.ok()) return s;
  if (query.count == 0) return absl::OkStatus();
  return Read(table, {.range = AllRectangles(), .nearest = query}, rows, options);
}

coro::Task<Status> Scanner::ReadOfOwners(const Table& table, RowsWanted wanted, ScanRows* rows, ScanOptions options) {
  Status read = co_await owners_.Append(table, wanted, rows, options);
  co_return Finish(std::move(read), table, wanted, rows, options);
}

// Adds this transaction's inserts, and puts the rows in order: what an index finds in a window, or near a point, has
// none.
void Scanner::MergeOwnInserts(const Table& table, const RowsWanted& wanted, ScanRows* rows, ScanOptions options) {
  const size_t found = rows->rows_.size();
  inserts_.clear();
  writes_.InsertsIn(table, wanted.range, &inserts_);
  for (const uint32_t number : inserts_) {
    const WriteEntry& entry = writes_[number];
    if (wanted.window.has_value()) {
      const StatusOr<Rectangle> box = BoxOf(entry.key);
      if (!box.ok() || !wanted.window->Meets(*box)) continue;
    }
    ScanRows::Item& row = rows->Add(entry.key, options.keys_only ? 0 : entry.payload_bytes);
    row.handle = RecordHandle{number};
    writes_.CopyPayload(entry, 0, rows->PayloadOf(row));
  }
  if (wanted.nearest.has_value()) return KeepNearest(*wanted.nearest, rows);
  if (rows->rows_.size() == found && !wanted.window.has_value()) return;
  std::sort(rows->rows_.begin(), rows->rows_.end(), [&](const ScanRows::Item& a, const ScanRows::Item& b) {
    return wanted.range.reverse ? rows->KeyOf(b) < rows->KeyOf(a) : rows->KeyOf(a) < rows->KeyOf(b);
  });
}

// Sorts the rows by distance, and keeps as many as are asked for.
void Scanner::KeepNearest(const NearestQuery& query, ScanRows* rows) {
  std::vector<std::pair<double, ScanRows::Item>> near;
  near.reserve(rows->rows_.size());
  for (const ScanRows::Item& row : rows->rows_) {
    const StatusOr<Rectangle> box = BoxOf(rows->KeyOf(row));
    if (box.ok()) near.emplace_back(box->SquaredDistance(query.x, query.y), row);
  }
  std::ranges::sort(near, [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : rows->KeyOf(a.second) < rows->KeyOf(b.second);
  });
  rows->rows_.clear();
  for (const auto& [distance, row] : near) rows->rows_.push_back(row);
  if (rows->rows_.size() > query.count) rows->rows_.Resize(query.count);
}

}  // namespace gannet::txn
