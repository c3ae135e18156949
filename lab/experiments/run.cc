#include "lab/experiments/run.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/ycsb/cluster.h"
#include "bench/ycsb/result.h"
#include "bench/ycsb/run.h"
#include "lab/scenario/children.h"
#include "nlohmann/json.hpp"

namespace gannet::experiments {
namespace {

// A point of 100M keys takes minutes, and more on a busy machine.
constexpr uint64_t kLimitSeconds = 4 * 3600;

// Points that run on the same loaded cluster. It is loaded once, and their processes are forked after that.
struct Group {
  std::vector<Point*> points;
  std::vector<std::string> names;
};

std::vector<Group> GroupsOf(std::vector<Experiment>* experiments) {
  std::vector<Group> groups;
  for (Experiment& experiment : *experiments) {
    for (Point& point : experiment.points) {
      const auto fits = [&point](const Group& group) {
        const Point& other = *group.points.front();
        if (point.tpcc.has_value() || other.tpcc.has_value()) return point.tpcc.has_value() == other.tpcc.has_value();
        if (point.spatial.has_value() && other.spatial.has_value()) {
          return SpatialRack::SameLoad(*point.spatial, *other.spatial);
        }
        if (point.kind.has_value() && other.kind.has_value())
          return kind_rack::Rack::SameLoad(*point.kind, *other.kind);
        return point.is_ycsb() && other.is_ycsb() && bench::ShareCluster(point.options, other.options);
      };
      auto group = std::find_if(groups.begin(), groups.end(), fits);
      if (group == groups.end()) group = groups.emplace(groups.end());
      group->points.push_back(&point);
      group->names.push_back(absl::StrCat(experiment.id, ", ", point.series, ", ", point.label));
    }
  }
  return groups;
}

// The shared state of the points of one group, and their runs.
class Runs {
 public:
  explicit Runs(const RunExperimentsOptions& options) : options_(options) {}

  // Loads the cluster, unless the group has a single point (or each point loads its own).
  Status Prepare(const Group& group) {
    const Point& first = *group.points.front();
    if (first.tpcc.has_value() || group.points.size() == 1) return absl::OkStatus();
    if (first.spatial.has_value()) return Load(*first.spatial, &spatial_);
    if (first.kind.has_value()) return Load(*first.kind, &kind_);
    prepared_.options = first.options;
    auto cluster = bench::PrepareYcsb(options_.ycsb_progress, options_.stop, &prepared_);
    if (!cluster.ok()) return cluster.status();
    cluster_ = *std::move(cluster);
    return absl::OkStatus();
  }

  // Called in a child process, which has only the thread that forked it. If another thread of the parent held a mutex
  // of the progress at the fork, nobody will ever release it here. So the child reports no progress.
  StatusOr<std::string> Run(const Point& point) {
    if (point.tpcc.has_value()) return RunTpccRack(*point.tpcc);
    if (point.spatial.has_value()) return RunOn(*point.spatial, &spatial_);
    if (point.kind.has_value()) return RunOn(*point.kind, &kind_);
    const bench::YcsbProgress silent = {
        .step = [](const std::string&) {}, .loaded = [](uint64_t, uint64_t) {}, .ran = [](const auto&) {}};
    bench::YcsbResult result;
    result.load_seconds = prepared_.load_seconds;
    result.options = point.options;
    result.configuration = point.configuration;
    GANNET_RETURN_IF_ERROR(cluster_ == nullptr
                               ? bench::RunYcsb(silent, options_.stop, &result)
                               : bench::RunPreparedYcsb(cluster_.get(), silent, options_.stop, &result));
    if (result.interrupted) return absl::CancelledError("stopped");
    return bench::ToJson(result);
  }

 private:
  template <class Rack, class Options>
  static StatusOr<std::string> RunOn(const Options& options, std::unique_ptr<Rack>* rack) {
    if (*rack == nullptr) GANNET_RETURN_IF_ERROR(Load(options, rack));
    return (*rack)->Run(options);
  }
  template <class Rack, class Options>
  static Status Load(const Options& options, std::unique_ptr<Rack>* rack) {
    auto loaded = Rack::Load(options);
    if (!loaded.ok()) return loaded.status();
    *rack = *std::move(loaded);
    return absl::OkStatus();
  }

