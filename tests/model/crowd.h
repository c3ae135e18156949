// Many threads at once on one world. Single results cannot be predicted, but these invariants hold:
//   - Every row is whole: its words follow from its key, version, amount and length. So a torn row, another row's
//     content, and a neighbour's write are detected.
//   - Amounts move between rows and are split and joined, but their sum over all tables is constant. Every committed
//     transaction that read everything has seen that sum.
//   - Scans are in order, within their range and limit, with each key once.
//   - Meanwhile all nodes rename and widen tables, and make and drop a table and an index that the threads use. An
//   index
//     that can be read leads to all rows of its table. A row that was widened has zeros at its end.
//   - A transaction fails only with the documented errors of its operations, or because of a lossy fabric.
// At the end, and after another opening, everything is read once more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/model/generator.h"

namespace gannet::model {

struct CrowdStatistics {
  uint64_t committed = 0;
  uint64_t refused = 0;  // by an operation's error, or given up
  uint64_t totals = 0;   // committed transactions that summed all amounts
  uint64_t unknown = 0;
  uint64_t table_changes = 0;
};

// Returns the first failure, if any. Each thread runs `transactions` transactions.
std::optional<std::string> RunCrowd(World world, uint64_t transactions, CrowdStatistics* statistics);

}  // namespace gannet::model
