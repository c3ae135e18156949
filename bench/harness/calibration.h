// The latency of this machine's memory at this moment, to be read together with every throughput.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gannet::bench {

struct Calibration {
  double dependent_read_ns = 0;  // per 64-byte line whose address is read from the line before
  uint64_t buffer_bytes = 0;     // size of the memory that is read: much more than the last-level cache
};

// Takes about 0.2 s. ResourceExhausted if there is no memory for the buffer.
StatusOr<Calibration> Calibrate();

}  // namespace gannet::bench
