// Evaluates the twelve conditions of clause 3.3.2 over gathered facts. Pure functions.
#pragma once

#include <vector>

#include "tpcc/consistency.h"
#include "tpcc/facts.h"

namespace gannet::tpcc {

// All twelve, in order.
std::vector<ConditionResult> EvaluateConditions(const Facts& facts);

}  // namespace gannet::tpcc
