#include <optional>
#include <string>

#include "lab/cli/reproduce_report.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {
namespace {

using experiments::Claim;
using experiments::Experiment;
using experiments::Measured;
using experiments::Moment;
using experiments::Point;
using experiments::SummaryTable;
using Json = nlohmann::ordered_json;

// The number, or null if there is none.
Json OrNull(std::optional<double> number) {
  return number.has_value() ? Json(*number) : Json(nullptr);
}

Json Of(const Point& point) {
  const Measured& m = point.measured;
  Json json = {{"series", point.series},
               {"label", point.label},
               {"x", point.x},
               {"million_operations_per_second", m.mops},
               {"latency_us", {{"mean", nullptr}, {"p50", nullptr}, {"p99", nullptr}}},
               {"reads_per_operation", OrNull(m.IfMeasured(m.reads_per_operation))},
               {"bytes_per_operation", OrNull(m.IfMeasured(m.bytes_per_operation))},
               {"fallbacks_per_lookup", m.fallbacks},
               {"mean_error_keys", m.mean_error_keys},
               {"cache_bytes_per_machine", m.cache_bytes},
               {"server", {{"cpu", m.server_cpu}, {"nic", m.server_nic}, {"link", m.server_link}}},
               {"bound_by", nullptr},
               {"paper", nullptr}};
  if (m.mops > 0) json["bound_by"] = BoundOf(m);
  if (m.p50().has_value()) json["latency_us"] = {{"mean", m.mean_us}, {"p50", m.p50_us}, {"p99", m.p99_us}};
  if (point.paper.has_value()) {
    json["paper"] = {{"million_operations_per_second", point.paper->value},
                     {"source", point.paper->source},
                     {"ratio", OrNull(m.IfMeasured(m.mops / point.paper->value))}};
  }
  json["timeline"] = Json::array();
  for (const Moment& moment : m.timeline) {
    Json place = {moment.milliseconds, moment.mops};
    if (moment.calls.has_value()) place.push_back(*moment.calls);
    json["timeline"].push_back(std::move(place));
  }
  json["report"] = Json::parse(m.report);
  return json;
}

Json Of(const Experiment& experiment) {
  Json json = {{"id", experiment.id}, {"title", experiment.title}, {"x_axis", experiment.x_axis}};
  json["points"] = Json::array();
  for (const Point& point : experiment.points) json["points"].push_back(Of(point));
  json["notes"] = experiment.notes;
  return json;
}

Json Of(const SummaryTable& table) {
  Json json = {{"columns", Json::array()}, {"rows", Json::array()}, {"notes", table.notes}};
  for (const SummaryTable::Column& column : table.columns) {
    json["columns"].push_back({{"key", column.key}, {"what", column.what}});
  }
  for (const SummaryTable::Row& row : table.rows) {
    Json values = {{table.rows_are, row.name}};
    for (size_t i = 0; i < row.values.size(); ++i) values[table.columns[i].key] = OrNull(row.values[i]);
    json["rows"].push_back(std::move(values));
  }
  return json;
}

}  // namespace

std::string ToJson(const experiments::Report& report) {
  Json json = {{"version", GANNET_VERSION}, {"setting", report.setting}};
  if (report.table.has_value()) json["table"] = Of(*report.table);
  json["experiments"] = Json::array();
  for (const Experiment& experiment : report.experiments) json["experiments"].push_back(Of(experiment));
  json["claims"] = Json::array();
  for (const Claim& claim : report.claims) {
    json["claims"].push_back({{"what", claim.what},
                              {"ours", OrNull(claim.ours)},
                              {"paper", claim.paper.value},
                              {"source", claim.paper.source},
                              {"ratio", OrNull(claim.ratio())},
                              {"difference_percent", OrNull(claim.difference_percent())},
                              {"note", claim.note}});
  }
  return json.dump(2) + "\n";
}

}  // namespace gannet::cli
