#include "lab/experiments/experiment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/quantity.h"
#include "lab/experiments/report.h"

namespace gannet::experiments {
namespace {

constexpr double kBusy = 0.9;

}  // namespace

// Step by step, because g++ 12 takes a part of a single braced expression for uninitialised.
Experiment NewExperiment(std::string id, std::string title, Chart chart, std::string x_axis) {
  Experiment experiment;
  experiment.id = std::move(id);
  experiment.title = std::move(title);
  experiment.chart = chart;
  experiment.x_axis = std::move(x_axis);
  return experiment;
}

bench::YcsbOptions SmallPairs(const Options& options, ycsb::Distribution distribution, int fill_percent) {
  bench::YcsbOptions o;
  o.distribution = distribution;
  o.keys = options.keys;
  o.key_form = ycsb::KeyForm::kRandom;  // YCSB's keys are hashes
  o.fill_percent = fill_percent;
  o.inline_values = true;
  o.spread = options.spread;
  o.seed = options.seed;
  o.fabric = bench::FabricKind::kSim;
  o.nic = "cx5-100g";
  o.clients = options.clients;
  return o;
}

std::string ClientsNote(int machines, int threads) {
  return absl::StrCat(Count(static_cast<uint64_t>(machines), "machine"), " x ",
                      Count(static_cast<uint64_t>(threads), "client thread"));
}

// The claim is made step by step, like NewExperiment.
Claim Claim::Of(std::string what, std::optional<double> ours, double paper, std::string source, std::string note) {
  Claim claim;
  claim.what = std::move(what);
  claim.ours = ours;
  claim.paper.value = paper;
  claim.paper.source = std::move(source);
  claim.note = std::move(note);
  return claim;
}

std::optional<double> Claim::ratio() const {
  if (!ours.has_value()) return std::nullopt;
  return *ours / paper.value;
}

std::optional<double> Claim::difference_percent() const {
  if (!ours.has_value()) return std::nullopt;
  return 100 * (*ours / paper.value - 1);
}

std::optional<double> RatioOf(double a, double b) {
  if (a == 0 || b == 0) return std::nullopt;
  return a / b;
}

std::string BoundOf(const Measured& m) {
  const double most = std::max({m.server_cpu, m.server_nic, m.server_link});
  if (most < kBusy) return "clients";
  if (most == m.server_cpu) return "server CPU";
  return most == m.server_nic ? "server NIC" : "server link";
}

}  // namespace gannet::experiments
