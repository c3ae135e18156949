// What is given arbitrary bytes: by fuzz_test.cc with seeds within CTest, by log_fuzzer.cc without end.
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

// Reads `bytes`; stops the program if anything is broken that must hold whatever they are. `repair`: first gives them
// magics and checksums that are right, without which they would hardly get past the first check.
void RunFuzzTarget(FuzzTarget target, bool repair, std::span<const std::byte> bytes);

// A valid input, to begin with.
std::vector<std::byte> FuzzSeed(FuzzTarget target);

}  // namespace gannet::log
