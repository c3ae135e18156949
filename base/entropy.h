// Random bits that cannot be guessed and that do not repeat: for identities, and for hash keys that protect against
// chosen input.
#pragma once

#include <cstdint>

namespace gannet {

// Returns bits from the kernel, or, within a simulation, from its seed, so that equal seeds give equal runs.
uint64_t EntropyBits();

// Replaces the kernel as the source for its thread, as long as it lives. If a thread has several, the latest counts,
// and it must be destroyed first.
class SimulatedEntropy {
 public:
  SimulatedEntropy(const SimulatedEntropy&) = delete;
  SimulatedEntropy& operator=(const SimulatedEntropy&) = delete;
  virtual uint64_t Draw() = 0;

 protected:
  SimulatedEntropy();
  ~SimulatedEntropy();

 private:
  SimulatedEntropy* const before_;
};

}  // namespace gannet
