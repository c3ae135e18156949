// Figs. 11 to 22: the three variants of the R-tree, with windows of three scales and with more and more clients.
#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_format.h"
#include "lab/experiments/catfish/catfish.h"

namespace gannet::experiments::catfish {
namespace {

// Million operations per second with 256 clients; 0: the text does not say.
struct PaperRow {
  double calls, one_sided, adaptive;
};

struct Figure {
  const char* id;
  const char* title;
  index::CatfishVariant variant;
  int insert_percent;
  std::array<PaperRow, 3> paper;  // by PaperScales
  const char* section;
};

// The numbers of a row in the order of kWays.
std::array<double, 3> InOrder(const PaperRow& row) {
  return {row.calls, row.one_sided, row.adaptive};
}

void AddPaper(const PaperRow& row, const char* section, Experiment* e) {
  const std::array<double, 3> values = InOrder(row);
  for (size_t i = 0; i < values.size(); ++i) {
    Point& point = e->points[e->points.size() - values.size() + i];
    if (values[i] > 0) point.paper = PaperValue{values[i], section};
  }
}

Experiment Of(const Options& options, const Figure& figure) {
  Experiment e = NewExperiment(figure.id, figure.title, Chart::kBars, "windows, clients");
  SpatialRackOptions rack = Rack(options);
  rack.tree.variant = figure.variant;
  rack.insert_percent = figure.insert_percent;
  const int most = rack.clients;
  const std::vector<Scale> scales = PaperScales(options);
  for (size_t i = 0; i < scales.size(); ++i) {
    rack.data.windows = scales[i].windows;
    for (const int clients : ClientCounts(most)) {
      rack.clients = clients;
      AddWays(absl::StrFormat("%s, %d clients", scales[i].name, rack.clients), rack.clients, rack, &e);
    }
    AddPaper(figure.paper[i], figure.section, &e);
  }
  rack.server_threads = kPaperCores;
  // Several times as many searches in the same time.
  rack.warmup /= 5;
  rack.duration /= 2;
  for (const Scale& scale : scales) {
    rack.data.windows = scale.windows;
    AddWays(absl::StrFormat("%s, %d clients, %d cores", scale.name, rack.clients, kPaperCores), rack.clients, rack, &e);
  }
  e.notes = {
      absl::StrFormat(
          "Each request is a transaction with its validation, and a search returns rows: so in addition to what the "
          "paper's searches do, each READs the words of the nodes and rows that it met once more before it commits, "
          "and a one-sided search READs its rows. A request that meets a conflict is repeated; its latency is that of "
          "all attempts. Our calls and READs have the optimisations that only Catfish itself has in the paper: "
          "event-based calls, and all READs of a level at once."),
      absl::StrFormat("%d cores: a search takes our server's CPU 1 to 5 us, the paper's 37 to 49 us (%d cores, 576 to "
                      "764 thousand per second). With %d cores CPU time and network are as scarce as in the paper, "
                      "compared with each other. The points with %d cores show the paper's number of cores.",
                      kScarceCores, kPaperCores, kScarceCores, kPaperCores),
  };
  if (figure.insert_percent > 0) {
    e.notes.emplace_back(
        "Inserted rectangles are as large as windows, as in the paper. The paper's run inserts 256,000, this one a few "
        "thousand, so trees and their boxes grow less.");
  }
  return e;
}

}  // namespace

Experiment Fig11(const Options& options) {
  return Of(options, {.id = "fig11",
                      .title = "Figs. 11 and 12: R*-tree, only searches",
                      .variant = index::CatfishVariant::kRStar,
                      .insert_percent = 0,
                      .paper = {{{0.57553, 0.533, 1.23935}, {0.61037, 0.269, 0.77989}, {0.72332, 0.404, 1.12484}}},
                      .section = "section 5.2.1; the fixed ways in 5.2.2"});
}
Experiment Fig13(const Options& options) {
  return Of(options, {.id = "fig13",
                      .title = "Figs. 13 and 14: R*-tree, 10% inserts",
                      .variant = index::CatfishVariant::kRStar,
                      .insert_percent = 10,
                      .paper = {},
                      .section = ""});
}
Experiment Fig15(const Options& options) {
  return Of(options, {.id = "fig15",
                      .title = "Figs. 15 and 16: basic R-tree, only searches",
                      .variant = index::CatfishVariant::kGuttman,
                      .insert_percent = 0,
                      .paper = {{{0.63891, 0.19375, 0}, {0.55367, 0.10748, 0}, {0.76403, 0.14758, 0}}},
                      .section = "section 5.2.2"});
}
Experiment Fig17(const Options& options) {
  return Of(options, {.id = "fig17",
                      .title = "Figs. 17 and 18: basic R-tree, 10% inserts",
                      .variant = index::CatfishVariant::kGuttman,
                      .insert_percent = 10,
                      .paper = {},
                      .section = ""});
}
Experiment Fig19(const Options& options) {
  return Of(options, {.id = "fig19",
                      .title = "Figs. 19 and 20: Hilbert R-tree, only searches",
                      .variant = index::CatfishVariant::kHilbert,
                      .insert_percent = 0,
                      .paper = {{{0, 0.74567, 1.07206}, {0.61695, 0.38374, 0.89463}, {0, 0.56094, 1.03755}}},
                      .section = "section 5.2.3"});
}
Experiment Fig21(const Options& options) {
  return Of(options, {.id = "fig21",
                      .title = "Figs. 21 and 22: Hilbert R-tree, 10% inserts",
                      .variant = index::CatfishVariant::kHilbert,
                      .insert_percent = 10,
                      .paper = {{{0, 0, 0.75510}, {0, 0, 0.63384}, {0, 0, 0.68580}}},
                      .section = "section 5.2.3: the peak"});
}

}  // namespace gannet::experiments::catfish
