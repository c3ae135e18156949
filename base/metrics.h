// Metrics: numbers with names and labels, as plain data, and their text for Prometheus. txn/metrics.h makes those of a
// database, cluster/metrics_endpoint.h serves those of a server.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace gannet {

constexpr double SecondsOf(uint64_t nanos) {
  return static_cast<double>(nanos) * 1e-9;
}

// How long things took, counted by powers of two of nanoseconds (duration_histogram.h counts).
struct DurationCounts {
  static constexpr size_t kBounds = 27;
  // The upper bound of bucket `i`, which is inclusive: 256 ns, 512 ns, ..., 17.2 s. The last bucket has none.
  static constexpr uint64_t BoundOf(size_t i) { return uint64_t{256} << i; }

  std::array<uint64_t, kBounds + 1> buckets{};
  uint64_t nanos = 0;  // sum of all durations

  uint64_t count() const { return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0}); }
  static size_t BucketOf(uint64_t nanos) {
    constexpr int kFirst = std::bit_width(BoundOf(0) - 1);
    const int width = nanos == 0 ? 0 : std::bit_width(nanos - 1);
    return std::min(static_cast<size_t>(std::max(width - kFirst, 0)), kBounds);
  }
  void Record(uint64_t duration_nanos) {
    ++buckets[BucketOf(duration_nanos)];
    nanos += duration_nanos;
  }
  DurationCounts& operator+=(const DurationCounts& other) {
    for (size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
    nanos += other.nanos;
    return *this;
  }
};

enum class MetricType : uint8_t {
  kCounter,  // never falls while the process runs
  kGauge,
  kHistogram,  // of durations
};

using MetricLabels = std::vector<std::pair<std::string, std::string>>;  // names and values

struct Metric {
  MetricLabels labels = {};
  double value = 0;
  DurationCounts durations = {};  // of a histogram, in place of `value`
};

// All metrics of one name.
struct MetricFamily {
  std::string name;  // letters, digits and '_'
  std::string help;  // one sentence
  MetricType type = MetricType::kGauge;
  std::vector<Metric> metrics = {};

  void Add(double value, MetricLabels labels = {}) { metrics.push_back({std::move(labels), value}); }
  void AddDurations(const DurationCounts& durations) { metrics.push_back({.durations = durations}); }
};

// Prometheus's text format, version 0.0.4 (Content-Type: text/plain; version=0.0.4).
std::string MetricsToText(const std::vector<MetricFamily>& families);

}  // namespace gannet
