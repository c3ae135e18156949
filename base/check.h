// Checks of invariants. A broken invariant stops the program and prints its state; it is not an error that a caller
// could handle.
#pragma once

#include <string>

#include "absl/strings/str_format.h"

namespace gannet {

// Prints `file:line: check failed: condition: state` on stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& state);
// Takes the values by copy, and out of line: a variable whose address a check took would stay in memory all the time.
template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void CheckFailedWith(const char* file, int line, const char* condition,
                                                            const absl::FormatSpec<Args...>& format, Args... values) {
  CheckFailed(file, line, condition, absl::StrFormat(format, values...));
}

}  // namespace gannet

// GANNET_CHECK(a < b, "a=%d b=%d", a, b): the state is formatted only when the check fails.
#define GANNET_CHECK(condition, ...)                                          \
  do {                                                                        \
    if (!(condition)) [[unlikely]]                                            \
      ::gannet::CheckFailedWith(__FILE__, __LINE__, #condition, __VA_ARGS__); \
  } while (false)
