// Lines of standard input, whose reader notices a signal while it waits.
#pragma once

#include <atomic>
#include <string>

#include "base/status.h"

namespace gannet::cli {

// True if standard input can be read. Waits for it at most a tenth of a second: another thread may take a signal, and
// then nothing interrupts this one.
bool AwaitInput();

class LineInput {
 public:
  // `stop` must outlive it.
  explicit LineInput(const std::atomic<bool>* stop) : stop_(stop) {}

  // Reads the next line, without its end. False: there is none. Cancelled soon after *stop has become true. Other
  // errors say why it cannot be read.
  StatusOr<bool> Next(std::string* line);

 private:
  StatusOr<bool> ReadMore();

  const std::atomic<bool>* const stop_;
  std::string read_;  // and not returned yet
  bool ended_ = false;
};

}  // namespace gannet::cli
