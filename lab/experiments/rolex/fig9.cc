// Distributions of keys, and numbers of cores of the client machines.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "lab/experiments/rolex/rolex.h"

namespace gannet::experiments::rolex {
namespace {

using ycsb::Distribution;
using ycsb::KeyForm;

constexpr KeyForm kForms[] = {KeyForm::kNormal, KeyForm::kLognormal, KeyForm::kRandom, KeyForm::kOsmLike};

struct Load {
  const char* name;
  ycsb::Mix mix;
};
constexpr Load kReads = {"reads", {100, 0, 0, 0, 0}};
constexpr Load kHalf = {"half inserts", {50, 0, 50, 0, 0}};
constexpr Load kInserts = {"inserts", {0, 0, 100, 0, 0}};

constexpr int kThreads[] = {3, 6, 12, 24};  // of the paper's 24

}  // namespace

Experiment Fig9(const Options& options) {
  Experiment e = NewExperiment("fig9", "Fig. 9: distributions of keys", Chart::kBars, "keys and operations");
  for (const Load& load : {kReads, kHalf}) {
    for (const KeyForm form : kForms) {
      for (const System system : kSystems) {
        Point point = PointOf(options, system, *ycsb::FindWorkload("c"), Distribution::kUniform);
        point.options.key_form = form;
        point.options.mix = load.mix;
        point.label = absl::StrFormat("%s, %s", ycsb::kKeyFormNames[static_cast<size_t>(form)], load.name);
        point.x = static_cast<double>(form);
        e.points.push_back(point);
      }
    }
  }
  e.notes = {
      "The paper's DocID and Weblogs are real data. In their place: random keys, as hashes are, and osm-like ones, "
      "which are uneven at all scales.",
  };
  return e;
}

Experiment Fig10(const Options& options) {
  Experiment e =
      NewExperiment("fig10", "Fig. 10: cores of the client machines", Chart::kLines, "client threads of each machine");
  for (const Load& load : {kReads, kInserts}) {
    for (const System system : kSystems) {
      for (const int threads : kThreads) {
        Point point = PointOf(options, system, *ycsb::FindWorkload("c"), Distribution::kUniform);
        bench::YcsbOptions& o = point.options;
        o.mix = load.mix;
        o.clients.threads = std::max(1, o.clients.threads * threads / 24);
        // There are so few that ROLEX is bound by the clients, as the paper's is.
        o.coroutines = 1;
        point.series = absl::StrFormat("%s, %s", point.series, load.name);
        point.label = absl::StrFormat("%d/24 of the threads", threads);
        point.x = o.clients.threads;
        e.points.push_back(point);
      }
    }
  }
  e.notes = {"Each thread has one operation in flight."};
  return e;
}

}  // namespace gannet::experiments::rolex
