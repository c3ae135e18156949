#include "cluster/metrics_endpoint.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/metrics.h"
#include "cluster/join/hello.h"
#include "txn/method_names.h"
#include "txn/metrics.h"

namespace gannet::cluster {
namespace {

using MetricFamilyOfLibrary = prometheus::MetricFamily;

// The layer that owns a method, as docs/cluster.md lists them. The numbers are those of rdma/fabric.h.
std::string LayerOf(rdma::MethodId method) {
  if (method >= 1024 && method < 1280) return "cluster";
  return method < 64 ? "rdma" : method < 256 ? "index" : method < 512 ? "txn" : "program";
}

// The number stands for a method without a name.
std::string NameOf(rdma::MethodId method, const MetricsSources& sources) {
  std::string name(method == kHello ? "hello" : txn::NameOfMethod(method));
  if (name.empty() && sources.program_method) name = sources.program_method(method);
  return name.empty() ? absl::StrCat(method) : name;
}

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric::Histogram Converted(const DurationCounts& durations) {
  prometheus::ClientMetric::Histogram histogram;
  uint64_t count = 0;
  for (size_t i = 0; i < DurationCounts::kBounds; ++i) {
    count += durations.buckets[i];
    histogram.bucket.push_back({.cumulative_count = count, .upper_bound = SecondsOf(DurationCounts::BoundOf(i))});
  }
  histogram.sample_count = durations.count();
  histogram.sample_sum = SecondsOf(durations.nanos);
  return histogram;
}

// The family in the type of Prometheus's library.
MetricFamilyOfLibrary Converted(gannet::MetricFamily family) {
  MetricFamilyOfLibrary converted;
  converted.name = std::move(family.name);
  converted.help = std::move(family.help);
  converted.type = TypeOf(family.type);
  for (Metric& metric : family.metrics) {
    prometheus::ClientMetric& to = converted.metric.emplace_back();
    if (family.type == MetricType::kHistogram) {
      to.histogram = Converted(metric.durations);
    } else {
      (family.type == MetricType::kCounter ? to.counter.value : to.gauge.value) = metric.value;
    }
    for (auto& [name, value] : metric.labels) to.label.push_back({std::move(name), std::move(value)});
  }
  return converted;
}

class Collector final : public prometheus::Collectable {
 public:
  Collector(const BareServer& server, MetricsSources sources, const CallMeter& meter)
      : config_(server.config()), server_(server), sources_(std::move(sources)), meter_(meter) {}

  std::vector<MetricFamilyOfLibrary> Collect() const override {
    std::vector<MetricFamily> families;
    AddNodes(&families);
    txn::AddMemoryMetrics(sources_.memory(), &families);
    AddCalls(&families);
    txn::AddLoadMetrics(sources_.load(), &families);
    if (sources_.transactions) txn::AddTransactionMetrics(sources_.transactions(), &families);
    if (sources_.paths) txn::AddPathMetrics(sources_.paths(), &families);
    if (server_.verbs() != nullptr) AddVerbs(*server_.verbs(), &families);
    std::vector<MetricFamilyOfLibrary> converted;
    for (MetricFamily& family : families) converted.push_back(Converted(std::move(family)));
    return converted;
  }

 private:
  void AddNodes(std::vector<MetricFamily>* families) const {
    MetricFamily servers{.name = "gannet_server_alive", .help = "1 if the server is attached."};
    MetricFamily clients{.name = "gannet_clients", .help = "Clients that are attached."};
    int attached = 0;
    for (int node = 0; node < config_.num_nodes(); ++node) {
      const bool alive = server_.fabric().Alive(static_cast<rdma::NodeId>(node));
      if (node >= config_.num_servers()) {
        attached += alive ? 1 : 0;
      } else {
        servers.Add(alive ? 1 : 0, {{"server", config_.servers[static_cast<size_t>(node)].name}});
      }
    }
    clients.Add(attached);
    families->push_back(std::move(servers));
    families->push_back(std::move(clients));
  }

