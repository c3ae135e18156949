// Arbitrary bytes from fixed seeds give an error, never a crash or an over-read (under AddressSanitizer). The same
// targets run without end in log_fuzzer.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/log/fuzz/fuzz_targets.h"

namespace gannet::log {
namespace fuzz_test {

constexpr int kRounds = 8000;  // per kind and target; less than a second in total

class FuzzTest : public testing::TestWithParam<FuzzTarget> {
 protected:
  Random random_{20 + static_cast<uint64_t>(GetParam())};

  std::byte AnyByte() { return static_cast<std::byte>(random_.Below(256)); }

  // Lengths that are small, or at the edges of blocks.
  size_t AnyLength() {
    const uint64_t blocks = random_.Below(4) * 4096;
    return random_.Below(2) == 0 ? random_.Below(200) : blocks + random_.Below(3);
  }

  // Uses numbers at the edges of what is allowed, where mistakes are likely.
  void Mutate(std::vector<std::byte>* bytes) {
    if (bytes->empty()) return;
    // The damage is mostly near the beginning of a block, where the structure is.
    size_t at = random_.Below(bytes->size());
    if (random_.Below(2) == 0) at = std::min(at / 4096 * 4096 + random_.Below(160), bytes->size() - 1);
    constexpr std::array<uint8_t, 8> kEdges = {0, 1, 0x7f, 0x80, 0xff, 8, 24, 64};
    switch (random_.Below(4)) {
      case 0:
        (*bytes)[at] ^= static_cast<std::byte>(1 << random_.Below(8));
        break;
      case 1:
        (*bytes)[at] = static_cast<std::byte>(kEdges[random_.Below(kEdges.size())]);
        break;
      case 2:
        std::fill(bytes->begin() + static_cast<ptrdiff_t>(at),
                  bytes->begin() + static_cast<ptrdiff_t>(std::min(at + 4, bytes->size())), AnyByte());
        break;
      default:
        if (random_.Below(8) == 0) bytes->resize(at);
        break;
    }
  }
};

TEST_P(FuzzTest, RandomBytes) {
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::byte> bytes(AnyLength());
    for (std::byte& byte : bytes) byte = AnyByte();
    RunFuzzTarget(GetParam(), round % 2 == 0, bytes);
  }
}

TEST_P(FuzzTest, MutatedValidInput) {
  const std::vector<std::byte> seed = FuzzSeed(GetParam());
  ASSERT_FALSE(seed.empty());
  RunFuzzTarget(GetParam(), false, seed);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::byte> bytes = seed;
    for (uint64_t i = 0; i <= random_.Below(6); ++i) Mutate(&bytes);
    RunFuzzTarget(GetParam(), round % 4 != 0, bytes);
  }
}

std::string NameOf(const testing::TestParamInfo<FuzzTarget>& target) {
  constexpr std::array<const char*, 4> kNames = {"Transactions", "Segment", "Checkpoint", "Manifest"};
  return kNames[static_cast<size_t>(target.param)];
}

INSTANTIATE_TEST_SUITE_P(All, FuzzTest,
                         testing::Values(FuzzTarget::kTransactions, FuzzTarget::kSegment, FuzzTarget::kCheckpoint,
                                         FuzzTarget::kManifest),
                         NameOf);

}  // namespace fuzz_test
}  // namespace gannet::log
