#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "capi/handles.h"
#include "index/rectangle.h"

using gannet::Status;
using gannet::StatusOr;
using namespace gannet::capi;  // NOLINT: this folder's own
namespace txn = gannet::txn;

// There are three kinds: one moves over a range of an ordered table, one over a range of a secondary index, and one
// over rows that a spatial search has found.
struct gannet_cursor {
  gannet_cursor(gannet_transaction* of, const txn::Table& rows, gannet_cursor_mode its_mode)
      : transaction(&of->operations()), table(rows), mode(its_mode) {}

  txn::BlockingTransaction* transaction;
  const txn::Table& table;
  gannet_cursor_mode mode;

  // The first and the second kind: the first move makes one of these, which ends the choice of the range.
  txn::KeyRange range;
  std::unique_ptr<txn::BlockingCursor> moving;
  const txn::SecondaryIndex* index = nullptr;  // of the second kind
  std::unique_ptr<txn::BlockingIndexCursor> moving_by;
  std::optional<gannet::index::OwnedKey> index_key;  // of the row that the cursor was at when it was asked for

  // The third kind: the row is found[at]; at is behind the end if the cursor is at no row.
  bool has_found = false;
  txn::ScanRows found;
  size_t at = SIZE_MAX;

  // Calls use(const cursor&) with the moving cursor, which is there.
  template <class Use>
  auto AtRow(Use&& use) const {
    return index != nullptr ? use(std::as_const(*moving_by)) : use(std::as_const(*moving));
  }
  bool has_moved() const { return moving != nullptr || moving_by != nullptr; }
  bool valid() const {
    if (has_found) return at < found.size();
    return has_moved() && AtRow([](const auto& cursor) { return cursor.valid(); });
  }
  txn::RecordHandle record() const {
    if (has_found) return found.handle(at);
    return AtRow([](const auto& cursor) { return cursor.handle(); });
  }
  // Calls move(cursor&) with the moving cursor, which it makes if it is not there.
  template <class MoveCursor>
  Status Move(MoveCursor&& move) {
    const txn::CursorOptions options{
        .range = range, .keys_only = mode == GANNET_CURSOR_KEYS, .for_update = mode == GANNET_CURSOR_UPDATE};
    if (index != nullptr) {
      if (moving_by == nullptr) moving_by.reset(new txn::BlockingIndexCursor(transaction->OpenCursor(*index, options)));
      return move(*moving_by);
    }
    if (moving == nullptr) moving.reset(new txn::BlockingCursor(transaction->OpenCursor(table, options)));
    return move(*moving);
  }
};

namespace {

Status NoFurtherRow(const gannet_cursor& cursor) {
  return absl::NotFoundError(absl::StrCat("table '", cursor.table.name(), "': the cursor is at no row"));
}

// The moves of the second kind: to row `to`, which wraps around below 0.
Status MoveTo(gannet_cursor* cursor, size_t to) {
  cursor->at = to < cursor->found.size() ? to : SIZE_MAX;
  return cursor->valid() ? absl::OkStatus() : NoFurtherRow(*cursor);
}

template <class Move>
gannet_code Moved(gannet_cursor* cursor, Move&& move, const char* function = __builtin_FUNCTION()) {
  GANNET_CAPI_NOT_NULL_OF(function, cursor);
  return Guarded([&] {
    if (const Status moved = move(*cursor); !moved.ok()) return CodeOf(moved);
    return cursor->valid() ? gannet_code{GANNET_OK} : CodeOf(NoFurtherRow(*cursor));
  });
}

Status AtNoRow(const char* function) {
  return absl::FailedPreconditionError(absl::StrCat(function, ": the cursor is at no row"));
}

// Ok if the cursor may change the row that it is at.
Status CheckChange(const gannet_cursor& cursor, const char* function) {
  if (cursor.mode != GANNET_CURSOR_UPDATE) {
    return absl::FailedPreconditionError(absl::StrCat(function, ": open the cursor with GANNET_CURSOR_UPDATE"));
  }
  return cursor.valid() ? absl::OkStatus() : AtNoRow(function);
}

Status CheckMode(gannet_cursor_mode mode) {
  if (mode == GANNET_CURSOR_READ || mode == GANNET_CURSOR_KEYS || mode == GANNET_CURSOR_UPDATE) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("gannet_cursor_mode has no value ", static_cast<int>(mode)));
}

