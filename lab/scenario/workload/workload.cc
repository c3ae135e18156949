#include "lab/scenario/workload/workload.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lab/scenario/workload/append.h"
#include "lab/scenario/workload/rectangles.h"
#include "lab/scenario/workload/registers.h"

namespace gannet::scenario {

Judgement JudgementOf(const Report& report) {
  Judgement result;
  result.passed = report.verdict != Verdict::kViolated;
  result.undecided = report.verdict == Verdict::kUnknown;
  result.edges = report.edges;
  if (report.ok()) {
    result.verdict = absl::StrCat("strictly serializable: ", report.committed, " transactions");
    return result;
  }
  result.verdict =
      absl::StrCat(result.undecided ? "undecided" : "not serializable",
                   report.anomalies.empty() ? "" : absl::StrCat(": ", NameOf(report.anomalies.front().kind)));
  result.details = report.ToString();
  return result;
}

StatusOr<std::unique_ptr<Workload>> MakeWorkload(const ScenarioOptions& drawn, Control* control) {
  if (drawn.workload == "registers") return std::make_unique<Registers>(drawn, control);
  if (drawn.workload == "rectangles") return std::make_unique<Rectangles>(drawn, control);
  if (drawn.workload == "append") return std::make_unique<Append>(drawn, control);
  return absl::InvalidArgumentError(absl::StrCat("there is no workload '", drawn.workload, "'; the workloads are ",
                                                 absl::StrJoin(WorkloadNames(), ", ")));
}

}  // namespace gannet::scenario
