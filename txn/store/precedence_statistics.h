// PrecedenceStatistics: how often transactions of a node starved, and the cost for others (Database).
#pragma once

#include <cstdint>

namespace gannet::txn {

// Counted at this node since it was opened.
struct PrecedenceStatistics {
  uint64_t asked = 0;          // times that a transaction of this node lost for too long
  uint64_t tickets = 0;        // drawn by this node
  uint64_t expired = 0;        // tickets of this node that ended with their lease
  uint64_t held_up = 0;        // commits of this node that waited for the transaction with precedence
  uint64_t held_up_nanos = 0;  // the sum of their waiting times
};

}  // namespace gannet::txn