  void AddCalls(std::vector<MetricFamily>* families) const {
    const auto counter = [](const char* name, const char* help) {
      return MetricFamily{.name = name, .help = help, .type = MetricType::kCounter};
    };
    MetricFamily calls = counter("gannet_calls_total", "Calls that this server answered.");
    MetricFamily errors = counter("gannet_call_errors_total", "Calls that failed.");
    MetricFamily seconds = counter("gannet_call_seconds_total", "Time spent in calls.");
    MetricFamily bytes = counter("gannet_call_bytes_total", "Bytes of requests and responses.");
    meter_.ForEach([&](rdma::MethodId method, const CallMeter::Counters& counters) {
      const auto load = [](const std::atomic<uint64_t>& count) {
        return static_cast<double>(count.load(std::memory_order_relaxed));
      };
      const MetricLabels labels = {{"layer", LayerOf(method)}, {"method", NameOf(method, sources_)}};
      calls.Add(load(counters.calls), labels);
      errors.Add(load(counters.errors), labels);
      seconds.Add(load(counters.nanos) * 1e-9, labels);
      for (const bool in : {true, false}) {
        MetricLabels directed = labels;
        directed.emplace_back("direction", in ? "in" : "out");
        bytes.Add(load(in ? counters.request_bytes : counters.response_bytes), std::move(directed));
      }
    });
    for (MetricFamily* family : {&calls, &errors, &seconds, &bytes}) families->push_back(std::move(*family));
  }

  static void AddVerbs(const rdma::VerbsFabric& fabric, std::vector<MetricFamily>* families) {
    const rdma::VerbsStatistics now = fabric.statistics();
    const auto add = [&](const char* name, const char* help, MetricType type, uint64_t value) {
      MetricFamily family{.name = name, .help = help, .type = type};
      family.Add(static_cast<double>(value));
      families->push_back(std::move(family));
    };
    add("gannet_queue_pairs", "Queue pairs that other processes have to this server.", MetricType::kGauge,
        now.queue_pairs_served);
    add("gannet_queue_pairs_cut_total", "Queue pairs that broke, or whose peers broke the rules.", MetricType::kCounter,
        now.queue_pairs_cut);
    add("gannet_refused_connections_total", "Connections to the control port that were turned away.",
        MetricType::kCounter, now.refused);
    add("gannet_half_open_connections", "Connections to the control port that have not proved who they are.",
        MetricType::kGauge, now.half_open);
  }

  const Config& config_;
  const BareServer& server_;
  const MetricsSources sources_;
  const CallMeter& meter_;
};

class HttpEndpoint final : public MetricsEndpoint {
 public:
  explicit HttpEndpoint(const std::string& address) : exposer_(address, /*num_threads=*/1) {}
  void Show(const BareServer& server, MetricsSources sources, const CallMeter& meter) override {
    collector_ = std::make_shared<Collector>(server, std::move(sources), meter);
    exposer_.RegisterCollectable(collector_);
  }
  int port() const override { return exposer_.GetListeningPorts().front(); }

 private:
  std::shared_ptr<Collector> collector_;  // the exposer keeps a weak pointer
  prometheus::Exposer exposer_;
};

}  // namespace

StatusOr<std::string> ParseMetricsAddress(const std::string& text) {
  const std::string full = absl::StrContains(text, ':') ? text : absl::StrCat("127.0.0.1:", text);
  const size_t colon = full.rfind(':');
  uint32_t port = 0;
  if (colon != 0 && absl::SimpleAtoi(full.substr(colon + 1), &port) && port <= UINT16_MAX &&
      !absl::StrContains(full, ',')) {
    return full;
  }
  return absl::InvalidArgumentError("must be a port, such as 9464, or host:port, such as 0.0.0.0:9464");
}

StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Listen(const std::string& address) {
  try {  // the library reports errors by exceptions
    return std::make_unique<HttpEndpoint>(address);
  } catch (const std::exception&) {  // its text does not give the reason
    return absl::UnavailableError(absl::StrCat(address,
                                               ": cannot listen there; give an address of this machine and "
                                               "a port that no other program uses"));
  }
}

}  // namespace gannet::cluster
