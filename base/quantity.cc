#include "base/quantity.h"

#include <iterator>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace gannet {

StatusOr<absl::Duration> ParseDuration(const std::string& text, absl::Duration low, absl::Duration high) {
  absl::Duration value;
  if (!absl::ParseDuration(text, &value) || value == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError("must be a duration with its unit, such as 500ms, 30s or 2m");
  }
  if (value < low) return absl::InvalidArgumentError("must be at least " + absl::FormatDuration(low));
  if (value > high) return absl::InvalidArgumentError("must be at most " + absl::FormatDuration(high));
  return value;
}

StatusOr<uint64_t> ParseSize(const std::string& text) {
  static constexpr std::string_view kUnits = "KMGT";
  std::string number = text;
  uint64_t unit = 1;
  if (!number.empty()) {
    if (const size_t power = kUnits.find(number.back()); power != std::string_view::npos) {
      unit = uint64_t{1} << (10 * (power + 1));
      number.pop_back();
    }
  }
  uint64_t value = 0;
  if (!absl::SimpleAtoi(number, &value) || value == 0 || value > UINT64_MAX / unit) {
    return absl::InvalidArgumentError("must be a size such as 512M or 8G");
  }
  return value * unit;
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kNames)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? absl::StrFormat("%d B", bytes) : absl::StrFormat("%.1f %s", value, kNames[unit]);
}

std::string WithCommas(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t from_end = 3; from_end < digits.size(); from_end += 4) digits.insert(digits.size() - from_end, 1, ',');
  return digits;
}

std::string Count(uint64_t number, std::string_view what) {
  return absl::StrFormat("%s %s%s", WithCommas(number), what, number == 1 ? "" : "s");
}

}  // namespace gannet
