// How large a part of another node's transaction may be (Log::AppendForPeer).
#pragma once

#include <cstddef>

namespace gannet::log {

// A log's buffer for parts holds at least one of this size, however small LogOptions::buffer_bytes is: a part that never
// fits would be refused again and again.
inline constexpr size_t kLargestPartBytes = size_t{128} << 10;

}  // namespace gannet::log
