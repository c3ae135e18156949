// Errors about one key of a table, as the user gets them: they name both. Internal to txn/. What the engine makes and
// takes within itself has no text and costs no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "index/key.h"
#include "txn/table.h"

namespace gannet::txn {

// `table "cities", key "Zürich"`; an integer key as its number. Bytes that cannot be printed are escaped as in C.
std::string NameOfRow(const Table& table, const index::Key& key);

// InvalidArgument if `key` is not of the kind, or is longer, than the table's keys are.
Status CheckKey(const Table& table, const index::Key& key);

[[gnu::cold]] Status KeyNotFound(const Table& table, const index::Key& key);
[[gnu::cold]] Status KeyExists(const Table& table, const index::Key& key);
// Error of a Get whose bytes [offset, offset + size) are not all in the record's `payload_bytes`.
[[gnu::cold]] Status PayloadEndsBefore(const Table& table, const index::Key& key, uint32_t offset, size_t size,
                                       uint32_t payload_bytes);

}  // namespace gannet::txn
