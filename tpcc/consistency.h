// Checks the twelve consistency conditions of clause 3.3.2 over the tables.
//
// No one may write during the check. Time and memory are linear in the rows: each table is read once, in chunks.
//
// The specification states condition 11 for the initial population (orders - new orders = 2100). The form used here
// also holds after deliveries: orders - new orders = 2100 + the sum of C_DELIVERY_CNT, per district.
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tpcc/schema/schema.h"
#include "txn/database.h"

namespace gannet::tpcc {

inline constexpr int kConditions = 12;

struct ConditionResult {
  int condition = 0;  // 1 to 12
  bool holds = false;
  // If the condition does not hold, the first warehouse, district, customer or order where it fails, and both values.
  // Otherwise what was compared.
  std::string detail;
};

// Checks all warehouses; the results are in the order of the conditions. `tables[i]` are those of `nodes[i]`, the nodes
// of this process; a warehouse of another process is read through the first of them. An error means that the check
// could not be completed; Cancelled: *stop (may be null) has become true.
StatusOr<std::vector<ConditionResult>> CheckConsistency(std::span<txn::Database* const> nodes,
                                                        std::span<const Tables> tables,
                                                        const std::atomic<bool>* stop = nullptr);

}  // namespace gannet::tpcc
