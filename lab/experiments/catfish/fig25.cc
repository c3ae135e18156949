// Figs. 25 and 26: searches whose results are refined, and streets.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "lab/experiments/catfish/catfish.h"

namespace gannet::experiments::catfish {
namespace {

constexpr size_t kGeometryBytes[] = {64, 256, 1024};
// Few searches fit on the link, so every client needs more time until it has measured both ways.
constexpr int kLonger = 2;

}  // namespace

Experiment Fig25(const Options& options) {
  Experiment e = NewExperiment("fig25", "Fig. 25: results that are refined (R*-tree, only searches, large windows)",
                               Chart::kBars, "bytes of a rectangle's geometry");
  SpatialRackOptions rack = Rack(options);
  rack.clients = std::max(1, rack.clients / 2);
  rack.data.windows = ScaleOf(options, 2e-2, "2e-2").windows;
  rack.warmup *= kLonger;
  rack.duration *= kLonger * kLonger;
  for (const size_t bytes : kGeometryBytes) {
    rack.payload_bytes = bytes;
    for (const int cores : {kScarceCores, kPaperCores}) {
      rack.server_threads = cores;
      AddWays(absl::StrFormat("%d bytes, %d cores", bytes, cores), static_cast<double>(bytes), rack, &e);
    }
  }
  e.notes = {
      "In the paper the server tests which of the rectangles that it found meet the window with their exact geometry, "
      "and by calls only 25 to 100% of them are returned. Searches here have no filter at the owner: they return all "
      "rows with their geometry, and the client tests it. So what varies is the size of the geometry. What the figure "
      "shows is the same: where results fill the link, READs of nodes cost more than they save.",
      "Windows up to 2e-2 (the paper: 0.1), which meet about 200 rectangles: fewer bytes, and the same bound.",
  };
  return e;
}

Experiment Fig26(const Options& options) {
  Experiment e = NewExperiment("fig26", "Fig. 26: streets (R*-tree, only searches)", Chart::kLines, "clients");
  SpatialRackOptions rack = Rack(options);
  rack.data.kind = DataKind::kRoads;
  for (const int clients : ClientCounts(rack.clients)) {
    rack.clients = clients;
    AddWays(absl::StrFormat("%d clients", rack.clients), rack.clients, rack, &e);
  }
  e.notes = {
      "The paper has rea02, 1,888,012 streets of California. These are generated: 94 regions with towns of different "
      "density, whose streets are mostly parallel to an axis, inserted in rea02's order (region by region, and in each "
      "from north to south and from west to east). Searches meet 50 to 150 rectangles, as those of rea02 do.",
  };
  return e;
}

}  // namespace gannet::experiments::catfish
