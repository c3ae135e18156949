// The report of `gannet reproduce`, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "cli/reproduce/experiment.h"

namespace gannet::cli {

// One sentence: what was run in place of the paper's rack.
std::string SettingOf(const ReproduceOptions& options);

std::string ReproductionText(const ReproduceOptions& options, const std::vector<Experiment>& experiments);
std::string ReproductionJson(const ReproduceOptions& options, const std::vector<Experiment>& experiments);
// One page that needs nothing else.
std::string ReproductionHtml(const ReproduceOptions& options, const std::vector<Experiment>& experiments);

}  // namespace gannet::cli
