// The random values of TPC-C (clauses 2.1.5, 2.1.6, 4.3.2). Every function draws from the given generator.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/random.h"
#include "tpcc/schema/rows.h"
#include "tpcc/schema/text.h"

namespace gannet::tpcc {

// NURand(A, x, y) with the constants C of a population or a run.
class NonUniform {
 public:
  // The constants of a population, determined by the seed.
  static NonUniform ForLoad(uint64_t seed);
  // The constants of a run over a population. The constant for last names differs from the population's by 65 to 119,
  // but not by 96 or 112 (clause 2.1.6.1).
  static NonUniform ForRun(uint64_t seed, const NonUniform& load);

  // The number of a last name, in [0, names).
  uint32_t LastName(Random& random, uint32_t names) const { return Draw(random, 255, c_last_, 0, names - 1); }
  // A customer number in [1, customers].
  uint32_t Customer(Random& random, uint32_t customers) const { return Draw(random, 1023, c_customer_, 1, customers); }
  // An item number in [1, items].
  uint32_t Item(Random& random, uint32_t items) const { return Draw(random, 8191, c_item_, 1, items); }

  uint32_t c_last() const { return c_last_; }

 private:
  static uint32_t Draw(Random& random, uint32_t a, uint32_t c, uint32_t x, uint32_t y) {
    const uint64_t either = random.Below(uint64_t{a} + 1) | static_cast<uint64_t>(random.Between(x, y));
    return static_cast<uint32_t>((either + c) % (y - x + 1)) + x;
  }

  uint32_t c_last_ = 0;
  uint32_t c_customer_ = 0;
  uint32_t c_item_ = 0;
};

// The last name with a number in [0, 999] (clause 4.3.2.3).
Text<16> LastName(uint32_t number);

// Fills all of `out`: with characters (letters of both cases, digits and two more), or with digits.
void FillLetters(Random& random, std::span<char> out);
void FillDigits(Random& random, std::span<char> out);

// An a-string of random length in [min, max] (clause 4.3.2.2); the rest is zeros.
template <size_t N>
void RandomText(Random& random, size_t min, size_t max, Text<N>* text) {
  const size_t size = static_cast<size_t>(random.Between(static_cast<int64_t>(min), static_cast<int64_t>(max)));
  FillLetters(random, {text->bytes, size});
  std::memset(text->bytes + size, 0, N - size);
}

inline constexpr std::string_view kOriginal = "ORIGINAL";
// I_DATA and S_DATA: 26 to 50 characters; one in ten has "ORIGINAL" somewhere (clause 4.3.3.1).
void RandomData(Random& random, Text<50>* data);
// True if `data` contains "ORIGINAL".
bool IsOriginal(const Text<50>& data);

// Four digits and "11111" (clause 4.3.2.7).
Text<9> RandomZip(Random& random);
Address RandomAddress(Random& random);

}  // namespace gannet::tpcc
