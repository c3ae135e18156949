// Memory of a client's cache, what it keeps, and distributions of keys.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "lab/experiments/xstore/xstore.h"

namespace gannet::experiments::xstore {
namespace {

using index::XCacheMode;
using ycsb::Distribution;
using ycsb::KeyForm;

struct CacheRow {
  const char* label;
  XCacheMode cache;
  Distribution distribution;
  double paper;
  const char* source;
};

// The paper's 100M keys with 100K to 20M sub-models.
constexpr uint64_t kFig15KeysPerSubModel[] = {1000, 200, 50, 5};

constexpr CacheRow kCaches[] = {
    {"top model", XCacheMode::kTopOnly, Distribution::kUniform, 40, "section 7.6: about 40 M/s"},
    {"models", XCacheMode::kModelOnly, Distribution::kUniform, 0.74 * 78,
     "section 7.6: 74% of a whole-index cache's 78 M/s"},
    {"whole", XCacheMode::kWhole, Distribution::kUniform, 82, "section 7.2"},
    {"top model", XCacheMode::kTopOnly, Distribution::kZipfian, 0, ""},
    {"models", XCacheMode::kModelOnly, Distribution::kZipfian, 0, ""},
    {"whole", XCacheMode::kWhole, Distribution::kZipfian, 82 * 0.82, "section 7.2: 18% below uniform"},
};

struct FormRow {
  KeyForm form;
  uint64_t keys_per_sub_model;
  double paper;
  const char* source;
};

// The paper's 100M keys with 500K, 2M and 20M sub-models.
constexpr FormRow kForms[] = {
    {KeyForm::kLinear, 200, 82, "section 7.6: 500K are enough for the peak"},
    {KeyForm::kLinear, 50, 0, ""},
    {KeyForm::kLinear, 5, 0, ""},
    {KeyForm::kNoised, 200, 0, ""},
    {KeyForm::kNoised, 50, 61, "section 7.2, footnote 9: with 2M"},
    {KeyForm::kNoised, 5, 0, ""},
    {KeyForm::kOsmLike, 200, 0, ""},
    {KeyForm::kOsmLike, 50, 0, ""},
    {KeyForm::kOsmLike, 5, 80, "section 7.7: with about 20M"},
};

}  // namespace

Experiment Fig15a(const Options& options) {
  Experiment e = NewExperiment("fig15a", "Fig. 15a: memory of a client's cache, by the number of sub-models",
                               Chart::kBars, "keys per sub-model");
  for (const uint64_t keys_per_sub_model : kFig15KeysPerSubModel) {
    Point point;
    point.series = "linear";
    point.label = absl::StrFormat("%d keys per sub-model", keys_per_sub_model);
    point.x = static_cast<double>(keys_per_sub_model);
    point.options = PaperRack(options, 'c', Distribution::kUniform);
    point.options.sub_models = std::max<uint64_t>(1, options.keys / keys_per_sub_model);
    e.points.push_back(point);
  }
  e.notes = {"The memory is among the claims."};
  return e;
}

Experiment Fig15b(const Options& options) {
  Experiment e = NewExperiment("fig15b", "Fig. 15b, c: what a client keeps of the model, YCSB C", Chart::kBars,
                               "kept by a client");
  for (const CacheRow& row : kCaches) {
    Point point;
    point.series = row.distribution == Distribution::kUniform ? "uniform" : "zipfian";
    point.label = row.label;
    point.x = static_cast<double>(row.cache);
    point.options = PaperRack(options, 'c', row.distribution);
    point.options.cache = row.cache;
    if (row.paper > 0) point.paper = PaperValue{row.paper, row.source};
    e.points.push_back(point);
  }
  return e;
}

Experiment Fig15d(const Options& options) {
  Experiment e = NewExperiment("fig15d", "Fig. 15d: key distributions and sub-models, YCSB C, uniform", Chart::kBars,
                               "keys per sub-model");
  for (const FormRow& row : kForms) {
    Point point;
    point.series = std::string(ycsb::kKeyFormNames[static_cast<size_t>(row.form)]);
    point.label = absl::StrFormat("%d keys per sub-model", row.keys_per_sub_model);
    point.x = static_cast<double>(row.keys_per_sub_model);
    point.options = PaperRack(options, 'c', Distribution::kUniform);
    point.options.key_form = row.form;
    point.options.sub_models = std::max<uint64_t>(1, options.keys / row.keys_per_sub_model);
    if (row.paper > 0) point.paper = PaperValue{row.paper, row.source};
    e.points.push_back(point);
  }
  e.notes = {"osm-like is generated: stretches as uneven as the longitudes of a map. The paper took Open Street Map."};
  return e;
}

}  // namespace gannet::experiments::xstore
