#include "lab/experiments/catfish/catfish.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace gannet::experiments::catfish {
namespace {

// Durations for one point, at scale 1. Warm-up: every client measures both ways, and the server announces its load
// every 5 ms.
constexpr absl::Duration kWarmup = absl::Milliseconds(60);
constexpr absl::Duration kWindow = absl::Milliseconds(10);
constexpr double kPaperRectangles = 2e6;

// The number of rectangles that meet a window stays that of the paper's 2M.
double Larger(const Options& options) {
  return std::sqrt(kPaperRectangles / static_cast<double>(options.keys));
}

std::string SettingOf(const Options& o) {
  return absl::StrFormat(
      "%s rectangles (the paper: 2,000,000), with edges up to 1e-4 x %.3g, and windows larger by that factor, too; one "
      "server with %d or %d cores (the paper: %d), %s x at most %s, with a ConnectX-5 100G each, "
      "simulated%s; windows of time are %.4g x 10 ms, seed %d",
      WithCommas(o.keys), Larger(o), kScarceCores, kPaperCores, kPaperCores,
      Count(static_cast<uint64_t>(o.clients.machines), "machine"),
      Count(static_cast<uint64_t>(o.clients.threads), "client"), SpreadNote(o), o.scale, o.seed);
}

// Returns the options of the point's run.
SpatialRackOptions* AddPoint(std::string_view series, const std::string& label, double x,
                             const SpatialRackOptions& rack, Experiment* e) {
  Point& point = e->points.emplace_back();
  point.series = series;
  point.label = label;
  point.x = x;
  point.spatial = rack;
  return &*point.spatial;
}

}  // namespace

SpatialRackOptions Rack(const Options& options) {
  SpatialRackOptions rack;
  rack.data.rectangles = options.keys;
  rack.data.most_edge = 1e-4 * Larger(options);
  rack.data.seed = options.seed;
  rack.tree.world = index::Rectangle{0, 0, 1, 1};
  // With a limit the one-sided way would be a mixture: searches above it are calls.
  rack.tree.offloading = 0;
  rack.server_threads = kScarceCores;
  rack.machines = options.clients.machines;
  rack.machine_cores = options.clients.threads;
  rack.clients = options.clients.machines * options.clients.threads;
  rack.warmup = options.Scaled(kWarmup);
  rack.duration = options.Scaled(kWindow);
  rack.spread = options.spread;
  rack.seed = options.seed;
  return rack;
}

Scale ScaleOf(const Options& options, double most, std::string_view name) {
  return {name, {.most = most * Larger(options)}};
}
Scale PowerLaw(const Options& options) {
  return {"power law", {.most = 1e-2 * Larger(options), .least = 1e-5 * Larger(options)}};
}
std::vector<Scale> PaperScales(const Options& options) {
  return {ScaleOf(options, 1e-5, "1e-5"), ScaleOf(options, 1e-2, "1e-2"), PowerLaw(options)};
}

std::vector<int> ClientCounts(int most) {
  std::vector<int> counts;
  for (const int part : {8, 2, 1}) {
    const int clients = std::max(1, most / part);
    if (counts.empty() || clients > counts.back()) counts.push_back(clients);
  }
  return counts;
}

void AddIndexPoint(std::string_view series, const std::string& label, double x, const SpatialRackOptions& rack,
                   const index::CatfishClientOptions& client, Experiment* e) {
  AddPoint(series, label, x, rack, e)->index_only = client;
}

void AddWays(const std::string& label, double x, const SpatialRackOptions& rack, Experiment* e) {
  for (const PathSeries& way : kWays) AddPoint(way.name, label, x, rack, e)->reads = way.reads;
}

std::vector<Experiment> Experiments(const Options& options) {
  return {Fig11(options), Fig13(options), Fig15(options), Fig17(options), Fig19(options),
          Fig21(options), Fig23(options), Fig24(options), Fig25(options), Fig26(options),
          Fig6(options),  Fig7b(options), Fig8(options)};
}

Report MakeReport(const Options& options, std::vector<Experiment> experiments) {
  Report report;
  report.system = "Catfish";
  report.setting = SettingOf(options);
  report.claims = ClaimsOf(experiments);
  report.experiments = std::move(experiments);
  report.nics = {"cx5-100g"};
  report.reference = "reference";
  return report;
}

}  // namespace gannet::experiments::catfish
