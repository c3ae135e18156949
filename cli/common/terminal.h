// The width of the text that this program writes.
#pragma once

#include <optional>

namespace gannet::cli {

// Width of a report that goes to a file or a pipe.
inline constexpr int kPlainWidth = 100;

// Columns of the terminal behind the file descriptor, or $COLUMNS if that is set to a number. None if it is no terminal
// and $COLUMNS is not set.
std::optional<int> TerminalWidth(int file);

}  // namespace gannet::cli
