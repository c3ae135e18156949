// The directory of the logs that tests make.
#pragma once

namespace gannet::log {

inline constexpr char kLogDirectory[] = "/log";

}  // namespace gannet::log
