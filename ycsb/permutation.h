// A pseudorandom permutation of [0, n): it spreads neighbouring numbers over the whole range. A pure function, so all
// clients have the same one.
#pragma once

#include <bit>
#include <cstdint>

namespace gannet::ycsb {

class Permutation {
 public:
  explicit Permutation(uint64_t n) : n_(n), bits_(n <= 2 ? 1 : std::bit_width(n - 1)) {}

  // Requires `i` < n. Mixes within the next power of two until the result is below n: fewer than two times on average.
  uint64_t operator()(uint64_t i) const {
    do {
      i = Mix(i);
    } while (i >= n_);
    return i;
  }

 private:
  // A bijection of [0, 2^bits), because odd multiplications and shifted exclusive ors are bijections.
  uint64_t Mix(uint64_t i) const {
    const uint64_t mask = (uint64_t{1} << bits_) - 1;
    const int half = (bits_ + 1) / 2;
    for (const uint64_t odd : {0x9e3779b97f4a7c15ull, 0xbf58476d1ce4e5b9ull, 0x94d049bb133111ebull}) {
      i = (i * odd + (odd >> 32)) & mask;
      i ^= i >> half;
    }
    return i;
  }

  uint64_t n_;
  int bits_;
};

}  // namespace gannet::ycsb
