#include "rdma/base/entropy.h"

#include <sys/random.h>

#include <cerrno>

#include "rdma/base/check.h"
#include "rdma/base/random.h"
#include "rdma/base/runtime.h"

namespace gannet {

uint64_t EntropyBits() {
  if (Runtime* runtime = Runtime::Current()) return Mix64(runtime->WallNanos() ^ 0x1d);
  uint64_t bits = 0;
  ssize_t got = -1;
  do {
    got = getrandom(&bits, sizeof bits, 0);
  } while (got < 0 && errno == EINTR);
  GANNET_CHECK(got == sizeof bits, "the system has no random bytes: errno=%d", errno);
  return bits;
}

}  // namespace gannet
