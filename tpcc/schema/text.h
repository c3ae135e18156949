// Text<N>: characters of a fixed-width column, padded with zeros. Packed and trivially copyable, so rows may hold it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace gannet::tpcc {

template <size_t N>
struct Text {
  char bytes[N];

  // Truncates text that does not fit.
  void Assign(std::string_view text) {
    const size_t size = std::min(text.size(), N);
    std::memcpy(bytes, text.data(), size);
    std::memset(bytes + size, 0, N - size);
  }
  std::string_view view() const { return {bytes, strnlen(bytes, N)}; }

  friend bool operator==(const Text& a, const Text& b) { return std::memcmp(a.bytes, b.bytes, N) == 0; }
  friend bool operator<(const Text& a, const Text& b) { return std::memcmp(a.bytes, b.bytes, N) < 0; }
};

}  // namespace gannet::tpcc
