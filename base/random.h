// A small, fast, seedable generator. Callers always pass it as an argument, so that a test or a simulation can own it.
#pragma once

#include <cstdint>
#include <limits>

namespace gannet {

// SplitMix64: one multiplication chain per number; also the seeder of Random.
constexpr uint64_t SplitMix64(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// A good 64-bit mixer (the finaliser of SplitMix64): a bijection, so distinct inputs stay distinct.
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// xoshiro256** 1.0 (Blackman, Vigna). Satisfies UniformRandomBitGenerator. Not thread-safe.
class Random {
 public:
  using result_type = uint64_t;

  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = SplitMix64(seed);
  }

  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return std::numeric_limits<uint64_t>::max(); }

  uint64_t operator()() {
    const uint64_t result = Rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }

  // A number uniform in [0, bound), bound > 0 (Lemire's multiplication; the bias is below 2^-32 for bounds under 2^32).
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>((*this)()) * bound) >> 64);
  }

  // A number uniform in [low, high], both ends included.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }

  // A number uniform in [0, 1).
  double Unit() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  // True once in `n` on average.
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  static constexpr uint64_t Rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

  uint64_t state_[4];
};

}  // namespace gannet
