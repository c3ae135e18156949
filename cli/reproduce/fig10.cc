// YCSB A-F: one-sided reads through the learned cache against a server that does everything.
#include <iterator>
#include <string>

#include "cli/reproduce/experiment.h"

namespace gannet::cli {
namespace {

using ycsb::Distribution;

struct Row {
  char workload;
  Distribution distribution;
  double xstore;  // million per second; 0: the text does not say
  const char* xstore_source;
  double rpc;  // DrTM-Tree
  const char* rpc_source;
};

constexpr Row kRows[] = {
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

Point PointOf(const ReproduceOptions& options, const Row& row, bool one_sided) {
  Point point;
  point.series = one_sided ? "XStore" : "RPC";
  point.label = std::string(1, static_cast<char>(row.workload - 'a' + 'A')) + " " +
                std::string(ycsb::kDistributionNames[static_cast<size_t>(row.distribution)]);
  point.x = static_cast<double>(&row - std::begin(kRows));
  point.options = PaperRack(options, row.workload, row.distribution);
  point.options.paths.reads = one_sided ? ycsb::Path::kOneSided : ycsb::Path::kCall;
  const double paper = one_sided ? row.xstore : row.rpc;
  if (paper > 0) point.paper = PaperValue{paper, one_sided ? row.xstore_source : row.rpc_source};
  return point;
}

}  // namespace

Experiment Fig10(const ReproduceOptions& options) {
  Experiment e;
  e.id = "fig10";
  e.title = "Fig. 10: YCSB A-F, uniform and skewed";
  e.x_axis = "workload and distribution";
  for (const Row& row : kRows) {
    for (const bool one_sided : {true, false}) e.points.push_back(PointOf(options, row, one_sided));
  }
  e.notes = {
      "The paper's RPC is DrTM-Tree. Where its text gives a factor only as 'up to', there is no value here.",
      "A value of the paper lies in the leaf and a GET reads keys (136 bytes) and value (8 bytes) of it. Ours is a "
      "record of its own, one cache line, and a leaf is read whole, with what a one-sided reader needs to tell a torn "
      "one: 384 bytes in the same two READs. So the server's links are full at a lower throughput.",
  };
  return e;
}

}  // namespace gannet::cli
