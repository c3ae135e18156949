// The reports of `gannet sim` as HTML pages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/scenario/mark_tally.h"
#include "lab/scenario/scenario.h"

namespace gannet::cli {

// One seed. `drawn`: the whole scenario.
std::string ToHtml(const scenario::ScenarioReport& report, const scenario::ScenarioOptions& drawn);

struct SweepResult {
  uint64_t first_seed = 1;
  uint64_t wanted = 0;                            // seeds
  std::vector<scenario::ScenarioReport> reports;  // by seed
  scenario::ScenarioReport total;
  scenario::MarkTally marks;
  double seconds = 0;
  bool interrupted = false;
};

std::string ToHtml(const SweepResult& sweep);

}  // namespace gannet::cli
