// How much memory there is.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gannet::cli {

// Memory that this process may use: the machine's, or its control group's if that is less.
uint64_t UsableMemoryBytes();

// `status`, and, where it says that nodes need more or less memory, the flag that gives it.
Status NameMemoryFlag(const Status& status);

}  // namespace gannet::cli
