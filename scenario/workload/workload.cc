#include "scenario/workload/workload.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scenario/workload/registers.h"

namespace gannet::scenario {

const std::vector<std::string>& WorkloadNames() {
  static const std::vector<std::string> names = {"registers"};
  return names;
}

StatusOr<std::unique_ptr<Workload>> MakeWorkload(const ScenarioOptions& drawn, Control* control) {
  if (drawn.workload == "registers") return std::make_unique<Registers>(drawn, control);
  return absl::InvalidArgumentError(absl::StrCat("there is no workload '", drawn.workload, "'; the workloads are ",
                                                 absl::StrJoin(WorkloadNames(), ", ")));
}

}  // namespace gannet::scenario
