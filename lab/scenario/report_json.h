// Reports and scenarios as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"
#include "lab/scenario/scenario.h"

namespace gannet::scenario {

nlohmann::ordered_json ToJson(const ScenarioReport& report);
StatusOr<ScenarioReport> ReportFromJson(const std::string& text);
// Reads a JSON object with the fields of ScenarioOptions by their names; faults are a nested object. Fields that it
// does not name stay as they are in *options. InvalidArgument names the field.
Status ReadScenario(std::string_view json, ScenarioOptions* options);
// Writes every field in the format of ReadScenario.
nlohmann::ordered_json ToJson(const ScenarioOptions& drawn);

}  // namespace gannet::scenario
