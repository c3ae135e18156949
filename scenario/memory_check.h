// Whether registered memory is lost, or used twice.
//
// Every block that was ever taken from a node's heap is free, waits for its grace period, is a record that exactly one
// index entry leads to, or belongs to an index. So what is neither free, a record, nor of an index is always as much as
// it was at the beginning. More: it is lost, nobody will ever give it back. Less: something is used twice.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "txn/database.h"

namespace gannet::scenario {

// Bytes that are neither free nor accounted for, on a thread of the database's node, while nothing changes. Internal
// if two records overlap.
StatusOr<int64_t> UnaccountedBytes(txn::Database& database);

// Internal if there are more or fewer than `expected` when the grace period of all that was retired is over; waits for
// that.
Status CheckMemory(txn::Database& database, int64_t expected);

}  // namespace gannet::scenario
