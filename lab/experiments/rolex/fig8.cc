// Inserts only, and mixes of reads and inserts.
#include <string>

#include "absl/strings/str_format.h"
#include "lab/experiments/rolex/rolex.h"

namespace gannet::experiments::rolex {
namespace {

using ycsb::Distribution;

}  // namespace

std::string InsertsLabel(int percent) {
  return absl::StrFormat("%d%% inserts", percent);
}

Experiment Fig8a(const Options& options) {
  Experiment e = NewExperiment("fig8a", "Fig. 8a, b: inserts only", Chart::kBars, "where new keys lie");
  for (const ycsb::InsertPlace place : {ycsb::InsertPlace::kSpread, ycsb::InsertPlace::kAppend}) {
    for (const System system : kSystems) {
      Point point = PointOf(options, system, *ycsb::FindWorkload("load"), Distribution::kUniform);
      point.options.inserts = place;
      point.label = std::string(ycsb::kInsertPlaceNames[static_cast<size_t>(place)]);
      point.x = static_cast<double>(place);
      e.points.push_back(point);
    }
  }
  e.notes = {
      "spread: new keys lie evenly between the loaded ones. append: each is the greatest so far, so all lie on one "
      "memory node. The paper shows spread ones, and says of ascending ones that ROLEX is slow when several machines "
      "contend for the lock of one leaf (4.3).",
  };
  return e;
}

Experiment Fig8c(const Options& options) {
  Experiment e = NewExperiment("fig8c", "Fig. 8c, d: mixes of reads and inserts", Chart::kLines, "percent of inserts");
  for (const System system : kSystems) {
    for (const int percent : kPercentOfInserts) {
      Point point = PointOf(options, system, *ycsb::FindWorkload("c"), Distribution::kUniform);
      point.options.mix = ycsb::Mix{100 - percent, 0, percent, 0, 0};
      point.label = InsertsLabel(percent);
      point.x = percent;
      e.points.push_back(point);
    }
  }
  return e;
}

}  // namespace gannet::experiments::rolex
