// Numbers in the bytes of a file. Gannet runs on x86-64 only, so a number in memory is already little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace gannet::log {

static_assert(std::endian::native == std::endian::little);

template <typename Number>
requires std::is_integral_v<Number> Number LoadLittle(const std::byte* from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

template <typename Number>
requires std::is_integral_v<Number>
void StoreLittle(std::byte* to, Number number) {
  std::memcpy(to, &number, sizeof number);
}

inline bool AllZero(std::span<const std::byte> bytes) {
  while (bytes.size() >= 8) {
    if (LoadLittle<uint64_t>(bytes.data()) != 0) return false;
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes) {
    if (byte != std::byte{0}) return false;
  }
  return true;
}

}  // namespace gannet::log
