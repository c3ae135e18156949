#include "lab/scenario/sweep.h"

#include <string>
#include <utility>

#include "absl/strings/str_split.h"
#include "lab/scenario/children.h"
#include "lab/scenario/report_json.h"

namespace gannet::scenario {
namespace {

// The report of a seed whose process died before it wrote one.
ScenarioReport ReportOfDeath(uint64_t seed, const Status& status) {
  ScenarioReport report;
  report.seed = seed;
  const std::pair<std::string, std::string> parts = absl::StrSplit(status.message(), absl::MaxSplits('\n', 1));
  report.verdict = parts.first;
  report.details = parts.second;
  return report;
}

}  // namespace

Status RunSweep(const SweepOptions& options, const std::function<bool(const ScenarioReport& report)>& visit) {
  const auto run = [&options](size_t i) -> StatusOr<std::string> {
    ScenarioOptions scenario = options.scenario;
    scenario.seed = options.first_seed + i;
    return ToJson(RunScenario(scenario)).dump();
  };
  bool go_on = true;
  const auto take = [&](size_t i, const StatusOr<std::string>& text) -> Status {
    const StatusOr<ScenarioReport> report = text.ok() ? ReportFromJson(*text) : text.status();
    go_on = visit(report.ok() ? *report : ReportOfDeath(options.first_seed + i, report.status()));
    return go_on ? absl::OkStatus() : absl::CancelledError("");
  };
  Status status = RunInChildren(options.seeds, options.jobs, options.limit_seconds, run, take, options.stop);
  return go_on ? status : absl::OkStatus();
}

}  // namespace gannet::scenario
