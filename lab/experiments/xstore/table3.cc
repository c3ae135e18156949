// YCSB with and without a log of the server's writes.
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "lab/experiments/xstore/xstore.h"

namespace gannet::experiments::xstore {
namespace {

using ycsb::DurabilityMode;

struct Table3Row {
  char workload;
  double without;  // million per second
  double with;
};
constexpr Table3Row kTable3Rows[] = {{'a', 41, 31}, {'b', 80, 78}, {'c', 82, 82}, {'d', 53, 51}, {'e', 10.2, 9.9}, {'f', 36, 33}};

struct Series {
  const char* name;
  DurabilityMode durability;
  const char* disk;
  std::string_view workloads;
  double windows;
};
// Windows: several group commits, after which a client that waits goes on.
constexpr Series kSeries[] = {
    {kNoLog, DurabilityMode::kNone, "", "abcdef", 4},
    {kLog, DurabilityMode::kAsync, "nvme", "abcdef", 4},
    // Slower than the server writes in these two: it takes a while until the buffers are full.
    {kSlowLog, DurabilityMode::kAsync, "sata-ssd", "af", 16},
    {"log, clients wait", DurabilityMode::kSync, "nvme", "abdf", 10},
};

}  // namespace

Experiment Table3(const Options& options) {
  Experiment e = NewExperiment("table3", "Table 3: the log of the server's writes, uniform", Chart::kBars, "workload");
  for (const Series& series : kSeries) {
    for (const Table3Row& row : kTable3Rows) {
      if (series.workloads.find(row.workload) == std::string_view::npos) continue;
      Point point;
      point.series = series.name;
      point.label = absl::AsciiStrToUpper(std::string(1, row.workload));
      point.x = static_cast<double>(&row - kTable3Rows);
      point.options = PaperRack(options, row.workload, ycsb::Distribution::kUniform);
      bench::YcsbOptions& o = point.options;
      o.durability = series.durability;
      o.disk = series.disk;
      *o.warmup *= series.windows;
      *o.duration *= series.windows;
      if (series.durability == DurabilityMode::kNone) point.paper = PaperValue{row.without, "table 3"};
      if (series.durability == DurabilityMode::kAsync) point.paper = PaperValue{row.with, "table 3"};
      e.points.push_back(point);
    }
  }
  e.notes = {
      "The server logs the updates and inserts that it does: key, value and version of each, from a buffer of each "
      "worker, in batches (group commits). A write is answered when it is in the buffer, as in the paper, whose log is "
      "Masstree's. With \"clients wait\" the client then waits until it is durable.",
      "The disks are modelled by their bandwidth and the time of a durable write; the paper does not name its SSD. "
      "What was loaded is not logged.",
  };
  return e;
}

}  // namespace gannet::experiments::xstore
