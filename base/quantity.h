// Durations, sizes and large numbers as people write and read them: in flags, in configuration files, in messages.
// Every error is one clause that says what the value must be, for instance "must be a size such as 512M or 8G".
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"

namespace gannet {

// A duration with its unit, in [low, high] and finite. InvalidArgument otherwise.
StatusOr<absl::Duration> ParseDuration(const std::string& text, absl::Duration low,
                                       absl::Duration high = absl::InfiniteDuration());

// Bytes, at least 1: a whole number, optionally followed by K, M, G or T (powers of 1024). InvalidArgument otherwise.
StatusOr<uint64_t> ParseSize(const std::string& text);

// The text of a size for reports and messages: "1.5 GiB".
std::string FormatBytes(uint64_t bytes);

// The text of a number for reports and messages: "1,234,567".
std::string WithCommas(uint64_t number);

// The text of a count for reports and messages: "1 server", "1,234 servers".
std::string Count(uint64_t number, std::string_view what);

}  // namespace gannet
