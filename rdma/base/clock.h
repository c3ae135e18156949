// Monotonic time. Code that waits or measures takes its time from here, so that a simulated clock can take its place.
#pragma once

#include <chrono>
#include <cstdint>

namespace gannet {

// Nanoseconds of the monotonic clock; only differences mean something.
inline uint64_t NowNanos() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

}  // namespace gannet