  const RunExperimentsOptions& options_;
  bench::YcsbResult prepared_;
  std::unique_ptr<bench::YcsbCluster> cluster_;
  std::unique_ptr<SpatialRack> spatial_;
  std::unique_ptr<kind_rack::Rack> kind_;
};

double Number(const nlohmann::json& json, const char* path) {
  return json.at(nlohmann::json::json_pointer(path)).get<double>();
}

void MeasuredOfTpcc(const nlohmann::json& json, Measured* m) {
  m->mops = Number(json, "/transactions_per_second") * 1e-6;
  // The report gives latencies of the most frequent transaction, if one has committed.
  const nlohmann::json& transactions = json.at("transactions");
  if (const auto most = transactions.find(json.at("latency_of").get<std::string>()); most != transactions.end()) {
    m->mean_us = Number(*most, "/latency_us/mean");
    m->p50_us = Number(*most, "/latency_us/p50");
    m->p99_us = Number(*most, "/latency_us/p99");
  }
  const double begin = Number(json, "/configuration/warmup_seconds");
  for (const nlohmann::json& moment : json.at("timeline")) {
    m->timeline.push_back({(Number(moment, "/at_seconds") - begin) * 1e3,
                           Number(moment, "/transactions_per_second") * 1e-6, Number(moment, "/share_of_calls")});
  }
  m->reads_per_operation = Number(json, "/verbs/read");
  m->bytes_per_operation = Number(json, "/verbs/bytes");
  m->fallbacks = Number(json, "/clients/fallbacks") / std::max(1.0, Number(json, "/clients/lookups"));
  m->server_cpu = Number(json, "/servers/cpu");
  m->server_nic = Number(json, "/servers/nic_serve");
  m->server_link = Number(json, "/servers/link_out");
}

// The report of one of the other racks.
void MeasuredOfRack(const nlohmann::json& json, Measured* m) {
  m->mops = Number(json, "/operations_per_second") * 1e-6;
  m->mean_us = Number(json, "/latency_us/mean");
  m->p50_us = Number(json, "/latency_us/p50");
  m->p99_us = Number(json, "/latency_us/p99");
  m->reads_per_operation = Number(json, "/verbs/read");
  m->bytes_per_operation = Number(json, "/verbs/bytes");
  m->calls = Number(json, "/share_of_calls");
  m->server_cpu = Number(json, "/server/cpu");
  m->server_nic = Number(json, "/server/nic_serve");
  m->server_link = std::max(Number(json, "/server/link_out"), Number(json, "/server/link_in"));
}

Measured MeasuredOf(const Point& point, const std::string& report) {
  const nlohmann::json json = nlohmann::json::parse(report);
  Measured m;
  m.report = report;
  if (json.contains("benchmark")) {
    json.at("benchmark") == "tpcc" ? MeasuredOfTpcc(json, &m) : MeasuredOfRack(json, &m);
    return m;
  }
  const bench::YcsbOptions& options = point.options;
  const double begin = absl::ToDoubleSeconds(*options.warmup);
  m.mops = Number(json, "/operations_per_second") * 1e-6;
  m.mean_us = Number(json, "/all/latency_us/mean");
  m.p50_us = Number(json, "/all/latency_us/p50");
  m.p99_us = Number(json, "/all/latency_us/p99");
  const bool reads = Number(json, "/operations/read/verbs/samples") > 0;
  const nlohmann::json& verbs = reads ? json.at("operations").at("read").at("verbs") : json.at("all").at("verbs");
  m.reads_per_operation = Number(verbs, "/read");
  m.bytes_per_operation = Number(verbs, "/bytes");
  const double lookups = Number(json, "/clients/lookups");
  m.fallbacks = lookups == 0 ? 0 : Number(json, "/clients/fallbacks") / lookups;
  m.cache_bytes = Number(json, "/clients/cache_bytes") / options.clients.machines;
  if (json.contains("model")) {
    m.mean_error_keys = Number(json, "/model/mean_error_range");
    m.retrainings_per_second = Number(json, "/model/retrainings") / (begin + Number(json, "/seconds"));
  }
  for (const nlohmann::json& moment : json.at("timeline")) {
    m.timeline.push_back(
        {(Number(moment, "/at_seconds") - begin) * 1e3, Number(moment, "/operations_per_second") * 1e-6, std::nullopt});
  }
  m.server_cpu = Number(json, "/simulation/servers/cpu");
  m.server_nic = Number(json, "/simulation/servers/nic_serve");
  m.server_link = Number(json, "/simulation/servers/link_out");
  return m;
}

// Runs the points group by group; they keep their places in `experiments`.
Status RunAll(const RunExperimentsOptions& options, std::vector<Experiment>* experiments) {
  std::vector<Group> groups = GroupsOf(experiments);
  size_t of = 0;
  for (const Group& group : groups) of += group.points.size();
  size_t finished = 0;
  for (Group& group : groups) {
    options.progress(finished, of, group.names.front());
    Runs runs(options);
    GANNET_RETURN_IF_ERROR(runs.Prepare(group));
    const auto work = [&](size_t i) -> StatusOr<std::string> {
      StatusOr<std::string> report = runs.Run(*group.points[i]);
      if (report.ok()) return report;
      return Status(report.status().code(), absl::StrCat(group.names[i], ": ", report.status().message()));
    };
    const auto done = [&](size_t i, const StatusOr<std::string>& report) -> Status {
      if (!report.ok()) return report.status();
      group.points[i]->measured = MeasuredOf(*group.points[i], *report);
      options.progress(++finished, of, group.names[i]);
      return absl::OkStatus();
    };
    GANNET_RETURN_IF_ERROR(
        scenario::RunInChildren(group.points.size(), options.jobs, kLimitSeconds, work, done, options.stop));
  }
  return absl::OkStatus();
}

void DropWhatWasNotRun(std::vector<Experiment>* experiments) {
  for (Experiment& experiment : *experiments) {
    std::erase_if(experiment.points, [](const Point& point) { return point.measured.report.empty(); });
  }
  std::erase_if(*experiments, [](const Experiment& experiment) { return experiment.points.empty(); });
}

}  // namespace

Status RunExperiments(const RunExperimentsOptions& options, std::vector<Experiment>* experiments) {
  for (Experiment& experiment : *experiments) {
    for (Point& point : experiment.points) bench::SetDefaults(&point.options);
  }
  Status status = RunAll(options, experiments);
  if (absl::IsCancelled(status)) DropWhatWasNotRun(experiments);
  return status;
}

}  // namespace gannet::experiments
