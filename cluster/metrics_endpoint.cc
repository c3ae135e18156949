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

namespace gannet::cluster {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Label = ClientMetric::Label;

// The layer that owns a method, as docs/cluster.md lists them. The numbers are those of rdma/fabric.h.
std::string LayerOf(rdma::MethodId method) {
  if (method >= 1024 && method < 1280) return "cluster";
  return method < 64 ? "rdma" : method < 256 ? "index" : method < 512 ? "txn" : "program";
}

class Family {
 public:
  Family(std::string name, std::string help, MetricType type) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }
  void Add(double value, std::vector<Label> labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    family_.metric.push_back(std::move(metric));
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

class Collector final : public prometheus::Collectable {
 public:
  Collector(const BareServer& server, MetricsSources sources, const CallMeter& meter)
      : config_(server.config()), server_(server), sources_(std::move(sources)), meter_(meter) {}

  std::vector<MetricFamily> Collect() const override {
    std::vector<MetricFamily> families;
    AddNodes(&families);
    AddMemory(&families);
    AddCalls(&families);
    AddLoad(&families);
    if (sources_.paths) AddPaths(sources_.paths(), &families);
    if (server_.verbs() != nullptr) AddVerbs(*server_.verbs(), &families);
    return families;
  }

 private:
  void AddNodes(std::vector<MetricFamily>* families) const {
    Family servers("gannet_server_alive", "1 if the server is attached.", MetricType::Gauge);
    Family clients("gannet_clients", "Clients that are attached.", MetricType::Gauge);
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
    families->push_back(servers.Take());
    families->push_back(clients.Take());
  }

  void AddMemory(std::vector<MetricFamily>* families) const {
    const rdma::SlabStatistics memory = sources_.memory();
    Family bytes("gannet_registered_memory_bytes",
                 "Registered memory of this server: capacity, taken, and the part of taken that is free for reuse.",
                 MetricType::Gauge);
    bytes.Add(static_cast<double>(memory.capacity_bytes), {{"kind", "capacity"}});
    bytes.Add(static_cast<double>(memory.carved_bytes), {{"kind", "taken"}});
    bytes.Add(static_cast<double>(memory.free_bytes), {{"kind", "free"}});
    families->push_back(bytes.Take());
  }

  void AddCalls(std::vector<MetricFamily>* families) const {
    Family calls("gannet_calls_total", "Calls that this server answered.", MetricType::Counter);
    Family errors("gannet_call_errors_total", "Calls that failed.", MetricType::Counter);
    Family seconds("gannet_call_seconds_total", "Time spent in calls.", MetricType::Counter);
    Family bytes("gannet_call_bytes_total", "Bytes of requests and responses.", MetricType::Counter);
    meter_.ForEach([&](rdma::MethodId method, const CallMeter::Counters& counters) {
      const auto load = [](const std::atomic<uint64_t>& counter) {
        return static_cast<double>(counter.load(std::memory_order_relaxed));
      };
      const std::vector<Label> labels = {{"layer", LayerOf(method)}, {"method", absl::StrCat(method)}};
      calls.Add(load(counters.calls), labels);
      errors.Add(load(counters.errors), labels);
      seconds.Add(load(counters.nanos) * 1e-9, labels);
      for (const bool in : {true, false}) {
        std::vector<Label> directed = labels;
        directed.push_back({"direction", in ? "in" : "out"});
        bytes.Add(load(in ? counters.request_bytes : counters.response_bytes), std::move(directed));
      }
    });
    for (Family* family : {&calls, &errors, &seconds, &bytes}) families->push_back(family->Take());
  }

  void AddLoad(std::vector<MetricFamily>* families) const {
    const rdma::NodeLoad load = sources_.load();
    if (!load.known()) return;
    Family threads("gannet_call_threads_busy_ratio",
                   "Share of the last milliseconds in which the threads that answer calls were busy, as announced.",
                   MetricType::Gauge);
    threads.Add(load.server_share());
    families->push_back(threads.Take());
    if (load.link_megabytes_per_second > 0) {
      Family link("gannet_link_busy_ratio", "The same for the link, in its busier direction.", MetricType::Gauge);
      link.Add(load.link_share());
      families->push_back(link.Take());
    }
    if (load.verb_picos > 0) {
      Family engine("gannet_nic_engine_busy_ratio", "The same for the NIC's engine that serves the verbs of others.",
                    MetricType::Gauge);
      engine.Add(load.engine_share());
      families->push_back(engine.Take());
    }
  }

  static void AddPaths(const std::vector<txn::TablePaths>& paths, std::vector<MetricFamily>* families) {
    if (paths.empty()) return;
    Family accesses("gannet_remote_accesses_total", "Accesses to records of other nodes, by the path that they took.",
                    MetricType::Counter);
    Family compared("gannet_remote_accesses_compared_total", "Accesses for which both paths were compared.",
                    MetricType::Counter);
    Family estimates("gannet_remote_access_estimated_seconds_total", "What these were estimated to take on each path.",
                     MetricType::Counter);
    Family relief("gannet_remote_accesses_backed_off_total",
                  "Accesses that were not made by a call because the owner was busy.", MetricType::Counter);
    Family contrary("gannet_remote_accesses_contrary_total", "Accesses on the dearer path, to measure it.",
                    MetricType::Counter);
    Family cost("gannet_remote_access_contrary_seconds",
                "What these took longer than the cheaper path was estimated to take; may fall.", MetricType::Gauge);
    for (const txn::TablePaths& each : paths) {
      const txn::PathStatistics& p = each.paths;
      const std::vector<Label> labels = {{"table", each.table},
                                         {"kind", txn::kAccessKindNames[static_cast<size_t>(each.kind)]}};
      const auto add_by_path = [&labels](Family* family, double one_sided, double call) {
        for (const bool by_call : {false, true}) {
          std::vector<Label> with_path = labels;
          with_path.push_back({"path", by_call ? "call" : "one_sided"});
          family->Add(by_call ? call : one_sided, std::move(with_path));
        }
      };
      add_by_path(&accesses, static_cast<double>(p.one_sided), static_cast<double>(p.calls));
      if (p.estimated == 0) continue;
      compared.Add(static_cast<double>(p.estimated), labels);
      add_by_path(&estimates, p.one_sided_nanos * 1e-9, p.call_nanos * 1e-9);
      relief.Add(static_cast<double>(p.backed_off), labels);
      contrary.Add(static_cast<double>(p.contrary), labels);
      cost.Add(p.contrary_nanos * 1e-9, labels);
    }
    for (Family* family : {&accesses, &compared, &estimates, &relief, &contrary, &cost}) {
      families->push_back(family->Take());
    }
  }

  static void AddVerbs(const rdma::VerbsFabric& fabric, std::vector<MetricFamily>* families) {
    const rdma::VerbsStatistics now = fabric.statistics();
    const auto add = [&](const char* name, const char* help, MetricType type, uint64_t value) {
      Family family(name, help, type);
      family.Add(static_cast<double>(value), {});
      families->push_back(family.Take());
    };
    add("gannet_queue_pairs", "Queue pairs that other processes have to this server.", MetricType::Gauge,
        now.queue_pairs_served);
    add("gannet_queue_pairs_cut_total", "Queue pairs that broke, or whose peers broke the rules.", MetricType::Counter,
        now.queue_pairs_cut);
    add("gannet_refused_connections_total", "Connections to the control port that were turned away.",
        MetricType::Counter, now.refused);
    add("gannet_half_open_connections", "Connections to the control port that have not proved who they are.",
        MetricType::Gauge, now.half_open);
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
