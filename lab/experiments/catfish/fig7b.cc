// Figs. 7b and 8: how searches READ the tree. The index alone, without transactions, as in the paper.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "lab/experiments/catfish/catfish.h"

namespace gannet::experiments::catfish {
Experiment Fig7b(const Options& options) {
  Experiment e =
      NewExperiment("fig7b", "Fig. 7b: all READs of a level at once (R*-tree, one client)", Chart::kBars, "windows");
  SpatialRackOptions rack = Rack(options);
  rack.clients = 1;
  const std::vector<Scale> scales = {ScaleOf(options, 1e-5, "1e-5"), ScaleOf(options, 1e-4, "1e-4"),
                                     ScaleOf(options, 1e-3, "1e-3"), ScaleOf(options, 1e-2, "1e-2")};
  for (const Scale& scale : scales) {
    rack.data.windows = scale.windows;
    const std::string label(scale.name);
    AddIndexPoint(kAllAtOnce, label, 0, rack, {}, &e);
    AddIndexPoint(kOneAtATime, label, 0, rack, {.reads_at_once = 1}, &e);
  }
  e.notes = {"A search without a transaction ends with one more posting: READs of the words of all its nodes."};
  return e;
}

Experiment Fig8(const Options& options) {
  Experiment e = NewExperiment("fig8", "Fig. 8: at most three searches of a machine READ at the same time (R*-tree)",
                               Chart::kBars, "windows, clients of each machine");
  SpatialRackOptions rack = Rack(options);
  rack.server_threads = kPaperCores;
  for (const Scale& scale : {ScaleOf(options, 1e-5, "1e-5"), ScaleOf(options, 1e-2, "1e-2")}) {
    rack.data.windows = scale.windows;
    for (const int threads : {1, 2, 3, 6, 10}) {
      if (threads > options.clients.threads) continue;
      rack.clients = threads * rack.machines;
      const std::string label = absl::StrFormat("%s, %d", scale.name, threads);
      AddIndexPoint(kNoLimit, label, threads, rack, {.offloading = 0}, &e);
      AddIndexPoint(kThreeAtATime, label, threads, rack, {.offloading = 3}, &e);
    }
  }
  e.notes = {
      "In the paper a search beyond the limit waits, and the paper's latency of a search does not grow with the number "
      "of threads. Here it is made by a call, so its latency counts, too.",
      "300,000 rectangles by default (the paper's Fig. 8: 50,000,000).",
  };
  return e;
}

}  // namespace gannet::experiments::catfish
