// Ctrl-C: the first one asks the run to stop early and report; a second one ends the program at once.
#pragma once

#include <atomic>

namespace gannet::cli {

// SIGINT and SIGTERM are watched while one of these exists. One at a time.
class InterruptGuard {
 public:
  // What a second SIGTERM does. A supervisor may send it to the process and to its group, and a server that is about to
  // leave in order should. (A second SIGINT ends the program in any case.)
  enum class SecondSigterm { kEnds, kIsIgnored };
  explicit InterruptGuard(SecondSigterm second = SecondSigterm::kEnds);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // True once a signal has arrived.
  static const std::atomic<bool>& requested();
  // The signal, or 0.
  static int signal();
};

}  // namespace gannet::cli
