// Waits while another thread holds a short lock: relaxes, and then yields in case that thread has lost its CPU.
#pragma once

#include <cstdint>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/thread.h"

namespace gannet::index {

class Backoff {
 public:
  void Pause() {
    if (++pauses_ < 64) {
      CpuRelax();
    } else {
      YieldThread();
    }
  }

 private:
  int pauses_ = 0;
};

// Pauses between attempts, for as long as attempts make sense.
class Patience {
 public:
  explicit Patience(uint64_t nanos) : nanos_(nanos) {}
  // False: it is over.
  bool Pause() {
    const uint64_t now = NowNanos();
    if (until_ == 0) until_ = now + nanos_;
    if (now >= until_) return false;
    backoff_.Pause();
    return true;
  }

 private:
  uint64_t nanos_;
  uint64_t until_ = 0;  // set at the first pause
  Backoff backoff_;
};

}  // namespace gannet::index
