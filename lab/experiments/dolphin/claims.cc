// The paper's factors, round trips and memory.
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lab/experiments/dolphin/dolphin.h"
#include "lab/experiments/path_series.h"
#include "nlohmann/json.hpp"

namespace gannet::experiments::dolphin {
namespace {

using ycsb::Distribution;

constexpr char kCombined[] =
    "in both trees a machine's threads combine their updates of one leaf; those of the paper's Sherman hand its lock "
    "on";
constexpr char kInnerNodes[] =
    "leaves of 448 bytes need more inner nodes than the paper's of 1 KB: those of our tree take several bytes per key, "
    "so with this cache it READs inner nodes, where the paper's does not";
constexpr char kSmallLeaf[] = "our Sherman READs leaves of 448 bytes, the paper's of 1 KB";
constexpr char kAtomics[] =
    "an insert takes four atomics, ours of Sherman one CAS; and it combines inserts of a machine into one leaf";
constexpr char kHalfFull[] =
    "leaves that are half full have 25 keys; a scan READs one leaf more than it expects to need";
constexpr char kPopularLink[] =
    "a READ of 1 KB takes longer than one of our Sherman's 448 bytes, and a machine has at most six of a leaf in "
    "flight";
constexpr char kSplits[] =
    "the mean has splits, and the clients that find a leaf split by others; without them it is 3 (range-write)";

const Experiment* FindExperiment(const std::vector<Experiment>& experiments, std::string_view id) {
  const auto at = std::ranges::find(experiments, id, &Experiment::id);
  return at == experiments.end() ? nullptr : &*at;
}

const Point* Find(const Experiment& experiment, System system, std::string_view label) {
  return FindPoint(experiment, NameOf(system), label);
}

// Throughput of a series of Dolphin against Sherman's at one label. Nothing is added if one of the two has no point
// there.
void AddFactor(const Experiment& experiment, const std::string& series, const std::string& label,
               const std::string& what, double paper, const char* source, const char* note,
               std::vector<Claim>* claims) {
  const Point* const ours = FindPoint(experiment, series, label);
  const Point* const other = Find(experiment, System::kSherman, label);
  if (ours == nullptr || other == nullptr) return;
  claims->push_back(Claim::Of(absl::StrFormat("%s against Sherman, %s", series, what),
                              RatioOf(ours->measured.mops, other->measured.mops), paper, source, note));
}

void AddCaches(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const std::string dolphin = NameOf(System::kDolphin);
  for (const auto& [id, distribution] :
       {std::pair("fig6a", Distribution::kZipfian), {"fig6c", Distribution::kUniform}}) {
    const Experiment* const fig = FindExperiment(experiments, id);
    if (fig == nullptr) continue;
    const std::string workload = absl::StrCat("YCSB ", WorkloadLabel(kUpdates, distribution));
    const auto what = [&](int megabytes) { return absl::StrCat(workload, ", ", CacheLabel(megabytes)); };
    AddFactor(*fig, dolphin, CacheLabel(200), what(200), 1.16, "section IV-B: 1.16 to 3.26 above the others",
              kInnerNodes, claims);
    if (distribution == Distribution::kUniform) continue;
    AddFactor(*fig, dolphin, CacheLabel(800), what(800), 1.51, "section IV-B", kCombined, claims);
    const Point* const small = Find(*fig, System::kDolphin, CacheLabel(50));
    const Point* const large = Find(*fig, System::kSherman, CacheLabel(200));
    if (small == nullptr || large == nullptr) continue;
    claims->push_back(
        Claim::Of(absl::StrFormat("Dolphin with a cache of 50 MB against Sherman with one of 200 MB, %s", workload),
                  RatioOf(small->measured.mops, large->measured.mops), 1, "section IV-B: at least", kInnerNodes));
  }
}

void AddYcsb(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const Experiment* const fig = FindExperiment(experiments, "fig7");
  if (fig == nullptr) return;
  const std::string dolphin = NameOf(System::kDolphin);
  const std::string skewed = WorkloadLabel(kUpdates, Distribution::kZipfian);
  const std::string even = WorkloadLabel(kUpdates, Distribution::kUniform);
  AddFactor(*fig, dolphin, skewed, "YCSB " + skewed, 1.45, "section IV-C: 1.25 to 1.45 above the others", kCombined,
            claims);
  AddFactor(*fig, dolphin, even, "YCSB " + even, 1.16,
            "section IV-B: at least, with a cache of 200 MB; the paper's Sherman has then all of its inner nodes", "",
            claims);
  if (const Point* const ours = Find(*fig, System::kDolphin, skewed); ours != nullptr) {
    claims->push_back(Claim::Of("median latency of Dolphin in us, YCSB " + skewed, ours->measured.p50(), 5.5,
                                "section IV-C", "less is better"));
  }
  const std::string reads = WorkloadLabel(kReads, Distribution::kZipfian);
  for (const int key_lines : {kPaperKeyLines, kSmallKeyLines}) {
    AddFactor(*fig, SeriesOf(key_lines), reads, "YCSB " + reads, 1, "section IV-C: both are the best", kSmallLeaf,
              claims);
  }
  const Point* const ours = Find(*fig, System::kDolphin, reads);
  const Point* const marlin = Find(*fig, System::kMarlin, reads);
  if (ours == nullptr || marlin == nullptr || !ours->measured.p50() || !marlin->measured.p50()) return;
  claims->push_back(Claim::Of("median latency of Marlin above Dolphin's in us, YCSB " + reads,
                              *marlin->measured.p50() - *ours->measured.p50(), 2.4, "section IV-C",
                              "Dolphin READs 1 KB, Marlin 448 bytes and then a record of 64"));
}

// Bytes for each key that the index has at the end.
double BytesPerKey(const nlohmann::json& report, std::initializer_list<const char*> paths) {
  double bytes = 0;
  for (const char* const path : paths) bytes += report.at(nlohmann::json::json_pointer(path)).get<double>();
  return bytes / report.at("index").at("keys").get<double>();
}

void AddLoad(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const Experiment* const fig = FindExperiment(experiments, "fig7c");
  if (fig == nullptr) return;
  AddFactor(*fig, NameOf(System::kDolphin), kInserts.name, "LOAD of random keys", 1, "section IV-C: similar", kAtomics,
            claims);
  for (const Point& point : fig->points) {
    const nlohmann::json report = nlohmann::json::parse(point.measured.report);
    const std::string of = absl::StrFormat("%s, LOAD of random keys", point.series);
    const bool is_sherman = point.series == NameOf(System::kSherman);
    if (!is_sherman) {
      claims->push_back(Claim::Of(absl::StrCat("mean round trips of an insert by ", of),
                                  point.measured.IfMeasured(report.at("all").at("verbs").at("round_trips")), 3,
                                  "section IV-C: an insert needs 3", kSplits));
    }
    claims->push_back(Claim::Of(absl::StrCat("bytes per key at the servers, ", of),
                                BytesPerKey(report, {"/index/registered_bytes", "/index/private_bytes"}),
                                (is_sherman ? 12e9 : 14e9) / kPaperKeys,
                                "table II; the paper does not say which keys. Ours: at most 40", "less is better"));
    claims->push_back(Claim::Of(absl::StrCat("bytes per key in a client's cache, ", of),
                                BytesPerKey(report, {"/clients/cache_bytes"}) / point.options.clients.machines,
                                (is_sherman ? 460e6 : 320e6) / kPaperKeys,
                                "table II; the paper does not say which keys. Ours: at most 1", "less is better"));
  }
}

void AddScans(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const Experiment* const fig = FindExperiment(experiments, "fig8");
  if (fig == nullptr) return;
  const std::string dolphin = NameOf(System::kDolphin);
  AddFactor(*fig, dolphin, kScans.name, "range-only uniform", 1, "section IV-D: close", kSmallLeaf, claims);
  AddFactor(*fig, dolphin, kScansAndInserts.name, "range-write uniform", 1,
            "section IV-D: Dolphin increases slightly, Sherman decreases slightly", kAtomics, claims);
  if (const Point* const both = Find(*fig, System::kDolphin, kScansAndInserts.name); both != nullptr) {
    const nlohmann::json insert =
        nlohmann::json::parse(both->measured.report).at("operations").at("insert").at("verbs");
    const bool measured = insert.at("samples") > 0;
    claims->push_back(Claim::Of("round trips of an insert by Dolphin, range-write uniform, where leaves have room",
                                measured ? std::optional<double>(insert.at("round_trips")) : std::nullopt, 3,
                                "section IV-C: an insert needs 3", "less is better"));
  }
  const Point* const scans = Find(*fig, System::kDolphin, kScans.name);
  if (scans == nullptr) return;
  claims->push_back(Claim::Of("READs of a scan by Dolphin, range-only uniform",
                              scans->measured.IfMeasured(scans->measured.reads_per_operation), 3,
                              "section IV-D: \"only need 2-3\"", kHalfFull));
}

void AddClusters(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const Experiment* const fig = FindExperiment(experiments, "fig9");
  if (fig == nullptr) return;
  AddFactor(*fig, NameOf(System::kDolphin), kCluster8.name, "mix of cluster 8, zipfian 1.74", 1,
            "section IV-E: above the others", kCombined, claims);
  for (const int key_lines : {kPaperKeyLines, kSmallKeyLines}) {
    AddFactor(*fig, SeriesOf(key_lines), kCluster9.name, "reads as in cluster 9, zipfian 1.68", 1,
              "section IV-E: \"Sherman achieves slightly higher throughput\"", kPopularLink, claims);
  }
}

}  // namespace

std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments) {
  std::vector<Claim> claims;
  AddCaches(experiments, &claims);
  AddYcsb(experiments, &claims);
  AddLoad(experiments, &claims);
  AddScans(experiments, &claims);
  AddClusters(experiments, &claims);
  return claims;
}

}  // namespace gannet::experiments::dolphin
