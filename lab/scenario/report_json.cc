#include "lab/scenario/report_json.h"

#include <cmath>
#include <map>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "lab/scenario/options/fields.h"

namespace gannet::scenario {
namespace {

using Json = nlohmann::ordered_json;

template <class Report, class Visit>
void ForEachResult(Report* report, Visit visit) {
  visit("seed", &report->seed);
  visit("passed", &report->passed);
  visit("undecided", &report->undecided);
  visit("verdict", &report->verdict);
  visit("details", &report->details);
  visit("committed", &report->committed);
  visit("failed", &report->failed);
  visit("unknown", &report->unknown);
  visit("aborts", &report->aborts);
  visit("power_cuts", &report->power_cuts);
  visit("deaths", &report->deaths);
  visit("checks", &report->checks);
  visit("events", &report->events);
  visit("switches", &report->switches);
  visit("preemptions", &report->preemptions);
  visit("virtual_nanos", &report->virtual_nanos);
  visit("real_nanos", &report->real_nanos);
  visit("digest", &report->digest);
  visit("checked_edges", &report->checked_edges);
  visit("marks", &report->marks);
}

// Sets *field from `json`; false if the type is wrong or the value out of range.
template <class T>
bool Take(const Json& json, T* field) {
  if constexpr (std::is_same_v<T, std::optional<bool>> || std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return false;
    *field = json.get<bool>();
  } else if constexpr (std::is_same_v<T, std::map<std::string, uint64_t>>) {
    if (!json.is_object()) return false;
    for (const auto& [name, value] : json.items()) {
      if (!value.is_number_unsigned()) return false;
      (*field)[name] = value.template get<uint64_t>();
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) return false;
    *field = json.get<std::string>();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number() || !std::isfinite(json.get<double>()) || json.get<double>() < 0) return false;
    *field = json.get<double>();
  } else if constexpr (std::is_signed_v<T>) {
    if (!json.is_number_integer()) return false;
    const auto value = json.get<int64_t>();
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) return false;
    *field = static_cast<T>(value);
  } else {
    if (!json.is_number_unsigned()) return false;
    *field = json.get<T>();
  }
  return true;
}

Status WrongField(std::string_view name, const Json& value) {
  return absl::InvalidArgumentError(absl::StrCat("field '", absl::string_view(name.data(), name.size()),
                                                 "' of the scenario cannot be ", value.dump()));
}

Status ReadFaults(const Json& json, rdma::sim::Faults* faults) {
  if (!json.is_object()) return WrongField("faults", json);
  for (const auto& item : json.items()) {
    const std::string& name = item.key();
    const Json& value = item.value();
    bool known = false;
    bool taken = false;
    rdma::sim::ForEachFault(faults, [&](std::string_view each, auto* field) {
      if (each != name) return;
      known = true;
      taken = Take(value, field);
    });
    if (!known)
      return absl::InvalidArgumentError(absl::StrCat("there is no fault '", name, "' (see rdma/sim/faults.h)"));
    if (!taken) return WrongField(absl::StrCat("faults.", name), value);
  }
  return absl::OkStatus();
}

}  // namespace

nlohmann::ordered_json ToJson(const ScenarioReport& report) {
  Json json;
  ForEachResult(&report, [&json](const char* name, const auto* field) { json[name] = *field; });
  return json;
}

StatusOr<ScenarioReport> ReportFromJson(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return absl::InvalidArgumentError("a report is not JSON");
  ScenarioReport report;
  bool complete = true;
  ForEachResult(&report, [&](const char* name, auto* field) {
    const auto found = json.find(name);
    complete = complete && found != json.end() && Take(*found, field);
  });
  if (!complete) return absl::InvalidArgumentError("a report lacks fields");
  return report;
}

nlohmann::ordered_json ToJson(const ScenarioOptions& drawn) {
  Json json;
  ForEachField(&drawn, [&json](const char* name, const auto* field, const auto&...) {
    if constexpr (std::is_same_v<std::decay_t<decltype(*field)>, std::optional<bool>>) {
      if (field->has_value()) json[name] = **field;
    } else {
      json[name] = *field;
    }
  });
  if (drawn.faults.has_value()) {
    rdma::sim::Faults faults = *drawn.faults;
    Json& fields = json["faults"] = Json::object();
    rdma::sim::ForEachFault(&faults,
                            [&fields](std::string_view name, auto* field) { fields[std::string(name)] = *field; });
  }
  return json;
}

Status ReadScenario(std::string_view text, ScenarioOptions* options) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return absl::InvalidArgumentError("a scenario is a JSON object");
  for (const auto& item : json.items()) {
    const std::string& name = item.key();
    const Json& value = item.value();
    if (name == "faults") {
      options->faults.emplace();
      GANNET_RETURN_IF_ERROR(ReadFaults(value, &*options->faults));
      continue;
    }
    bool known = false;
    bool taken = false;
    ForEachField(options, [&](std::string_view each, auto* field, const auto&...) {
      if (each != name) return;
      known = true;
      taken = Take(value, field);
    });
    if (!known) return absl::InvalidArgumentError(absl::StrCat("a scenario has no field '", name, "'"));
    if (!taken) return WrongField(name, value);
  }
  return absl::OkStatus();
}

}  // namespace gannet::scenario
