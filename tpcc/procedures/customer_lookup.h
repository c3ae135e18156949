// Finds the customer of a last name (clauses 2.5.2.2, 2.6.2.2): sorted by first name, the one at position n/2 rounded
// up.
#pragma once

#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "tpcc/schema/schema.h"
#include "txn/run/transaction.h"

namespace gannet::tpcc {

// Returns the number of the customer in district (w, d); NotFound if the district has no such name. `rows` is a buffer.
coro::Task<StatusOr<uint32_t>> FindCustomerByName(txn::Transaction& transaction, const Tables& tables, uint32_t w,
                                                  uint32_t d, const Text<16>& last, txn::ScanRows* rows);

}  // namespace gannet::tpcc
