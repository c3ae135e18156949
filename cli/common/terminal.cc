#include "cli/common/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace gannet::cli {
namespace {

// Narrower text would be unreadable.
constexpr int kLeastWidth = 40;

}  // namespace

std::optional<int> TerminalWidth(int file) {
  int columns = 0;
  const char* const told = std::getenv("COLUMNS");
  if (told != nullptr && absl::SimpleAtoi(told, &columns) && columns > 0) return std::max(columns, kLeastWidth);
  struct winsize size = {};
  if (isatty(file) != 1 || ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return std::max<int>(size.ws_col, kLeastWidth);
}

}  // namespace gannet::cli
