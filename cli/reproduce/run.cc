#include "cli/reproduce/run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/progress.h"
#include "cli/ycsb_result.h"
#include "cli/ycsb_run.h"
#include "nlohmann/json.hpp"
#include "scenario/children.h"

namespace gannet::cli {
namespace {

// A point of 100M keys takes minutes.
constexpr uint64_t kLimitSeconds = 3600;

StatusOr<std::string> RunBench(YcsbOptions options) {
  Progress progress;
  YcsbResult result;
  result.options = std::move(options);
  GANNET_RETURN_IF_ERROR(RunYcsb(&progress, &result));
  if (result.interrupted) return absl::CancelledError("stopped");
  return ToJson(result);
}

double Number(const nlohmann::json& json, const char* path) {
  return json.at(nlohmann::json::json_pointer(path)).get<double>();
}

StatusOr<std::string> Run(const Point& point) {
  return point.tpcc.has_value() ? RunTpccRack(*point.tpcc) : RunBench(point.options);
}

void MeasuredOfTpcc(const nlohmann::json& json, Measured* m) {
  m->mops = Number(json, "/transactions_per_second") * 1e-6;
  m->mean_us = Number(json, "/transactions/order_status/latency_us/mean");
  m->p50_us = Number(json, "/transactions/order_status/latency_us/p50");
  m->p99_us = Number(json, "/transactions/order_status/latency_us/p99");
  m->reads_per_operation = Number(json, "/verbs/read");
  m->bytes_per_operation = Number(json, "/verbs/bytes");
  m->fallbacks = Number(json, "/clients/fallbacks") / std::max(1.0, Number(json, "/clients/lookups"));
  m->server_cpu = Number(json, "/servers/cpu");
  m->server_nic = Number(json, "/servers/nic_serve");
  m->server_link = Number(json, "/servers/link_out");
}

Measured MeasuredOf(const std::string& report) {
  const nlohmann::json json = nlohmann::json::parse(report);
  Measured m;
  m.report = report;
  if (json.contains("benchmark")) {
    MeasuredOfTpcc(json, &m);
    return m;
  }
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
  m.cache_bytes = Number(json, "/clients/cache_bytes") / Number(json, "/configuration/machines");
  if (json.contains("model")) m.mean_error_keys = Number(json, "/model/mean_error_range");
  const double begin = Number(json, "/configuration/warmup_seconds");
  for (const nlohmann::json& moment : json.at("timeline")) {
    m.timeline.push_back(
        {(Number(moment, "/at_seconds") - begin) * 1e3, Number(moment, "/operations_per_second") * 1e-6});
  }
  m.server_cpu = Number(json, "/simulation/servers/cpu");
  m.server_nic = Number(json, "/simulation/servers/nic_serve");
  m.server_link = Number(json, "/simulation/servers/link_out");
  return m;
}

}  // namespace

Status CompleteExperiments(std::vector<Experiment>* experiments) {
  for (Experiment& experiment : *experiments) {
    for (Point& point : experiment.points) {
      if (!point.tpcc.has_value()) GANNET_RETURN_IF_ERROR(Complete(&point.options));
    }
  }
  return absl::OkStatus();
}

Status RunExperiments(int jobs, const std::function<void(size_t done, size_t of)>& progress,
                      std::vector<Experiment>* experiments) {
  std::vector<Point*> points;
  std::vector<std::string> names;
  for (Experiment& experiment : *experiments) {
    for (Point& point : experiment.points) {
      points.push_back(&point);
      names.push_back(absl::StrCat(experiment.id, ", ", point.series, ", ", point.label));
    }
  }
  size_t finished = 0;
  progress(finished, points.size());
  return scenario::RunInChildren(
      points.size(), jobs, kLimitSeconds,
      [&](size_t i) -> StatusOr<std::string> {
        StatusOr<std::string> report = Run(*points[i]);
        if (report.ok()) return report;
        return Status(report.status().code(), absl::StrCat(names[i], ": ", report.status().message()));
      },
      [&](size_t i, const StatusOr<std::string>& report) -> Status {
        if (!report.ok()) return report.status();
        points[i]->measured = MeasuredOf(*report);
        progress(++finished, points.size());
        return absl::OkStatus();
      });
}

}  // namespace gannet::cli
