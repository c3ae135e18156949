// Values that can be verified: a function of the key and of a number that the writer chooses. So a reader detects
// another key's value, and a mixture of two values.
//
//   bytes 0-3   the number        bytes 4-7   a check sum of key and number        the rest: a function of bytes 0-7
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/random.h"

namespace gannet::ycsb {

inline constexpr size_t kMinValueBytes = 8;
inline constexpr size_t kMaxValueBytes = 1024;

namespace internal {
inline uint64_t FirstWord(uint64_t key, uint32_t number) {
  return (Mix64(key + Mix64(number + 1)) >> 32 << 32) | number;
}
// Calls `visit` with the offset, the size and the word of every piece after the first word.
template <class Visit>
void VisitRest(uint64_t first, size_t bytes, Visit visit) {
  for (size_t at = sizeof first; at < bytes; at += sizeof first) {
    const uint64_t word = Mix64(first + at);
    visit(at, bytes - at < sizeof word ? bytes - at : sizeof word, word);
  }
}
}  // namespace internal

// `value` has at least kMinValueBytes.
inline void MakeValue(uint64_t key, uint32_t number, std::span<std::byte> value) {
  const uint64_t first = internal::FirstWord(key, number);
  std::memcpy(value.data(), &first, sizeof first);
  internal::VisitRest(first, value.size(),
                      [&](size_t at, size_t bytes, uint64_t word) { std::memcpy(value.data() + at, &word, bytes); });
}

// Numbers of values that lie in the entries of an index are odd, because no such value may be 0 (IndexTraits).
inline uint32_t NumberFor(bool in_entry, uint32_t number) {
  return in_entry ? number | 1 : number;
}

inline bool IsValueOf(uint64_t key, std::span<const std::byte> value) {
  uint64_t first = 0;
  std::memcpy(&first, value.data(), sizeof first);
  bool right = first == internal::FirstWord(key, static_cast<uint32_t>(first));
  internal::VisitRest(first, value.size(), [&](size_t at, size_t bytes, uint64_t word) {
    right &= std::memcmp(value.data() + at, &word, bytes) == 0;
  });
  return right;
}

}  // namespace gannet::ycsb
