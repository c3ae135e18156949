#include "base/metrics.h"

#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace gannet {
namespace {

// The shortest text that reads back as the same number.
std::string ToText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

std::string ToText(const MetricLabels& labels) {
  if (labels.empty()) return "";
  std::string text;
  for (const auto& [name, value] : labels) {
    absl::StrAppend(&text, text.empty() ? "{" : ",", name, "=\"",
                    absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
  }
  return text + "}";
}

}  // namespace

std::string MetricsToText(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) {
    absl::StrAppend(&text, "# HELP ", family.name, " ",
                    absl::StrReplaceAll(family.help, {{"\\", "\\\\"}, {"\n", "\\n"}}), "\n# TYPE ", family.name,
                    family.type == MetricType::kCounter ? " counter\n" : " gauge\n");
    for (const Metric& metric : family.metrics) {
      absl::StrAppend(&text, family.name, ToText(metric.labels), " ", ToText(metric.value), "\n");
    }
  }
  return text;
}

}  // namespace gannet
