// The memory that is available.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gannet::cli {

// Memory that this process may use: the machine's, or its control group's if that is less.
uint64_t UsableMemoryBytes();

// Three quarters of that: how much a command takes for the rows of a node if no flag says it.
uint64_t DefaultMemoryPerNode();

// `status`; if it says that nodes need more or less memory, its message also names the flag for that.
Status NameMemoryFlag(const Status& status);

}  // namespace gannet::cli
