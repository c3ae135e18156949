// Exit codes of the program.
#pragma once

namespace gannet::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;    // the work failed, or its result is wrong
inline constexpr int kExitBadFlags = 2;  // nothing was done
inline constexpr int kExitNoRow = 3;     // there is no such row
inline constexpr int kExitSignal = 128;  // plus the signal's number

}  // namespace gannet::cli
