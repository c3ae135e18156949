// Ctrl-C: the first one asks the run to stop early and report; a second one ends the program at once.
#pragma once

#include <atomic>

namespace gannet::cli {

// SIGINT and SIGTERM are watched while one of these exists. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // True once a signal has arrived.
  static const std::atomic<bool>& requested();
  // The signal, or 0.
  static int signal();
};

}  // namespace gannet::cli
