// Readers of arbitrary bytes, used by fuzz_test.cc with fixed seeds in CTest, and by log_fuzzer.cc without end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gannet::log {

enum class FuzzTarget : uint8_t {
  kTransactions,  // a batch's body
  kSegment,       // a segment's file, read as a log, in salvage too
  kCheckpoint,    // a checkpoint's file, in salvage too
  kManifest,      // a manifest's text
  kCount,
};

// Reads `bytes`; stops the program if an invariant that holds for all inputs is broken. `repair`: first sets valid
// magics and checksums, without which an input rarely passes the first check.
void RunFuzzTarget(FuzzTarget target, bool repair, std::span<const std::byte> bytes);

// A valid input to start from.
std::vector<std::byte> FuzzSeed(FuzzTarget target);

}  // namespace gannet::log
