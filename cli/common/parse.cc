#include "cli/common/parse.h"

#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace gannet::cli {

StatusOr<std::string> ParseText(const std::string& text) {
  if (!text.empty()) return text;
  return absl::InvalidArgumentError("must not be empty; give a value, or leave it out");
}

StatusOr<int64_t> ParseInteger(const std::string& text, int64_t low, int64_t high) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= low && value <= high) return value;
  return absl::InvalidArgumentError(absl::StrFormat("must be a whole number from %d to %d", low, high));
}

StatusOr<uint64_t> ParseSizeOrZero(const std::string& text) {
  if (text == "0") return 0;
  StatusOr<uint64_t> size = ParseSize(text);
  if (size.ok()) return size;
  return absl::InvalidArgumentError(absl::StrFormat("%s, or 0", size.status().message()));
}

StatusOr<uint64_t> ParseCount(const std::string& text, uint64_t low, uint64_t high) {
  static constexpr std::string_view kUnits = "KMG";
  std::string number = text;
  uint64_t unit = 1;
  if (!number.empty()) {
    if (const size_t power = kUnits.find(number.back()); power != std::string_view::npos) {
      for (size_t i = 0; i <= power; ++i) unit *= 1000;
      number.pop_back();
    }
  }
  uint64_t value = 0;
  if (absl::SimpleAtoi(number, &value) && value <= high / unit && value * unit >= low) return value * unit;
  return absl::InvalidArgumentError(
      absl::StrFormat("must be a number from %d to %d, such as 500, 20K or 10M", low, high));
}

StatusOr<size_t> ParseChoice(const std::string& text, std::span<const std::string_view> names) {
  std::string choices;
  for (size_t i = 0; i < names.size(); ++i) {
    if (text == names[i]) return i;
    choices += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + std::string(names[i]);
  }
  return absl::InvalidArgumentError("must be " + choices);
}

namespace {

// The name of a kind whose traits are not `unfit`.
template <class Unfit>
StatusOr<index::IndexKind> ParseIndex(const std::string& text, Unfit unfit) {
  std::vector<std::string_view> names = index::IndexKindNames();
  std::erase_if(names, [unfit](std::string_view name) { return unfit(index::FindIndexKind(name)->traits); });
  const StatusOr<size_t> at = ParseChoice(text, names);
  if (!at.ok()) return at.status();
  return index::IndexKindOf(names[*at]);
}

}  // namespace

StatusOr<index::IndexKind> ParseIndexOfAnyKey(const std::string& text) {
  return ParseIndex(text, [](const index::IndexTraits& traits) { return traits.spatial; });
}

StatusOr<index::IndexKind> ParseOrderedIndex(const std::string& text) {
  return ParseIndex(text, [](const index::IndexTraits& traits) { return !traits.ordered; });
}

StatusOr<index::IndexRights> ParseIndexRights(const std::string& text) {
  using enum index::IndexRights;
  const std::array names = {index::NameOf(kOwnerOnly), index::NameOf(kClients)};
  const StatusOr<size_t> at = ParseChoice(text, names);
  if (!at.ok()) return at.status();
  return index::IndexRightsOf(names[*at]);
}

StatusOr<std::array<int, 5>> ParseShares(const std::string& text, const std::string& example) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  std::array<int, 5> shares{};
  int sum = 0;
  bool understood = parts.size() == shares.size();
  for (size_t i = 0; understood && i < shares.size(); ++i) {
    understood = absl::SimpleAtoi(parts[i], &shares[i]) && shares[i] >= 0 && shares[i] <= 100;
    sum += shares[i];
  }
  if (!understood) return absl::InvalidArgumentError("must be five whole percentages " + example);
  if (sum != 100) return absl::InvalidArgumentError(absl::StrFormat("must sum to 100, but sums to %d", sum));
  return shares;
}

StatusOr<std::array<int, 5>> ParseMix(const std::string& text) {
  return ParseShares(text, "(NewOrder, Payment, OrderStatus, Delivery, StockLevel), such as 45,43,4,4,4");
}

StatusOr<txn::ReadPathPolicy> ParseReadPath(const std::string& text) {
  using enum txn::ReadPathPolicy;
  for (const txn::ReadPathPolicy policy : {kAdaptive, kOneSided, kCall, kOrderedByCall}) {
    if (text == FormatReadPath(policy)) return policy;
  }
  return absl::InvalidArgumentError("must be adaptive, one-sided, call or ordered-by-call");
}

std::string FormatReadPath(txn::ReadPathPolicy policy) {
  switch (policy) {
    case txn::ReadPathPolicy::kAdaptive:
      return "adaptive";
    case txn::ReadPathPolicy::kOneSided:
      return "one-sided";
    case txn::ReadPathPolicy::kCall:
      return "call";
    case txn::ReadPathPolicy::kOrderedByCall:
      return "ordered-by-call";
  }
  return "";
}

StatusOr<txn::DurabilityMode> ParseDurability(const std::string& text) {
  using enum txn::DurabilityMode;
  for (const txn::DurabilityMode mode : {kNone, kAsync, kSync}) {
    if (text == FormatDurability(mode)) return mode;
  }
  return absl::InvalidArgumentError("must be none, async or sync");
}

std::string FormatDurability(txn::DurabilityMode mode) {
  switch (mode) {
    case txn::DurabilityMode::kNone:
      return "none";
    case txn::DurabilityMode::kAsync:
      return "async";
    case txn::DurabilityMode::kSync:
      return "sync";
  }
  return "";
}

StatusOr<txn::LogMedium> ParseMedium(const std::string& text) {
  using enum txn::LogMedium;
  for (const txn::LogMedium medium : {kFile, kPmem}) {
    if (text == FormatMedium(medium)) return medium;
  }
  return absl::InvalidArgumentError("must be file or pmem");
}

std::string FormatMedium(txn::LogMedium medium) {
  return medium == txn::LogMedium::kFile ? "file" : "pmem";
}

}  // namespace gannet::cli
