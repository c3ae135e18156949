// Largest size of a part of another node's transaction (Log::AppendForPeer).
#pragma once

#include <cstddef>

namespace gannet::log {

// A log's buffer for parts holds at least one part of this size, even if LogOptions::buffer_bytes is smaller. Otherwise
// a part that never fits would be refused again and again.
inline constexpr size_t kLargestPartBytes = size_t{128} << 10;

}  // namespace gannet::log
