// Ctrl-C: the first one asks a command to stop early and to report what remains; a second one ends the program at once.
#pragma once

#include <atomic>
#include <cstdint>

namespace gannet::cli {

// While an object of this class exists, SIGINT and SIGTERM are handled. There is one at a time: a command makes it
// before it begins to work, and passes requested() as `stop` to everything that it calls.
class InterruptGuard {
 public:
  enum class Second : uint8_t {
    kEnds,              // a second SIGINT or SIGTERM ends the program
    kSigtermIsIgnored,  // a supervisor may send SIGTERM to the process and to its group; a second SIGINT still ends it
    kIsNoted,           // for a command that must clean up first: requested_again(). A third signal ends the program
  };
  explicit InterruptGuard(Second second = Second::kEnds);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // True once a signal has arrived.
  static const std::atomic<bool>& requested();
  // True once a second one has arrived, with Second::kIsNoted.
  static const std::atomic<bool>& requested_again();
  // The first signal, or 0.
  static int signal();
  // Exit code of the program after signal().
  static int exit_code();
};

}  // namespace gannet::cli
