// RowsWanted: which rows of a table a scan or search is to find.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "index/index.h"
#include "index/rectangle.h"
#include "txn/access/write_buffer.h"
#include "txn/store/table.h"

namespace gannet::txn {

// Rows of a range; or those that meet a window, and then the range has all of them; or those nearest to a point, and
// then the range has all keys.
struct RowsWanted {
  index::ScanRange range;
  std::optional<index::Rectangle> window{};
  std::optional<index::NearestQuery> nearest{};

  bool is_spatial() const { return window.has_value() || nearest.has_value(); }
};

// The limit of a range, or of a search for the nearest, that leaves `limit` rows when those are left out that this
// transaction has removed.
inline size_t LimitBeyondRemovals(const WriteBuffer& writes, const Table& table, const index::ScanRange& range,
                                  size_t limit) {
  if (limit == SIZE_MAX) return limit;
  return limit + std::min(writes.RemovalsIn(table, range), SIZE_MAX - limit);
}

}  // namespace gannet::txn
