// Time. Code that waits or measures takes its time from here, so that a simulated clock can take its place.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/time/time.h"
#include "base/runtime.h"

namespace gannet {

// Nanoseconds of the monotonic clock; only differences mean something.
inline uint64_t NowNanos() {
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    return runtime->NowNanos();
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// A negative duration has 0.
inline uint64_t NanosOf(absl::Duration duration) {
  return static_cast<uint64_t>(std::max(absl::ToInt64Nanoseconds(duration), int64_t{0}));
}

// Nanoseconds since 1970, for people and for stored data.
inline uint64_t WallNanos() {
  if (Runtime* runtime = Runtime::Current()) [[unlikely]]
    return runtime->WallNanos();
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace gannet
