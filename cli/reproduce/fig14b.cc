// Reads beside a machine that inserts at a given speed.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "cli/reproduce/experiment.h"

namespace gannet::cli {
namespace {

struct Row {
  uint64_t insert_rate;
  double paper;
  const char* source;
};

constexpr Row kRows[] = {
    {0, 61, "section 7.5"},
    {500'000, 0, ""},
    {1'000'000, 0, ""},
    {2'000'000, 0, ""},
    {2'800'000, 61 * 0.87, "section 7.5: 13% less, with two training threads"},
};
// The paper's 2M for 100M keys.
constexpr uint64_t kKeysPerSubModel = 50;

}  // namespace

Experiment Fig14b(const ReproduceOptions& options) {
  Experiment e;
  e.id = "fig14b";
  e.title = "Fig. 14b: uniform reads beside inserts";
  e.chart = Chart::kLines;
  e.x_axis = "million inserts per second asked for";
  for (const Row& row : kRows) {
    Point point;
    point.series = "XStore";
    point.x = static_cast<double>(row.insert_rate) * 1e-6;
    point.label = absl::StrFormat("%.1fM inserts/s", point.x);
    point.options = PaperRack(options, 'c', ycsb::Distribution::kUniform);
    point.options.key_form = ycsb::KeyForm::kNoised;
    point.options.sub_models = std::max<uint64_t>(1, options.keys / kKeysPerSubModel);
    point.options.insert_rate = row.insert_rate;
    if (row.paper > 0) point.paper = PaperValue{row.paper, row.source};
    e.points.push_back(point);
  }
  e.notes = {
      "All operations are counted, as for the other figures; one machine inserts in place of reading (but at 0).",
      "The window is short: it shows inserts, stale models and their repair, not growth over a minute.",
  };
  return e;
}

}  // namespace gannet::cli
