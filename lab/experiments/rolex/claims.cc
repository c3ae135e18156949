// The paper's claims about its system that are not points of a figure: factors, memory, READs.

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "lab/experiments/path_series.h"
#include "lab/experiments/rolex/rolex.h"

namespace gannet::experiments::rolex {
namespace {

const Experiment* FindExperiment(const std::vector<Experiment>& experiments, std::string_view id) {
  const auto at = std::ranges::find(experiments, id, &Experiment::id);
  return at == experiments.end() ? nullptr : &*at;
}

// ROLEX's throughput against a rival's at one label. Nothing, if one of the two has no point there, or none is
// measured.
std::optional<double> FactorAt(const Experiment& experiment, System rival, std::string_view label) {
  const Point* const rolex = FindPoint(experiment, NameOf(System::kRolex), label);
  const Point* const other = FindPoint(experiment, NameOf(rival), label);
  if (rolex == nullptr || other == nullptr) return std::nullopt;
  return RatioOf(rolex->measured.mops, other->measured.mops);
}

struct Factor {
  System rival;
  double paper;
  const char* note;
};

// One claim for each factor at one place of a figure: the place is in the claim's name, so that a good factor at one
// place does not hide a bad one at another.
void AddFactors(const std::vector<Experiment>& experiments, const char* id, const std::string& label,
                const std::string& what, const char* source, std::initializer_list<Factor> factors,
                std::vector<Claim>* claims) {
  const Experiment* const experiment = FindExperiment(experiments, id);
  if (experiment == nullptr || FindPoint(*experiment, NameOf(System::kRolex), label) == nullptr) return;
  for (const Factor& factor : factors) {
    claims->push_back(Claim::Of(absl::StrFormat("ROLEX against %s, %s", NameOf(factor.rival), what),
                                FactorAt(*experiment, factor.rival, label), factor.paper, source, factor.note));
  }
}

constexpr char kTrees[] =
    "our trees are better rivals than the paper's: their leaves have 448 bytes in place of 1 KB, a change WRITEs only "
    "the lines that it changes, and half of the lowest inner nodes fit into Sherman's cache. A change takes each of "
    "the three two round trips for the same CAS and WRITEs; before it ROLEX READs 180 bytes in one round trip, or a "
    "whole leaf to insert, Sherman 700 bytes in 1.5";
constexpr char kCalls[] =
    "a call costs a memory node's core 0.65 to 0.8 us here, as it does in the paper's ratio for inserts; by verbs our "
    "updates are faster: they READ two lines of the leaf, and no leaf";
constexpr char kPopularLeaf[] =
    "clients change a leaf under its lock, which one of them holds for two round trips; most updates are of the few "
    "most popular leaves, and follow one another there. A call changes a leaf at its owner's core, without a round "
    "trip "
    "under the lock. Why the paper's clients are not held up in this way is not known";
constexpr char kOneLine[] =
    "the more even the keys, the less a client of XStore-D READs beyond the line with its key: here keys have the "
    "quantiles of the distribution, the paper's are samples";
constexpr char kInserting[] =
    "with two operations in flight the clients are the bound, not the memory nodes, and a GET takes one round trip in "
    "both. A core inserts 1.6 million keys per second, so 5% inserts keep it 57% busy, and clients find leaves that "
    "were split by new sub-models. With four in flight the factor is 1.20 (83 against 69 million): then the links of "
    "XStore-D are full, whose GETs READ 490 bytes of random keys, ROLEX's 174";
constexpr char kScans[] =
    "both are bound by the link, and READ all leaves of a scan at once: 1,755 bytes for 50 entries, XStore-D 1,630. A "
    "leaf of ROLEX has a line with the fences, versions and bitmap by which clients change it. The paper's XStore-D "
    "scans less well than ours";

// The paper gives one factor for both distributions of a workload.
void AddYcsb(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const auto add = [&](const std::string& label, const char* source, std::initializer_list<Factor> factors) {
    AddFactors(experiments, "fig7", label, "YCSB " + label, source, factors, claims);
  };
  add("A uniform", "section 4.2: up to",
      {{System::kFg, 2.1, kTrees},
       {System::kSherman, 1.7, kTrees},
       {System::kEmtD, 2.8, kCalls},
       {System::kXStoreD, 1.3, kCalls}});
  add("A zipfian", "section 4.2: up to",
      {{System::kFg, 2.1, kPopularLeaf},
       {System::kSherman, 1.7, kPopularLeaf},
       {System::kEmtD, 2.8, kPopularLeaf},
       {System::kXStoreD, 1.3, kPopularLeaf}});
  for (const char* const label : {"C uniform", "C zipfian"}) {
    add(label, "section 4.2: higher than XStore-D", {{System::kXStoreD, 1, ""}});
  }
  for (const char* const label : {"D uniform", "D latest"}) {
    add(label, "section 4.2: about 1.5 times the others",
        {{System::kFg, 1.5, ""}, {System::kSherman, 1.5, ""}, {System::kXStoreD, 1.5, kInserting}});
  }
  for (const char* const label : {"E uniform", "E zipfian"}) {
    add(label, "section 4.2: 67% above the others",
        {{System::kFg, 1.67, ""}, {System::kSherman, 1.67, ""}, {System::kXStoreD, 1.67, kScans}});
  }
}

void AddInserts(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  AddFactors(experiments, "fig8a", "spread", "inserts only, spread", "section 4.3: up to",
             {{System::kFg, 2.1, kTrees},
              {System::kSherman, 1.8, kTrees},
              {System::kEmtD, 4.5, ""},
              {System::kXStoreD, 4.3, ""}},
             claims);
  for (const int percent : kPercentOfInserts) {
    const std::string label = InsertsLabel(percent);
    AddFactors(experiments, "fig8c", label, "a mix with " + label, "section 4.3: up to",
               {{System::kFg, 2.2, ""}, {System::kSherman, 1.7, ""}}, claims);
  }
}

// Ours: appended keys, all for one leaf of one memory node, against spread ones. The threads of a machine share a lock,
// and one change of a leaf makes some 19 inserts.
void AddAppends(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const Experiment* const experiment = FindExperiment(experiments, "fig8a");
  if (experiment == nullptr) return;
  const Point* const append = FindPoint(*experiment, NameOf(System::kRolex), "append");
  const Point* const spread = FindPoint(*experiment, NameOf(System::kRolex), "spread");
  if (append == nullptr || spread == nullptr) return;
  claims->push_back(Claim::Of(
      "ROLEX: inserts of ascending keys against spread ones", RatioOf(append->measured.mops, spread->measured.mops),
      0.8,
      "ours: at least 0.8; section 4.3: \"low performance when multiple compute nodes contend for the same leaf lock\"",
      ""));
}

void AddForms(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const Experiment* const experiment = FindExperiment(experiments, "fig9");
  if (experiment == nullptr) return;
  for (const Point& point : experiment->points) {
    if (point.series != NameOf(System::kRolex) || !point.label.ends_with("reads")) continue;
    claims->push_back(Claim::Of(absl::StrFormat("ROLEX against XStore-D, %s", point.label),
                                FactorAt(*experiment, System::kXStoreD, point.label), 1,
                                "section 4.3: higher than XStore-D", kOneLine));
  }
}

// The throughput with the most threads against that with the fewest, per thread: 1 scales, 0 does not.
void AddCores(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const Experiment* const experiment = FindExperiment(experiments, "fig10");
  if (experiment == nullptr) return;
  const auto add = [&](System system, const char* load, const char* source) {
    const std::string series = absl::StrFormat("%s, %s", NameOf(system), load);
    const Point* few = nullptr;
    const Point* many = nullptr;
    for (const Point& point : experiment->points) {
      if (point.series != series) continue;
      if (few == nullptr || point.x < few->x) few = &point;
      if (many == nullptr || point.x > many->x) many = &point;
    }
    if (few == nullptr || few == many) return;
    claims->push_back(Claim::Of(absl::StrFormat("%s with %.0f threads against %.0f", series, many->x, few->x),
                                RatioOf(many->measured.mops, few->measured.mops), many->x / few->x, source, ""));
  };
  add(System::kRolex, "reads", "section 4.4: increases with the cores");
  add(System::kRolex, "inserts", "section 4.4: increases with the cores");
}

void AddOneOperation(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const Experiment* const experiment = FindExperiment(experiments, "latency");
  const Point* const read = experiment == nullptr ? nullptr : FindPoint(*experiment, NameOf(System::kRolex), "read");
  if (read == nullptr) return;
  claims->push_back(Claim::Of("bytes of a GET by ROLEX", read->measured.IfMeasured(read->measured.bytes_per_operation),
                              200, "ours: at most 200; the paper READs up to three leaves of 16 pairs, 768 bytes",
                              "less is better"));
}

// Table 1: models and leaf tables, in bytes per key.
void AddMemory(const std::vector<Experiment>& experiments, std::vector<Claim>* claims) {
  const Experiment* const experiment = FindExperiment(experiments, "fig12");
  if (experiment == nullptr) return;
  for (const Point& point : experiment->points) {
    const double bytes = point.measured.cache_bytes / static_cast<double>(point.options.keys);
    if (point.series != NameOf(System::kRolex)) continue;
    claims->push_back(Claim::Of(absl::StrFormat("cache of a client in bytes per key, ROLEX, %s", point.label), bytes,
                                (95.367 + 1.555) * 1.048576 / 100,
                                "table 1: 95.4 MB of leaf tables and 1.6 MB of models for 100M keys",
                                "our leaves are fuller, 14 keys for the paper's 8; an entry of a leaf table has 12 "
                                "bytes, with the leaf's low fence "
                                "and where its lines begin, for the paper's has 8"));
  }
}

}  // namespace

std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments) {
  std::vector<Claim> claims;
  AddYcsb(experiments, &claims);
  AddInserts(experiments, &claims);
  AddAppends(experiments, &claims);
  AddForms(experiments, &claims);
  AddCores(experiments, &claims);
  AddOneOperation(experiments, &claims);
  AddMemory(experiments, &claims);
  return claims;
}

}  // namespace gannet::experiments::rolex
