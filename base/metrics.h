// Metrics: numbers with names and labels, as plain data, and their text for Prometheus. txn/metrics.h makes those of a
// database, cluster/metrics_endpoint.h serves those of a server.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/duration_histogram.h"

namespace gannet {

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
