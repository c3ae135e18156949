// Values in the leaves, and values elsewhere that the leaves name.
#include "absl/strings/str_format.h"
#include "lab/experiments/xstore/xstore.h"

namespace gannet::experiments::xstore {
namespace {

constexpr int kValueBytes[] = {8, 64, 128, 256, 512, 1024};

}  // namespace

Experiment Fig16a(const Options& options) {
  Experiment e = NewExperiment("fig16a", "Fig. 16a: inline and indirect values, YCSB C, uniform", Chart::kLines,
                               "bytes of a value");
  for (const bool in_leaf : {true, false}) {
    for (const int bytes : kValueBytes) {
      if (in_leaf && bytes > 8) continue;
      Point point;
      point.series = in_leaf ? "inline" : "indirect";
      point.label = absl::StrFormat("%d bytes", bytes);
      point.x = bytes;
      point.options = PaperRack(options, 'c', ycsb::Distribution::kUniform);
      point.options.inline_values = in_leaf;
      point.options.value_bytes = bytes;
      if (in_leaf) point.paper = PaperValue{82, "section 7.2: values of 8 bytes are inline"};
      e.points.push_back(point);
    }
  }
  e.notes = {
      "A leaf of ours has room for a value of 8 bytes in the place of a record's address; larger ones are indirect. "
      "The paper's leaves may hold larger ones.",
      "With an inline value, a GET of the paper READs the leaf's keys and then the value; ours READs the line of the "
      "leaf that has both. All other figures here have indirect values: records, which transactions need.",
  };
  return e;
}

}  // namespace gannet::experiments::xstore
