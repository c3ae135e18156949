#include "base/keyed_hash.h"

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "rdma/sim/simulation.h"

namespace gannet {
namespace keyed_hash_test {

KeyedHash::Seed SeedOf(uint64_t number) {
  Random random(number);
  return {random(), random(), random(), random()};
}

// Chi-squared over 256 buckets of 256 * 64 hashes: 255 on average, standard deviation 23.
double ChiSquared(const std::function<uint64_t(uint64_t i)>& bucket) {
  constexpr uint64_t kPerBucket = 64;
  std::array<uint64_t, 256> counts{};
  for (uint64_t i = 0; i < counts.size() * kPerBucket; ++i) ++counts[bucket(i) & 255];
  double sum = 0;
  for (const uint64_t count : counts) {
    const double off = static_cast<double>(count) - kPerBucket;
    sum += off * off / kPerBucket;
  }
  return sum;
}
constexpr double kMostChiSquared = 255 + 8 * 23;

// Shifts to the parts of a hash that tables use: the lowest bits, the bits of a tag, the highest bits.
constexpr std::array<int, 6> kShifts = {0, 8, 16, 24, 32, 56};

TEST(KeyedHashTest, NumbersWithAPatternAreSpreadEvenly) {
  const std::vector<std::function<uint64_t(uint64_t)>> patterns = {
      [](uint64_t i) { return i; },
      [](uint64_t i) { return i << 8; },
      [](uint64_t i) { return i << 20; },
      [](uint64_t i) { return i << 32; },
      [](uint64_t i) { return i << 50; },
      [](uint64_t i) { return i << 32 | i; },
      [](uint64_t i) { return ~i; },
      [](uint64_t i) { return (i / 10 << 32) + i % 10; },
      [](uint64_t i) { return i * 1'000'000'007; },
      [](uint64_t i) { return std::rotr(i, 7); },
  };
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const KeyedHash hash(SeedOf(seed));
    for (size_t p = 0; p < patterns.size(); ++p) {
      for (const int shift : kShifts) {
        EXPECT_LT(ChiSquared([&](uint64_t i) { return hash(patterns[p](i)) >> shift; }), kMostChiSquared)
            << "seed " << seed << ", pattern " << p << ", bit " << shift;
      }
    }
  }
}

TEST(KeyedHashTest, BytesAreSpreadEvenly) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const KeyedHash hash(SeedOf(seed));
    for (size_t size = 2; size <= 64; size += 3) {
      for (const size_t at : {size_t{0}, size - 2}) {
        const auto key = [&](uint64_t i) {
          std::string bytes(size, 'x');
          bytes[at] = static_cast<char>(i);
          bytes[at + 1] = static_cast<char>(i >> 8);
          return bytes;
        };
        for (const int shift : kShifts) {
          EXPECT_LT(ChiSquared([&](uint64_t i) { return hash(key(i)) >> shift; }), kMostChiSquared)
              << "seed " << seed << ", " << size << " bytes, bit " << shift;
        }
      }
    }
  }
}

// Two keys chosen without knowledge of the seed share one of 256 buckets for one seed in 256, for any difference of the
// keys.
TEST(KeyedHashTest, NoDifferenceMakesACollisionProbable) {
  constexpr uint64_t kSeeds = 256 * 64;
  std::vector<KeyedHash> hashes;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) hashes.emplace_back(SeedOf(seed));
  std::vector<uint64_t> differences = {
      1,          uint64_t{1} << 32,  uint64_t{1} << 63, uint64_t{1} << 31, uint64_t{1} << 63 | uint64_t{1} << 31,
      0xffffffff, 0xffffffff00000000, ~uint64_t{0},      0xbf58476d1ce4e5b9};
  for (int bit = 2; bit < 62; bit += 5) differences.push_back(uint64_t{1} << bit);
  for (const uint64_t difference : differences) {
    for (const int shift : {0, 16, 56}) {
      uint64_t numbers = 0;
      uint64_t bytes = 0;
      for (const KeyedHash& hash : hashes) {
        const uint64_t kKey = 42;
        const auto text = [](const uint64_t& number) {
          return std::string_view(reinterpret_cast<const char*>(&number), sizeof number);
        };
        const uint64_t other = kKey ^ difference;
        numbers += ((hash(kKey) ^ hash(other)) >> shift & 255) == 0;
        bytes += ((hash(text(kKey)) ^ hash(text(other))) >> shift & 255) == 0;
      }
      EXPECT_LT(numbers, 64u + 8 * 8) << std::hex << difference << " at " << shift;
      EXPECT_LT(bytes, 64u + 8 * 8) << std::hex << difference << " at " << shift;
    }
  }
}

TEST(KeyedHashTest, EverySeedIsAnotherFunction) {
  const KeyedHash::Seed seed = KeyedHash::DrawSeed();
  EXPECT_NE(seed, KeyedHash::DrawSeed());
  const KeyedHash hash(seed);
  const KeyedHash same(seed);
  for (size_t i = 0; i < seed.size(); ++i) {
    KeyedHash::Seed changed = seed;
    changed[i] ^= 1;
    const KeyedHash other(changed);
    EXPECT_EQ(hash(uint64_t{5}), same(uint64_t{5}));
    EXPECT_EQ(hash("a key of twenty bytes"), same("a key of twenty bytes"));
    EXPECT_NE(hash(uint64_t{5}), other(uint64_t{5}));
    EXPECT_NE(hash("a key of twenty bytes"), other("a key of twenty bytes"));
  }
}

TEST(KeyedHashTest, InASimulationTheSeedIsTheSimulations) {
  const auto draw = [](uint64_t seed) {
    rdma::sim::Simulation simulation({.seed = seed});
    const KeyedHash::Seed first = KeyedHash::DrawSeed();
    EXPECT_NE(first, KeyedHash::DrawSeed());
    return first;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

}  // namespace keyed_hash_test
}  // namespace gannet
