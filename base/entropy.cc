#include "base/entropy.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"

namespace gannet {
namespace {

constinit thread_local SimulatedEntropy* simulated = nullptr;

}  // namespace

SimulatedEntropy::SimulatedEntropy() : before_(simulated) {
  simulated = this;
}

SimulatedEntropy::~SimulatedEntropy() {
  GANNET_CHECK(simulated == this, "simulated entropy ends before a later one of its thread");
  simulated = before_;
}

uint64_t EntropyBits() {
  if (simulated != nullptr) return simulated->Draw();
  uint64_t bits = 0;
  ssize_t got = -1;
  do {
    got = getrandom(&bits, sizeof bits, 0);
  } while (got < 0 && errno == EINTR);
  GANNET_CHECK(got == sizeof bits, "the system has no random bytes: errno=%d", errno);
  return bits;
}

}  // namespace gannet
