// Many threads at once on one world. No result can be foretold; these must hold all the same:
//   - Every row is of a piece: its words follow from its key, its version, its amount and its length. So a row that is
//     torn, that is another one's, or that a neighbour wrote into shows.
//   - Amounts move from row to row and are split and joined, but their sum over all tables stays. A transaction that
//     committed has seen that sum, also if it only read.
//   - Scans are in order, within their range and their limit, each key once.
//   - No transaction fails but by what its own operations may say, and what a lossy fabric may do.
// At the end, and after another opening, all of it is read once more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/model/generator.h"

namespace gannet::model {

struct CrowdStatistics {
  uint64_t committed = 0;
  uint64_t refused = 0;  // by what an operation said, or given up
  uint64_t totals = 0;   // sums of all amounts that were seen and committed
  uint64_t unknown = 0;
};

// What went wrong first, if anything did. `transactions` by each thread.
std::optional<std::string> RunCrowd(World world, uint64_t transactions, CrowdStatistics* statistics);

}  // namespace gannet::model
