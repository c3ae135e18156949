// Waits while another thread holds a short lock: relaxes, and then yields in case that thread has lost its CPU.
#pragma once

#include "base/cache_line.h"
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

}  // namespace gannet::index
