// The memory that is available.
#pragma once

#include <cstdint>

namespace gannet {

// Memory that this process may use: the machine's, or its control group's if that is less.
uint64_t UsableMemoryBytes();

}  // namespace gannet
