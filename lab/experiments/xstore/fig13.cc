// Production workloads with many writes, and more and more servers.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "lab/experiments/xstore/xstore.h"

namespace gannet::experiments::xstore {
namespace {

using ycsb::Distribution;

// Nutanix's workloads: 57% updates, 41% reads, 2% scans (section 7.1).
constexpr ycsb::Mix kProduction = {41, 57, 0, 2, 0};

struct Fig13Row {
  int servers;
  Distribution distribution;
  double paper;
  const char* source;
};

constexpr Fig13Row kServers[] = {
    {1, Distribution::kUniform, 0, ""}, {2, Distribution::kUniform, 0, ""},
    {3, Distribution::kUniform, 0, ""}, {6, Distribution::kUniform, 145, "section 7.4: bound by the clients"},
    {1, Distribution::kZipfian, 0, ""}, {2, Distribution::kZipfian, 0, ""},
    {3, Distribution::kZipfian, 0, ""}, {6, Distribution::kZipfian, 92, "section 7.4: 35% are for one server"},
};

}  // namespace

Experiment Fig13a(const Options& options) {
  Experiment e = NewExperiment("fig13a", "Fig. 13a: production workloads, 57% updates, 41% reads, 2% scans",
                               Chart::kBars, "distribution of keys");
  for (const Distribution distribution : {Distribution::kUniform, Distribution::kZipfian}) {
    for (const System system : {System::kXStore, System::kRpc}) {
      Point point;
      point.series = SeriesOf(system);
      point.label = std::string(ycsb::kDistributionNames[static_cast<size_t>(distribution)]);
      point.options = PaperRack(options, 'a', distribution);
      point.options.mix = kProduction;
      Use(system, &point.options);
      e.points.push_back(point);
    }
  }
  e.notes = {"The paper has two traces of different skew, which are not public. Here keys are drawn as in YCSB."};
  return e;
}

// The paper's servers have two NICs each, with a part of the keys for each NIC. So a NIC is a server of its own here,
// with the half of the cores; and the clients' machines are 26 halves of their 13.
Experiment Fig13b(const Options& options) {
  Experiment e =
      NewExperiment("fig13b", "Fig. 13b: YCSB C on more and more servers of one NIC each", Chart::kLines, "servers");
  for (const Fig13Row& row : kServers) {
    Point point;
    point.series = std::string(ycsb::kDistributionNames[static_cast<size_t>(row.distribution)]);
    point.label = absl::StrFormat("%d server%s", row.servers, row.servers == 1 ? "" : "s");
    point.x = row.servers;
    bench::YcsbOptions& o = point.options = PaperRack(options, 'c', row.distribution);
    o.servers = row.servers;
    o.nic = "cx4-100g";
    o.server_threads = std::max(1, o.server_threads / 2);
    o.clients.machines = std::max(1, 2 * (o.clients.machines - 2));
    o.clients.threads = std::max(1, o.clients.threads / 2);
    if (row.paper > 0) point.paper = PaperValue{row.paper, row.source};
    e.points.push_back(point);
  }
  e.notes = {"The paper has 600M keys, on up to six NICs of three machines."};
  return e;
}

}  // namespace gannet::experiments::xstore
