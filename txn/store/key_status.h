// Errors about one key of a table, for the user: they name both. Internal to txn/. Errors that the engine makes and
// handles itself have no text and cost no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "index/key.h"
#include "txn/store/payload.h"
#include "txn/store/table.h"

namespace gannet::txn {

// The text in quotation marks; bytes that cannot be printed are escaped as in C.
std::string Quoted(std::string_view text);
// `table 'cities'`.
std::string NameOf(const Table& table);
// `"Zürich"`; an integer key as its number, a tuple as (12,"Main"), a key of a spatial table as `[1, 2] x [3, 4] id 7`:
// by TableOptions::key_form. If that is kPlain, bytes that could be a tuple are taken for one. Bytes that cannot be
// printed are escaped as in C; of a key of more than index::kShortKeyBytes the first ones are there, and its length.
std::string TextOf(const Table& table, const index::Key& key);
// `table 'cities', key "Zürich"`: the key as TextOf writes it.
std::string NameOfRow(const Table& table, const index::Key& key);

inline bool IsKeyOf(const Table& table, const index::Key& key) {
  return key.kind() == table.options().key_kind && key.size() <= table.options().max_key_bytes;
}
// InvalidArgument if `key` is not of the table's kind, is longer than the table's keys may be, or is no rectangle of a
// spatial table. FailedPrecondition: that of CheckUsable.
Status CheckKey(const Table& table, const index::Key& key);
// FailedPrecondition: the table's index has no order.
Status CheckOrdered(const Table& table);
// Checks Table::state. FailedPrecondition: the table has been dropped, or is being dropped, or is half widened.
// Aborted, so that Run repeats the transaction: it is being widened.
Status CheckState(const Table& table);
// Does what CheckState does, and returns FailedPrecondition if the owners of its keys are unknown here. CheckKey asks,
// too.
Status CheckUsable(const Table& table);

[[gnu::cold]] Status KeyNotFound(const Table& table, const index::Key& key);
[[gnu::cold]] Status KeyExists(const Table& table, const index::Key& key);
// DataLoss: a client has written into the table's index against its rules, so that it leads from `key` to no record of
// it, or nowhere. Without a key: an end of the index cannot be reached.
[[gnu::cold]] Status IndexDamaged(const Table& table, const index::Key& key);
[[gnu::cold]] Status IndexDamaged(const Table& table);
// InvalidArgument: the table's rows have other sizes.
[[gnu::cold]] Status PayloadDoesNotFit(const Table& table, size_t payload_bytes);
// InvalidArgument if the table may have a row, or all of them, of another size.
inline Status CheckFits(const Table& table, size_t payload_bytes) {
  const size_t most = table.payload_bytes();
  if (payload_bytes == most || (payload_bytes < most && table.options().variable_length)) [[likely]]
    return absl::OkStatus();
  return PayloadDoesNotFit(table, payload_bytes);
}
// InvalidArgument if `part` is a field of a struct that is not that of the table.
[[gnu::cold]] Status NotRowOf(const Table& table, size_t row_bytes);
inline Status CheckRowOf(const Table& table, const PayloadPart& part) {
  const size_t most = table.payload_bytes();
  if (part.row_bytes() == 0 || part.row_bytes() == most) [[likely]]
    return absl::OkStatus();
  if (part.row_bytes() < most && table.options().variable_length) return absl::OkStatus();
  return NotRowOf(table, part.row_bytes());
}
// InvalidArgument: the whole payload was asked for, and has another size.
[[gnu::cold]] Status RowIsNot(const Table& table, const index::Key& key, size_t asked_bytes, size_t payload_bytes);
// The error of a Get whose bytes [offset, offset + size) are not all in the record's `payload_bytes`.
[[gnu::cold]] Status PayloadEndsBefore(const Table& table, const index::Key& key, uint32_t offset, size_t size,
                                       uint32_t payload_bytes);

}  // namespace gannet::txn
