// Searches of spatial tables: the rows whose rectangles meet a window, and those nearest to a point.
//
// The index's witnesses cover the window, or the neighbourhood of the point, gaps included (index/index.h); the commit
// validates them. So a search needs no more than a scan does: the index may have shown a mixture of moments, but then a
// witness has changed.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "txn/access/access.h"
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

}  // namespace

index::ScanRange Access::AllRectangles() {
  constexpr double kMost = index::kMaxCoordinate;
  static const RectangleKeyBytes first({Rectangle::Point(-kMost, -kMost), 0});
  static const RectangleKeyBytes last({Rectangle::Point(kMost, kMost), UINT64_MAX});
  return {.from = first.view(), .to = last.view()};
}

// A rectangle that meets the window begins anywhere to the left of the window's right edge.
index::ScanRange Access::RectanglesFor(const Rectangle& window) {
  constexpr double kMost = index::kMaxCoordinate;
  const RectangleKeyBytes last({{window.max_x, kMost, kMost, kMost}, UINT64_MAX});
  return {.from = AllRectangles().from, .to = writes_.arena().Keep(last.view())};
}

Status Access::CheckSpatial(const Table& table) const {
  GANNET_RETURN_IF_ERROR(CheckOwnTable(*session_->local, table));
  if (table.index_traits().spatial) return CheckUsable(table);
  return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " has no spatial index (",
                                                    index::EntryOf(table.options().index).name,
                                                    "): create it with one to search it for rectangles"));
}

Status Access::SearchDirect(const Table& table, const Rectangle& window, ScanRows* rows, ScanOptions options) {
  const auto find = [&](index::ScanResult* found) { return table.local_index().Search({.window = window}, found); };
  return AppendFound(table, find, rows, options);
}

// Adds this transaction's inserts, which are not in the index yet, and puts all rows into the order of their keys.
void Access::MergeOwnInserts(const Table& table, const Rectangle& window, ScanRows* rows, ScanOptions options) {
  if (writes_.has_inserts()) {
    group_.clear();
    writes_.InsertsIn(table, AllRectangles(), &group_);
    for (const uint32_t i : group_) {
      const StatusOr<Rectangle> box = BoxOf(writes_[i].key);
      if (box.ok() && window.Meets(*box)) AppendOwnRow(i, rows, options);
    }
  }
  std::sort(rows->rows_.begin(), rows->rows_.end(),
            [&](const ScanRows::Item& a, const ScanRows::Item& b) { return rows->KeyOf(a) < rows->KeyOf(b); });
}

coro::Async<Status> Access::Search(const Table& table, const Rectangle& window, ScanRows* rows, ScanOptions options) {
  rows->Clear();
  if (Status s = CheckSpatial(table); !s.ok()) return s;
  if (Status s = index::CheckRectangle(window); !s.ok()) return s;
  const index::ScanRange range = RectanglesFor(window);
  if (!table.OwnsRange(range.from, range.to, session_->self) || !session_->direct) {
    return SearchRemote(table, window, rows, options);
  }
  Status status = SearchDirect(table, window, rows, options);
  if (!status.ok()) [[unlikely]] {
    rows->rows_.clear();
    return Failed(std::move(status));
  }
  MergeOwnInserts(table, window, rows, options);
  return status;
}

coro::Task<Status> Access::SearchRemote(const Table& table, Rectangle window, ScanRows* rows, ScanOptions options) {
  Status status = co_await RowsOfNodes(table, {.range = RectanglesFor(window), .window = window}, rows, options);
  if (!status.ok()) {
    rows->rows_.clear();
    co_return Failed(std::move(status));
  }
  MergeOwnInserts(table, window, rows, options);
  co_return status;
}

coro::Async<Status> Access::Nearest(const Table& table, const NearestQuery& query, ScanRows* rows,
                                    ScanOptions options) {
  rows->Clear();
  if (Status s = CheckSpatial(table); !s.ok()) return s;
  if (Status s = index::CheckRectangle(Rectangle::Point(query.x, query.y)); !s.ok()) return s;
  if (query.count == 0) return absl::OkStatus();
  return NearestOfAll(table, query, rows, options);
}

// Each owner finds as many as are asked for, and as many more as this transaction has removed.
coro::Task<Status> Access::NearestOfAll(const Table& table, NearestQuery query, ScanRows* rows, ScanOptions options) {
  const index::ScanRange range = AllRectangles();
  NearestQuery wider = query;
  wider.count += std::min(writes_.RemovalsIn(table, range), SIZE_MAX - query.count);
  Status status = co_await RowsOfNodes(table, {.range = range, .nearest = wider}, rows, options);
  if (!status.ok()) {
    rows->rows_.clear();
    co_return Failed(std::move(status));
  }
  KeepNearest(table, query, rows, options);
  co_return absl::OkStatus();
}

Status Access::NearestDirect(const Table& table, const NearestQuery& query, ScanRows* rows, ScanOptions options) {
  const auto find = [&](index::ScanResult* found) { return table.local_index().Nearest(query, found); };
  return AppendFound(table, find, rows, options);
}

// The owner's index finds them: READs would take as many round trips as the tree has levels, and more. Not a choice.
coro::Task<Status> Access::NearestRemote(const Table& table, NearestQuery query, rdma::NodeId node, ScanRows* rows,
                                         ScanOptions options) {
  StatusOr<index::RemoteIndex*> remote = session_->RemoteIndexOf(table, node);
  if (!remote.ok()) co_return remote.status();
  session_->paths.Count(AccessKind::kSearch, table.id(), AccessPath::kCall);
  index::ScanResult found;
  Status status = co_await (*remote)->Nearest(query, &found);
  if (!status.ok()) co_return status;
  size_t doubtful = SIZE_MAX;
  status = co_await FetchFound(table, found, rows, options, &doubtful);
  co_return status;
}

// Adds this transaction's inserts, sorts by distance, and leaves out what is too much.
void Access::KeepNearest(const Table& table, const NearestQuery& query, ScanRows* rows, ScanOptions options) {
  if (writes_.has_inserts()) {
    group_.clear();
    writes_.InsertsIn(table, AllRectangles(), &group_);
    for (const uint32_t i : group_) AppendOwnRow(i, rows, options);
  }
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
