#include "tpcc/schema/random.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

namespace gannet::tpcc {
namespace {

// 64 characters, so that six random bits choose one; includes those that clause 4.3.2.2 requires.
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
static_assert(kLetters.size() == 64);

constexpr std::array<std::string_view, 10> kSyllables = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                                         "ESE", "ANTI",  "CALLY", "ATION", "EING"};

}  // namespace

NonUniform NonUniform::ForLoad(uint64_t seed) {
  Random random(Mix64(seed));
  NonUniform constants;
  constants.c_last_ = static_cast<uint32_t>(random.Below(256));
  constants.c_customer_ = static_cast<uint32_t>(random.Below(1024));
  constants.c_item_ = static_cast<uint32_t>(random.Below(8192));
  return constants;
}

NonUniform NonUniform::ForRun(uint64_t seed, const NonUniform& load) {
  Random random(Mix64(seed ^ 0x72756e));
  NonUniform constants = load;
  // For any constant of the load, some constant in [0, 255] is far enough away: 119 is less than half of 255.
  int64_t delta;
  do {
    constants.c_last_ = static_cast<uint32_t>(random.Below(256));
    delta = std::abs(static_cast<int64_t>(constants.c_last_) - static_cast<int64_t>(load.c_last_));
  } while (delta < 65 || delta > 119 || delta == 96 || delta == 112);
  return constants;
}

Text<16> LastName(uint32_t number) {
  std::string name(kSyllables[number / 100 % 10]);
  name += kSyllables[number / 10 % 10];
  name += kSyllables[number % 10];
  Text<16> text;
  text.Assign(name);
  return text;
}

void FillLetters(Random& random, std::span<char> out) {
  constexpr size_t kPerDraw = 10;  // characters per draw, of six bits each
  for (size_t i = 0; i < out.size(); i += kPerDraw) {
    uint64_t bits = random() >> 4;
    const size_t end = std::min(out.size(), i + kPerDraw);
    for (size_t j = i; j < end; ++j, bits >>= 6) out[j] = kLetters[bits & 63];
  }
}

void FillDigits(Random& random, std::span<char> out) {
  for (char& digit : out) digit = static_cast<char>('0' + random.Below(10));
}

void RandomData(Random& random, Text<50>* data) {
  RandomText(random, 26, 50, data);
  if (!random.OneIn(10)) return;
  const size_t size = data->view().size();
  std::memcpy(data->bytes + random.Below(size - kOriginal.size() + 1), kOriginal.data(), kOriginal.size());
}

bool IsOriginal(const Text<50>& data) {
  const char* const end = data.bytes + sizeof(data.bytes) - kOriginal.size() + 1;
  for (const char* at = data.bytes; at < end; ++at) {
    at = static_cast<const char*>(std::memchr(at, kOriginal[0], static_cast<size_t>(end - at)));
    if (at == nullptr) return false;
    if (std::memcmp(at, kOriginal.data(), kOriginal.size()) == 0) return true;
  }
  return false;
}

Text<9> RandomZip(Random& random) {
  Text<9> zip;
  FillDigits(random, {zip.bytes, 4});
  std::memset(zip.bytes + 4, '1', 5);
  return zip;
}

Address RandomAddress(Random& random) {
  Address address;
  RandomText(random, 10, 20, &address.street_1);
  RandomText(random, 10, 20, &address.street_2);
  RandomText(random, 10, 20, &address.city);
  RandomText(random, 2, 2, &address.state);
  address.zip = RandomZip(random);
  return address;
}

}  // namespace gannet::tpcc
