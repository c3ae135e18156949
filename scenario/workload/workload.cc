#include "scenario/workload/workload.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scenario/workload/append.h"
#include "scenario/workload/registers.h"

namespace gannet::scenario {

const std::vector<std::string>& WorkloadNames() {
  static const std::vector<std::string> names = {"registers", "append"};
  return names;
}

std::string VerdictOf(const Report& report) {
  if (report.ok()) return absl::StrCat("strictly serializable: ", report.committed, " transactions");
  return absl::StrCat(report.verdict == Verdict::kUnknown ? "undecided" : "not serializable",
                      report.anomalies.empty() ? "" : absl::StrCat(": ", NameOf(report.anomalies.front().kind)));
}

StatusOr<std::unique_ptr<Workload>> MakeWorkload(const ScenarioOptions& drawn, Control* control) {
  if (drawn.workload == "registers") return std::make_unique<Registers>(drawn, control);
  if (drawn.workload == "append") return std::make_unique<Append>(drawn, control);
  return absl::InvalidArgumentError(absl::StrCat("there is no workload '", drawn.workload, "'; the workloads are ",
                                                 absl::StrJoin(WorkloadNames(), ", ")));
}

}  // namespace gannet::scenario
