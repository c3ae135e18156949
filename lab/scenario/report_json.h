// Reports and scenarios as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "lab/scenario/scenario.h"

namespace gannet::scenario {

nlohmann::ordered_json ToJson(const ScenarioReport& report);
StatusOr<ScenarioReport> ReportFromJson(const std::string& text);
// Writes every field in the format of ReadScenario.
nlohmann::ordered_json ToJson(const ScenarioOptions& drawn);

}  // namespace gannet::scenario
