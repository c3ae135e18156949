// Parsers of flag values, in addition to base/quantity.h. Every error is one clause that says what the value must be,
// for instance "must be a whole number from 1 to 64".
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "base/status.h"
#include "index/registry.h"
#include "txn/database.h"
#include "txn/store/options.h"

namespace gannet::cli {

// InvalidArgument: a flag, or several together, cannot be what they are. The message names them.
template <class... Arguments>
Status Wrong(const absl::FormatSpec<Arguments...>& format, const Arguments&... arguments) {
  return absl::InvalidArgumentError(absl::StrFormat(format, arguments...));
}

// Any non-empty text.
StatusOr<std::string> ParseText(const std::string& text);

// A whole number in [low, high].
StatusOr<int64_t> ParseInteger(const std::string& text, int64_t low, int64_t high);

// Parses a size like ParseSize (base/quantity.h), or 0.
StatusOr<uint64_t> ParseSizeOrZero(const std::string& text);

// A count in [low, high]: a number, optionally with K, M or G (powers of 1000).
StatusOr<uint64_t> ParseCount(const std::string& text, uint64_t low, uint64_t high);

// Index of the text in `names`.
StatusOr<size_t> ParseChoice(const std::string& text, std::span<const std::string_view> names);

// The name of an index kind that takes any key, as YCSB needs it: of one that is not spatial.
StatusOr<index::IndexKind> ParseIndexOfAnyKey(const std::string& text);
// The name of an ordered index kind.
StatusOr<index::IndexKind> ParseOrderedIndex(const std::string& text);

// "owner" or "clients".
StatusOr<index::IndexRights> ParseIndexRights(const std::string& text);

// Five whole percentages that sum to 100. `example`: their meaning and form, for errors.
StatusOr<std::array<int, 5>> ParseShares(const std::string& text, const std::string& example);

// Five whole percentages, in the order NewOrder, Payment, OrderStatus, Delivery, StockLevel, that sum to 100.
StatusOr<std::array<int, 5>> ParseMix(const std::string& text);

// "adaptive", "one-sided" or "call".
StatusOr<txn::ReadPathPolicy> ParseReadPath(const std::string& text);
std::string FormatReadPath(txn::ReadPathPolicy policy);

// "none", "async" or "sync".
StatusOr<txn::DurabilityMode> ParseDurability(const std::string& text);
std::string FormatDurability(txn::DurabilityMode mode);

// "file" or "pmem".
StatusOr<txn::LogMedium> ParseMedium(const std::string& text);
std::string FormatMedium(txn::LogMedium medium);

}  // namespace gannet::cli
