// Bits that nobody can guess or draw twice: for identities, and for keys against chosen input.
#pragma once

#include <cstdint>

namespace gannet {

// From the kernel; within a simulation, from its seed, so that equal seeds give equal runs.
uint64_t EntropyBits();

// Takes the kernel's place for its thread, for as long as it lives. Of several in one thread the latest counts; it ends
// first.
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
