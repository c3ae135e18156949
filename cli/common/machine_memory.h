// How much memory a command takes, and what it says if that is wrong.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gannet::cli {

// Three quarters of UsableMemoryBytes: how much a command takes for the rows of a node if no flag says it.
uint64_t DefaultMemoryPerNode();

// `status`; if it says that nodes need more or less memory, its message also names the flag for that.
Status NameMemoryFlag(const Status& status);

}  // namespace gannet::cli
