// How fast this machine's memory is right now: the figure to read beside every throughput.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gannet::bench {

struct Calibration {
  double dependent_read_ns = 0;  // per 64-byte line at an address that only the line before tells
  uint64_t buffer_bytes = 0;     // that the reads are spread over: much more than the last-level cache
};

// Takes about 0.2 s. ResourceExhausted if there is no memory for the buffer.
StatusOr<Calibration> Calibrate();

}  // namespace gannet::bench
