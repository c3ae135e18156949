// Figs. 23 and 24: trees of more rectangles, and of larger nodes.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "lab/experiments/catfish/catfish.h"

namespace gannet::experiments::catfish {
namespace {

constexpr uint64_t kRectangles[] = {10'000, 100'000, 1'000'000, 10'000'000};
constexpr uint32_t kNodeEntries[] = {15, 30, 70, 130};

// The rack with half of the clients, as in the paper's section 5.3.
SpatialRackOptions HalfRack(const Options& options) {
  SpatialRackOptions rack = Rack(options);
  rack.clients = std::max(1, rack.clients / 2);
  return rack;
}

}  // namespace

Experiment Fig23(const Options& options) {
  Experiment e = NewExperiment("fig23", "Fig. 23: number of rectangles (R*-tree, only searches, power law)",
                               Chart::kLines, "rectangles");
  SpatialRackOptions rack = HalfRack(options);
  // Sizes of rectangles and windows stay as they are when their number grows, as in the paper.
  rack.data.most_edge = 1e-4;
  rack.data.windows = {.most = 1e-2, .least = 1e-5};
  for (const uint64_t rectangles : kRectangles) {
    // Each number takes four times the memory and the time of the default, at most.
    if (rectangles != kRectangles[0] && rectangles > 4 * options.keys) continue;
    rack.data.rectangles = rectangles;
    AddWays(WithCommas(rectangles), static_cast<double>(rectangles), rack, &e);
  }
  e.notes = {"Numbers above four times --keys are left out; the paper's last one is 10,000,000."};
  return e;
}

Experiment Fig24(const Options& options) {
  Experiment e = NewExperiment("fig24", "Fig. 24: entries of a node (R*-tree, only searches, power law)", Chart::kLines,
                               "entries of a node");
  SpatialRackOptions rack = HalfRack(options);
  rack.data.windows = PowerLaw(options).windows;
  for (const uint32_t entries : kNodeEntries) {
    rack.tree.node_entries = entries;
    AddWays(absl::StrFormat("%d entries", entries), entries, rack, &e);
  }
  return e;
}

}  // namespace gannet::experiments::catfish
