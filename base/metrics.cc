#include "base/metrics.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

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

const char* NameOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "";
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

void AppendHistogram(const std::string& name, const DurationCounts& durations, std::string* text) {
  uint64_t count = 0;
  for (size_t i = 0; i < durations.buckets.size(); ++i) {
    count += durations.buckets[i];
    const double bound =
        i < DurationCounts::kBounds ? SecondsOf(DurationCounts::BoundOf(i)) : std::numeric_limits<double>::infinity();
    absl::StrAppend(text, name, "_bucket", ToText({{"le", ToText(bound)}}), " ", count, "\n");
  }
  absl::StrAppend(text, name, "_sum ", ToText(SecondsOf(durations.nanos)), "\n", name, "_count ", count, "\n");
}

}  // namespace

std::string MetricsToText(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) {
    absl::StrAppend(&text, "# HELP ", family.name, " ",
                    absl::StrReplaceAll(family.help, {{"\\", "\\\\"}, {"\n", "\\n"}}), "\n# TYPE ", family.name, " ",
                    NameOf(family.type), "\n");
    for (const Metric& metric : family.metrics) {
      if (family.type == MetricType::kHistogram) {
        AppendHistogram(family.name, metric.durations, &text);
        continue;
      }
      absl::StrAppend(&text, family.name, ToText(metric.labels), " ", ToText(metric.value), "\n");
    }
  }
  return text;
}

}  // namespace gannet
