// The latency of this machine's memory at this moment, to be read together with every throughput.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "base/status.h"

namespace gannet::bench {

struct Calibration {
  double dependent_read_ns = 0;  // per 64-byte line whose address is read from the line before
  uint64_t buffer_bytes = 0;     // size of the memory that is read: much more than the last-level cache

  bool is_measured() const { return buffer_bytes != 0; }
};

// Takes about 0.2 s. ResourceExhausted if there is no memory for the buffer.
StatusOr<Calibration> Calibrate();

// Calibrates for a run of this length. A run of less than a second measures no throughput, and the calibrations before
// and after it would take as long as the run itself: it is not calibrated.
StatusOr<Calibration> CalibrateForRun(absl::Duration run);

}  // namespace gannet::bench
