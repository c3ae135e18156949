// What the paper's text claims about its system, and that the adaptive way is never much slower than the better fixed
// one.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lab/experiments/catfish/catfish.h"

namespace gannet::experiments::catfish {
namespace {

double Mops(const Measured& measured) {
  return measured.mops;
}

// "; the paper's: 2.15", if the paper gives all of it.
std::string PaperRatio(const Experiment& experiment, const Point& adaptive) {
  const Point* const calls = FindPoint(experiment, kCalls.name, adaptive.label);
  const Point* const reads = FindPoint(experiment, kReads.name, adaptive.label);
  if (calls == nullptr || reads == nullptr || !adaptive.paper || !calls->paper || !reads->paper) return "";
  return absl::StrFormat("; the paper's ratio: %.2f",
                         adaptive.paper->value / std::max(calls->paper->value, reads->paper->value));
}

void AddAgainstBetter(const Experiment& experiment, std::vector<Claim>* claims) {
  for (const Point& point : experiment.points) {
    if (point.series != kAdaptive.name) continue;
    const BestFixed best = BestFixedOf(experiment, point.label, Mops);
    if (best.series.empty()) continue;
    claims->push_back(Claim::Of(absl::StrCat(experiment.id, ", ", point.label, ": adaptive / better fixed way"),
                                RatioOf(point.measured.mops, best.mops), 1,
                                absl::StrFormat("better: %s%s", best.series, PaperRatio(experiment, point)), ""));
  }
}

// The paper's largest factors of throughput, and where it says them.
struct Factors {
  std::string_view id;
  double calls;
  double one_sided;
  const char* source;
};
constexpr Factors kFactors[] = {
    {"fig11", 2.32, 3.09, "section 5.2.1"}, {"fig13", 3.3, 13.67, "section 5.2.1"},
    {"fig15", 2.50, 5.88, "section 5.2.2"}, {"fig17", 6.28, 5.28, "section 5.2.2"},
    {"fig19", 1.69, 2.33, "section 5.2.3"}, {"fig21", 1.34, 3.95, "section 5.2.3"},
    {"fig26", 2.23, 4.28, "section 5.4"},
};

// The greatest factor of the figure, as the paper gives it; the claim names the place where it is. (AddAgainstBetter
// has a claim for each place.)
void AddFactor(const Experiment& experiment, const PathSeries& fixed, double paper, const char* source,
               std::vector<Claim>* claims) {
  std::optional<double> most;
  std::string_view where;
  bool any = false;
  for (const Point& point : experiment.points) {
    if (point.series != kAdaptive.name) continue;
    const Point* const other = FindPoint(experiment, fixed.name, point.label);
    if (other == nullptr) continue;
    any = true;
    const std::optional<double> factor = RatioOf(point.measured.mops, other->measured.mops);
    if (factor <= most) continue;
    most = factor;
    where = point.label;
  }
  if (!any) return;
  const std::string at = where.empty() ? "" : absl::StrFormat(", at %s", where);
  claims->push_back(Claim::Of(absl::StrFormat("%s: adaptive / %s, at most%s", experiment.id, fixed.name, at), most,
                              paper, absl::StrCat(source, ": \"up to\""),
                              "the paper's calls are polled and its READs come one by one where it compares"));
}

// Mean latency of `series` against `other`, where both have the label.
void AddLatency(const Experiment& experiment, std::string_view series, std::string_view other, std::string_view label,
                double paper, const char* source, std::vector<Claim>* claims) {
  const Point* const a = FindPoint(experiment, series, label);
  const Point* const b = FindPoint(experiment, other, label);
  if (a == nullptr || b == nullptr) return;
  claims->push_back(Claim::Of(absl::StrFormat("%s, %s: mean latency, %s / %s", experiment.id, label, series, other),
                              RatioOf(a->measured.mean_us, b->measured.mean_us), paper, source, ""));
}

}  // namespace

std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments) {
  std::vector<Claim> claims;
  for (const Experiment& e : experiments) AddAgainstBetter(e, &claims);
  for (const Experiment& e : experiments) {
    for (const Factors& factors : kFactors) {
      if (factors.id != e.id) continue;
      AddFactor(e, kCalls, factors.calls, factors.source, &claims);
      AddFactor(e, kReads, factors.one_sided, factors.source, &claims);
    }
    if (e.id == "fig11") {
      const char* const source = "section 5.2.1";
      AddLatency(e, kAdaptive.name, kCalls.name, "1e-5, 256 clients", 140.73 / 299.10, source, &claims);
      AddLatency(e, kAdaptive.name, kCalls.name, "1e-2, 256 clients", 180.66 / 321.52, source, &claims);
      AddLatency(e, kAdaptive.name, kCalls.name, "power law, 256 clients", 161.58 / 302.91, source, &claims);
    }
    if (e.id == "fig7b") {
      AddLatency(e, kAllAtOnce, kOneAtATime, "1e-2", 1 - 0.1513, "section 4.3: the most", &claims);
    }
  }
  return claims;
}

}  // namespace gannet::experiments::catfish
