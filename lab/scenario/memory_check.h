// Checks that registered memory is neither lost nor used twice.
//
// Every block that was ever taken from a node's heap is free, waits for its grace period, is a record that exactly one
// index entry leads to, or belongs to an index. So the number of bytes that are neither free, nor a record, nor part of
// an index stays as it was at the beginning. If it grows, memory is lost. If it shrinks, some memory is used twice.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "txn/database.h"

namespace gannet::scenario {

// Bytes that are neither free nor accounted for. Called on a thread of the database's node, while nothing changes.
// Internal if two records overlap.
StatusOr<int64_t> UnaccountedBytes(txn::Database& database);

// Waits until the grace period of all retired memory is over. Internal if there are then more or fewer unaccounted
// bytes than `expected`.
Status CheckMemory(txn::Database& database, int64_t expected);

}  // namespace gannet::scenario
