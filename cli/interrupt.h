// Ctrl-C: the first one asks a command to stop early and to say what is left; a second one ends the program at once.
#pragma once

#include <atomic>
#include <cstdint>

namespace gannet::cli {

// SIGINT and SIGTERM are watched while one of these exists. One at a time: a command makes it before it begins to work,
// and gives requested() as the `stop` of all that it calls.
class InterruptGuard {
 public:
  enum class Second : uint8_t {
    kEnds,              // a second SIGINT or SIGTERM ends the program
    kSigtermIsIgnored,  // a supervisor may send SIGTERM to the process and to its group; a second SIGINT still ends it
    kIsNoted,           // for a command that has something to remove first: requested_again(). A third one ends it
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
  // What the program exits with after signal().
  static int exit_code();
};

}  // namespace gannet::cli
