// Large numbers in groups of three digits.
#pragma once

#include <cstdint>
#include <string>

namespace gannet {

// "1234567" -> "1,234,567".
inline std::string WithCommas(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t from_end = 3; from_end < digits.size(); from_end += 4) digits.insert(digits.size() - from_end, 1, ',');
  return digits;
}

}  // namespace gannet
