// Unique identity of a process: a process id may be reused after its process has ended, but not together with the start
// time.
#pragma once

#include <cstdint>

namespace gannet::rdma::shm {

struct ProcessIdentity {
  uint64_t pid = 0;
  uint64_t start_time = 0;  // in clock ticks since boot, as /proc tells

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// The identity is constant within a process; a forked child has its own.
ProcessIdentity ThisProcess();

// False once all threads of the process have ended, even if its parent has not reaped it. Needs a common pid namespace.
bool IsRunning(const ProcessIdentity& process);

}  // namespace gannet::rdma::shm
