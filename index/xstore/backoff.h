// What to do while somebody else holds a short lock: relax, and let him run if he may have lost his CPU.
#pragma once

#include "base/cache_line.h"
#include "base/thread.h"

namespace gannet::index::xstore {

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

}  // namespace gannet::index::xstore
