#include "lab/experiments/paths/paths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gannet::experiments::paths {
namespace {

constexpr uint32_t kWarehouses = 24;
// Adaptation to a step of load must end within this time.
constexpr double kAdaptedMilliseconds = 50;

// Million transactions per second on average from `from` to `to`, in milliseconds of the measurement.
double Average(const Measured& measured, double from, double to) {
  double sum = 0;
  int n = 0;
  for (const Moment& moment : measured.timeline) {
    if (moment.milliseconds <= from || moment.milliseconds > to) continue;
    sum += moment.mops;
    ++n;
  }
  return n == 0 ? 0 : sum / n;
}

// The standard deviation of ten pieces of that time, as a share of their average. A path that is chosen to and fro
// shows as pieces that differ.
double Swing(const Measured& measured, double from, double to) {
  constexpr int kPieces = 10;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kPieces; ++i) {
    const double at = from + (to - from) * i / kPieces;
    const double mops = Average(measured, at, at + (to - from) / kPieces);
    sum += mops;
    squares += mops * mops;
  }
  const double mean = sum / kPieces;
  return mean <= 0 ? 0 : std::sqrt(std::max(0.0, squares / kPieces - mean * mean)) / mean;
}

void AddCores(const Experiment& experiment, std::vector<Claim>* claims) {
  for (const Point& point : experiment.points) {
    if (point.series != kAdaptive.name) continue;
    const BestFixed best = BestFixedOf(experiment, point.label, [](const Measured& m) { return m.mops; });
    if (best.series.empty()) continue;
    claims->push_back(Claim::Of(absl::StrCat(experiment.id, ", ", point.label, ": adaptive / better fixed path"),
                                RatioOf(point.measured.mops, best.mops), 1, absl::StrFormat("better: %s", best.series),
                                ""));
  }
}

void AddStep(const Experiment& experiment, std::vector<Claim>* claims) {
  const Point* const adaptive = FindPoint(experiment, kAdaptive.name, "whole run");
  if (adaptive == nullptr || adaptive->measured.timeline.empty()) return;
  const TpccLoadStep& step = *adaptive->tpcc->step;
  const double begin = absl::ToDoubleMilliseconds(step.begin);
  const double end = begin + absl::ToDoubleMilliseconds(step.length);
  const double after = absl::ToDoubleMilliseconds(adaptive->tpcc->duration);
  // At a small scale the parts are shorter than the time to adapt; then they are measured from their middle on.
  const double adapted = std::min(kAdaptedMilliseconds, (end - begin) / 2);
  const struct {
    const char* what;
    double from, to;
  } parts[] = {
      {"before the step", 0, begin}, {"in the step", begin + adapted, end}, {"after it", end + adapted, after}};
  for (const auto& part : parts) {
    const auto mops = [&part](const Measured& m) { return Average(m, part.from, part.to); };
    const BestFixed best = BestFixedOf(experiment, "whole run", mops);
    if (best.series.empty()) continue;
    claims->push_back(Claim::Of(
        absl::StrFormat("load step, %s (%.4g to %.4g ms): adaptive / better fixed path", part.what, part.from, part.to),
        RatioOf(mops(adaptive->measured), best.mops), 1,
        absl::StrFormat("better: %s; deviation of tenths of that time: adaptive %.1f%%", best.series,
                        100 * Swing(adaptive->measured, part.from, part.to)),
        ""));
  }
}

}  // namespace

Point& AddPoint(const PathSeries& series, std::string label, const TpccRackOptions& rack, Experiment* e) {
  Point& point = e->points.emplace_back();
  point.series = series.name;
  point.label = std::move(label);
  point.tpcc = rack;
  point.tpcc->reads = series.reads;
  return point;
}

TpccRackOptions Rack(const Options& options) {
  TpccRackOptions rack;
  rack.data_nodes = 2;
  rack.machines = std::max(1, (options.clients.machines - 3) / 2);
  rack.threads = options.clients.threads;
  rack.warehouses = kWarehouses;
  rack.scale.items = 1000;
  rack.scale.customers_per_district = 30;
  rack.nic = "2x-cx4-100g";
  rack.spread = options.spread;
  rack.seed = options.seed;
  return rack;
}

std::vector<Experiment> Experiments(const Options& options) {
  return {TpccCores(options), TpccLookups(options), LoadStep(options)};
}

std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments) {
  std::vector<Claim> claims;
  for (const Experiment& experiment : experiments) {
    experiment.chart == Chart::kTimeline ? AddStep(experiment, &claims) : AddCores(experiment, &claims);
  }
  return claims;
}

Report MakeReport(const Options& options, std::vector<Experiment> experiments) {
  const TpccRackOptions rack = Rack(options);
  Report report;
  report.system = "the choice of path";
  report.setting = absl::StrFormat(
      "TPC-C with %d warehouses of %d customers per district and %d items; %d servers and %s, "
      "where a title says nothing else, with two ConnectX-4 100G each, simulated%s; scale %.4g, seed %d",
      rack.warehouses, rack.scale.customers_per_district, rack.scale.items, rack.data_nodes,
      ClientsNote(rack.machines, rack.threads), SpreadNote(options), options.scale, options.seed);
  report.claims = ClaimsOf(experiments);
  report.experiments = std::move(experiments);
  report.nics = {"cx4-100g", "2x-cx4-100g"};
  report.reference = "better fixed path";
  return report;
}

}  // namespace gannet::experiments::paths
