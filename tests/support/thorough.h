// Tests that could try thousands of places try a part of them in the gate. With GANNET_THOROUGH=1 in the environment,
// as `./dev test --all` sets it, they try all.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace gannet {

inline bool IsThorough() {
  return std::getenv("GANNET_THOROUGH") != nullptr;
}

// The step from one place to the next.
inline uint64_t StepOfPlaces(uint64_t in_the_gate) {
  return IsThorough() ? 1 : in_the_gate;
}

}  // namespace gannet
