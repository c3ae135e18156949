#include "cli/common/line_input.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/stop.h"

namespace gannet::cli {

bool AwaitInput() {
  constexpr int kLookForStopMillis = 100;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&input, 1, kLookForStopMillis) > 0;
}

StatusOr<bool> LineInput::Next(std::string* line) {
  for (;;) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      line->assign(read_, 0, end);
      read_.erase(0, end + 1);
      if (!line->empty() && line->back() == '\r') line->pop_back();
      return true;
    }
    const StatusOr<bool> more = ReadMore();
    if (!more.ok()) return more.status();
    if (*more) continue;
    line->assign(read_);
    read_.clear();
    return !line->empty();
  }
}

StatusOr<bool> LineInput::ReadMore() {
  while (!ended_) {
    GANNET_RETURN_IF_ERROR(CheckStop(stop_, "it waited for a command"));
    if (!AwaitInput()) continue;
    std::array<char, 4096> bytes{};
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::UnavailableError(absl::StrCat("cannot read standard input: ", std::strerror(errno)));
    ended_ = got == 0;
    read_.append(bytes.data(), static_cast<size_t>(got));
    if (!ended_) return true;
  }
  return false;
}

}  // namespace gannet::cli
