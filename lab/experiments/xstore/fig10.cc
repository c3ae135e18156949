// YCSB A-F: one-sided reads through the learned cache against a server that does everything.
#include <iterator>
#include <string>

#include "lab/experiments/xstore/xstore.h"

namespace gannet::experiments::xstore {
namespace {

using ycsb::Distribution;

struct Fig10Row {
  char workload;
  Distribution distribution;
  double xstore;  // million per second; 0: the text does not say
  const char* xstore_source;
  double rpc;  // DrTM-Tree
  const char* rpc_source;
};

constexpr Fig10Row kFig10Rows[] = {
    {'a', Distribution::kUniform, 41, "table 3", 0, ""},
    {'b', Distribution::kUniform, 80, "table 3", 0, ""},
    {'c', Distribution::kUniform, 82, "section 7.2 and table 3", 82 / 3.7, "section 7.2: 82 M/s is 3.7x DrTM-Tree"},
    {'d', Distribution::kUniform, 53, "section 7.2 and table 3", 0, ""},
    {'e', Distribution::kUniform, 10.2, "table 3", 0, ""},
    {'f', Distribution::kUniform, 36, "table 3", 0, ""},
    {'a', Distribution::kZipfian, 0, "", 0, ""},
    {'b', Distribution::kZipfian, 0, "", 0, ""},
    {'c', Distribution::kZipfian, 82 * 0.82, "section 7.2: 18% below uniform", 82 * 0.82 / 2.5,
     "section 7.2: XStore is 2.5x DrTM-Tree"},
    {'d', Distribution::kLatest, 48, "section 7.2", 0, ""},
    {'e', Distribution::kZipfian, 0, "", 0, ""},
    {'f', Distribution::kZipfian, 0, "", 0, ""},
};

// A scan takes about this many times as long as a read.
constexpr int kScanWindows = 4;

Point PointOfRow(const Options& options, const Fig10Row& row, System system) {
  Point point;
  point.series = SeriesOf(system);
  point.label = std::string(1, static_cast<char>(row.workload - 'a' + 'A')) + " " +
                std::string(ycsb::kDistributionNames[static_cast<size_t>(row.distribution)]);
  point.x = static_cast<double>(&row - std::begin(kFig10Rows));
  point.options = PaperRack(options, row.workload, row.distribution);
  if (row.workload == 'b') point.options.mix = ycsb::Mix{90, 10, 0, 0, 0};
  Use(system, &point.options);
  if (row.workload == 'e') {
    *point.options.warmup *= kScanWindows;
    *point.options.duration *= kScanWindows;
  }
  if (system == System::kXStore && row.xstore > 0) point.paper = PaperValue{row.xstore, row.xstore_source};
  if (system == System::kRpc && row.rpc > 0) point.paper = PaperValue{row.rpc, row.rpc_source};
  return point;
}

}  // namespace

Experiment Fig10(const Options& options) {
  Experiment e =
      NewExperiment("fig10", "Fig. 10: YCSB A-F, uniform and skewed", Chart::kBars, "workload and distribution");
  for (const Fig10Row& row : kFig10Rows) {
    for (const System system : {System::kXStore, System::kRpc}) e.points.push_back(PointOfRow(options, row, system));
    // Scans do not use location caches.
    if (row.workload != 'e') e.points.push_back(PointOfRow(options, row, System::kLocations));
  }
  e.notes = {
      "E is bound by the server's links. A scan of about 50 records brings 6.0 KB: a line for each record, and seven "
      "or eight leaves of six lines, half filled. The paper's values lie in the leaves, about 2 KB in all. Records "
      "that lie side by side, as loaded ones do, come with one READ: a scan takes 11 READs; with one for each record "
      "it would be 59.",
      "The modelled server answers 27 M calls/s, the paper's DrTM-Tree about 22: so A and F, whose updates are calls, "
      "are above the paper's values.",
      "B has 10% updates, as in the paper (table 1); in YCSB itself it has 5%.",
      "The paper's RPC is DrTM-Tree. Where its text gives a factor only as 'up to', there is no value here.",
      "In the paper a value lies in the leaf, and a GET reads the leaf's keys (136 bytes) and the value (8 bytes). "
      "Here a value is a record of one cache line, and a GET reads only the one or two lines of the leaf where the key "
      "is predicted.",
      "XStore + locations is not in the paper: clients also remember where records are, in 16 bytes for each key on "
      "each machine, filled before the run; the key in the record tells whether the place still holds it. A GET is one "
      "READ.",
  };
  return e;
}

}  // namespace gannet::experiments::xstore