// Opens a cursor over the rows that `search` stores.
template <class Search>
gannet_code OpenFound(gannet_transaction* transaction, const gannet_table* table, gannet_cursor_mode mode,
                      gannet_cursor** cursor, Search&& search, const char* function = __builtin_FUNCTION()) {
  GANNET_CAPI_NOT_NULL_OF(function, transaction);
  GANNET_CAPI_NOT_NULL_OF(function, table);
  GANNET_CAPI_NOT_NULL_OF(function, cursor);
  return Guarded([&] {
    if (const Status good = CheckMode(mode); !good.ok()) return CodeOf(good);
    auto made = std::make_unique<gannet_cursor>(transaction, TableOf(table), mode);
    made->has_found = true;
    const txn::ScanOptions options{.keys_only = mode == GANNET_CURSOR_KEYS, .for_update = mode == GANNET_CURSOR_UPDATE};
    if (const Status searched = search(*made, options); !searched.ok()) return CodeOf(searched);
    *cursor = made.release();
    return gannet_code{GANNET_OK};
  });
}

// Sets the range by `set`, before the first move.
template <class Set>
gannet_code SetRange(gannet_cursor* cursor, const char* function, Set&& set) {
  GANNET_CAPI_NOT_NULL_OF(function, cursor);
  return Guarded([&] {
    if (cursor->has_found || cursor->has_moved()) {
      return CodeOf(absl::FailedPreconditionError(
          absl::StrCat(function,
                       ": only before the first move, and not of a cursor of gannet_search_open or "
                       "gannet_nearest_open")));
    }
    set(&cursor->range);
    return gannet_code{GANNET_OK};
  });
}

}  // namespace

