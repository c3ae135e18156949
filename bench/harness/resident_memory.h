// Memory that this process takes.
#pragma once

#include <cstdint>

namespace gannet::bench {

// Resident memory of this process, as the kernel counts it.
uint64_t ResidentBytes();

}  // namespace gannet::bench
