// YCSB A-F, by ROLEX and its rivals.
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "lab/experiments/rolex/rolex.h"

namespace gannet::experiments::rolex {
namespace {

using ycsb::Distribution;

constexpr const char* kWorkloads[] = {"a", "b", "c", "d", "e", "f"};

}  // namespace

Experiment Fig7(const Options& options) {
  Experiment e =
      NewExperiment("fig7", "Fig. 7: YCSB A-F, uniform and skewed", Chart::kBars, "workload and distribution");
  for (const Distribution distribution : {Distribution::kUniform, Distribution::kZipfian}) {
    for (const char* const name : kWorkloads) {
      const ycsb::Workload workload = *ycsb::FindWorkload(name);
      // D reads the latest keys where the others read popular ones.
      const bool latest = workload.distribution == Distribution::kLatest && distribution == Distribution::kZipfian;
      const Distribution drawn = latest ? workload.distribution : distribution;
      for (const System system : kSystems) {
        Point point = PointOf(options, system, workload, drawn);
        point.label =
            absl::StrFormat("%s %s", absl::AsciiStrToUpper(name), ycsb::kDistributionNames[static_cast<size_t>(drawn)]);
        point.x = static_cast<double>(e.points.size());
        e.points.push_back(point);
      }
    }
  }
  e.notes = {
      "The paper's text gives factors only; they are among the claims. FG, Sherman and ROLEX change the index by "
      "verbs; EMT-D calls a memory node for everything, XStore-D for updates and inserts.",
      "Every system reads values where the index leads: they lie in its entries. A GET of ROLEX brings line 0 of the "
      "leaf and the line where its model predicts the key, one of Sherman or FG a leaf of 448 bytes (the paper's: 1 "
      "KB), one of XStore-D the one or two lines where the key is predicted.",
  };
  return e;
}

}  // namespace gannet::experiments::rolex