extern "C" {

gannet_code gannet_cursor_open(gannet_transaction* transaction, const gannet_table* table, enum gannet_cursor_mode mode,
                               gannet_cursor** cursor) {
  GANNET_CAPI_NOT_NULL(transaction);
  GANNET_CAPI_NOT_NULL(table);
  GANNET_CAPI_NOT_NULL(cursor);
  return Guarded([&] {
    if (const Status good = CheckMode(mode); !good.ok()) return CodeOf(good);
    const txn::Table& rows = TableOf(table);
    if (!rows.index_traits().ordered) {
      return CodeOf(absl::FailedPreconditionError(
          absl::StrCat("table '", rows.name(), "': its index '", gannet_table_index(table), "' is not ordered")));
    }
    *cursor = new gannet_cursor(transaction, rows, mode);
    return gannet_code{GANNET_OK};
  });
}

gannet_code gannet_index_cursor_open(gannet_transaction* transaction, const gannet_index* index,
                                     enum gannet_cursor_mode mode, gannet_cursor** cursor) {
  GANNET_CAPI_NOT_NULL(transaction);
  GANNET_CAPI_NOT_NULL(index);
  GANNET_CAPI_NOT_NULL(cursor);
  return Guarded([&] {
    if (const Status good = CheckMode(mode); !good.ok()) return CodeOf(good);
    *cursor = new gannet_cursor(transaction, IndexOf(index).table(), mode);
    (*cursor)->index = &IndexOf(index);
    return gannet_code{GANNET_OK};
  });
}

void gannet_cursor_close(gannet_cursor* cursor) {
  delete cursor;
}

gannet_code gannet_cursor_set_range(gannet_cursor* cursor, const gannet_key* from, int from_included,
                                    const gannet_key* to, int to_included) {
  return SetRange(cursor, "gannet_cursor_set_range", [&](txn::KeyRange* range) {
    *range = txn::KeyRange::All();
    if (from != nullptr) range->from = {txn::KeyCopy(KeyOf(*from)), from_included != 0};
    if (to != nullptr) range->to = {txn::KeyCopy(KeyOf(*to)), to_included != 0};
  });
}

gannet_code gannet_cursor_set_prefix(gannet_cursor* cursor, const void* data, size_t size) {
  if (size > 0) GANNET_CAPI_NOT_NULL(data);
  return SetRange(cursor, "gannet_cursor_set_prefix", [&](txn::KeyRange* range) {
    *range = txn::KeyRange::Prefix(std::string_view(static_cast<const char*>(data), size));
  });
}

gannet_code gannet_cursor_first(gannet_cursor* cursor) {
  return Moved(cursor, [](gannet_cursor& it) {
    return it.has_found ? MoveTo(&it, 0) : it.Move([](auto& at) { return at.First(); });
  });
}

gannet_code gannet_cursor_last(gannet_cursor* cursor) {
  return Moved(cursor, [](gannet_cursor& it) {
    return it.has_found ? MoveTo(&it, it.found.size() - 1) : it.Move([](auto& at) { return at.Last(); });
  });
}

gannet_code gannet_cursor_next(gannet_cursor* cursor) {
  return Moved(cursor, [](gannet_cursor& it) {
    if (!it.valid()) return AtNoRow("gannet_cursor_next");
    return it.has_found ? MoveTo(&it, it.at + 1) : it.Move([](auto& at) { return at.Next(); });
  });
}

gannet_code gannet_cursor_previous(gannet_cursor* cursor) {
  return Moved(cursor, [](gannet_cursor& it) {
    if (!it.valid()) return AtNoRow("gannet_cursor_previous");
    return it.has_found ? MoveTo(&it, it.at - 1) : it.Move([](auto& at) { return at.Previous(); });
  });
}

gannet_code gannet_cursor_seek_forward(gannet_cursor* cursor, gannet_key key) {
  return Moved(cursor, [&](gannet_cursor& it) {
    if (it.has_found) return Status(absl::FailedPreconditionError("gannet_cursor_seek_forward: rows of a search"));
    return it.Move([&](auto& at) { return at.SeekForward(KeyOf(key)); });
  });
}

gannet_code gannet_cursor_seek_backward(gannet_cursor* cursor, gannet_key key) {
  return Moved(cursor, [&](gannet_cursor& it) {
    if (it.has_found) return Status(absl::FailedPreconditionError("gannet_cursor_seek_backward: rows of a search"));
    return it.Move([&](auto& at) { return at.SeekBackward(KeyOf(key)); });
  });
}

gannet_key gannet_cursor_key(const gannet_cursor* cursor) {
  if (cursor == nullptr || !cursor->valid()) return gannet_key_integer(0);
  if (cursor->has_found) return HandleOf(cursor->found.key(cursor->at));
  return HandleOf(cursor->AtRow([](const auto& at) { return at.key(); }));
}

gannet_bytes gannet_cursor_payload(const gannet_cursor* cursor) {
  if (cursor == nullptr || !cursor->valid() || cursor->mode == GANNET_CURSOR_KEYS) return {nullptr, 0};
  if (cursor->has_found) return HandleOf(cursor->found.payload(cursor->at));
  return HandleOf(cursor->AtRow([](const auto& at) { return at.payload(); }));
}

gannet_code gannet_cursor_index_key(gannet_cursor* cursor, gannet_key* key) {
  GANNET_CAPI_NOT_NULL(cursor);
  GANNET_CAPI_NOT_NULL(key);
  return Guarded([&] {
    if (cursor->index == nullptr) {
      return CodeOf(absl::FailedPreconditionError("gannet_cursor_index_key: not a cursor of gannet_index_cursor_open"));
    }
    if (!cursor->valid()) return CodeOf(AtNoRow("gannet_cursor_index_key"));
    StatusOr<gannet::index::OwnedKey> found = cursor->moving_by->index_key();
    if (!found.ok()) return CodeOf(found.status());
    cursor->index_key = *std::move(found);
    *key = HandleOf(cursor->index_key->view());
    return gannet_code{GANNET_OK};
  });
}

gannet_code gannet_cursor_update(gannet_cursor* cursor, const void* payload, size_t size) {
  GANNET_CAPI_NOT_NULL(cursor);
  return Guarded([&] {
    if (const Status may = CheckChange(*cursor, "gannet_cursor_update"); !may.ok()) return CodeOf(may);
    if (const Status fits = CheckPayload(cursor->table, payload, size); !fits.ok()) return CodeOf(fits);
    return CodeOf(cursor->transaction->transaction().Update(cursor->record(), BytesOf(payload, size)));
  });
}

gannet_code gannet_cursor_remove(gannet_cursor* cursor) {
  GANNET_CAPI_NOT_NULL(cursor);
  return Guarded([&] {
    if (const Status may = CheckChange(*cursor, "gannet_cursor_remove"); !may.ok()) return CodeOf(may);
    return CodeOf(cursor->transaction->Remove(cursor->record()));
  });
}

gannet_code gannet_search_open(gannet_transaction* transaction, const gannet_table* table,
                               const gannet_rectangle* window, enum gannet_cursor_mode mode, gannet_cursor** cursor) {
  GANNET_CAPI_NOT_NULL(window);
  return OpenFound(transaction, table, mode, cursor, [&](gannet_cursor& made, const txn::ScanOptions& options) {
    const gannet::index::Rectangle box{window->min_x, window->min_y, window->max_x, window->max_y};
    return made.transaction->Search(made.table, box, &made.found, options);
  });
}

gannet_code gannet_nearest_open(gannet_transaction* transaction, const gannet_table* table, double x, double y,
                                size_t count, enum gannet_cursor_mode mode, gannet_cursor** cursor) {
  return OpenFound(transaction, table, mode, cursor, [&](gannet_cursor& made, const txn::ScanOptions& options) {
    return made.transaction->Nearest(made.table, {.x = x, .y = y, .count = count}, &made.found, options);
  });
}

}  // extern "C"
