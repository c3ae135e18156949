// Bits that nobody can guess or draw twice: for identities, and for keys against chosen input.
#pragma once

#include <cstdint>

namespace gannet {

// Of the kernel. In a simulation they are a function of its seed and of the virtual time: two calls at the same moment
// give the same.
uint64_t EntropyBits();

}  // namespace gannet
