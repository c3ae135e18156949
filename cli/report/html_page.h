// HtmlPage: a report as one HTML page that loads nothing from elsewhere: its style, its script and uPlot
// (third_party/uplot) are part of the program and are copied into the page.
//
// Everything but the plots is plain HTML. The plots are drawn by the page's script from a JSON object in the page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/harness/report.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {

// A line of a plot. `x` ascends.
struct PlotSeries {
  std::string name = {};
  std::vector<double> x = {};
  std::vector<double> y = {};
  int color = -1;      // of the page's eight; -1: by the place in the view
  bool marks = false;  // crosses without a line: values to compare with
};

// One of the pictures between which the reader of a plot chooses.
struct PlotView {
  std::string name = {};
  std::vector<PlotSeries> series = {};
};

// The units that the page knows: "us", "s", "%"; any other value is a plain number.
struct Plot {
  std::string title = {};
  std::string note = {};  // one sentence or two; may be empty
  std::string x_label = {};
  std::string x_name = {};  // in the legend
  std::string x_unit = {};
  std::string y_label = {};
  std::string y_unit = {};
  bool log_x = false;
  bool log_y = false;  // where the values differ much
  bool steps = false;
  bool points = false;  // without lines
  std::vector<PlotView> views = {};
};

// A bar of several parts, one after the other.
struct PageBar {
  std::string name;
  std::vector<uint64_t> parts;
};

class HtmlPage {
 public:
  HtmlPage(std::string title, std::string subtitle) : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

  enum class Mood : uint8_t { kPlain, kGood, kBad };
  // A figure at the top of the page.
  void AddTile(std::string_view value, std::string_view what, Mood mood = Mood::kPlain);
  void AddWarning(std::string_view text);
  // The title of what follows, up to the next one. `id`: for links to it.
  void AddHeading(std::string_view title, std::string_view id);
  // Leaves out views without values, and a plot without views.
  void AddPlot(Plot plot);
  // Bars to one scale; `parts`: names of their parts. Bars without any length are left out.
  void AddBars(std::string_view title, std::string_view note, const std::vector<std::string>& parts,
               const std::vector<PageBar>& bars);
  // A time of a table.
  static std::string Micros(double us);
  // A table; a cell that begins with '!' is marked as bad. Columns in `text_columns` are text, the others numbers.
  void AddTable(std::string_view title, std::string_view note, const std::vector<std::vector<std::string>>& rows,
                const std::vector<size_t>& text_columns);
  // Names and values side by side: tables that are read together.
  using Facts = std::vector<std::pair<std::string, std::string>>;
  void AddFacts(const std::vector<std::pair<std::string, Facts>>& tables);

  // The page. A page without plots has no script.
  std::string ToString() const;

 private:
  const std::string title_;
  const std::string subtitle_;
  std::string warnings_;
  std::string tiles_;
  std::string sections_;
  nlohmann::ordered_json plots_ = nlohmann::ordered_json::array();
};

// Text as HTML.
std::string EscapeHtml(std::string_view text);

// A time in the unit that suits it: "7.7 µs", "1.2 ms", "3.4 s".
std::string TimeText(double us);

// A JSON object as names and values; the names of nested objects are joined by dots.
HtmlPage::Facts FactsOf(const nlohmann::ordered_json& json);

// What a reader must know of the machine and the moment of a run.
HtmlPage::Facts MachineFacts();

// The command line of this process: "gannet tpcc run --warehouses 2".
std::string CommandLine();

// What the pages of all benchmarks have: throughput, latency and (if there were any) aborts over time, and how
// latencies are distributed. `unit`: "transactions".
struct PlottedKind {
  std::string name;
  const bench::OperationReport* report;
};
void AddBenchmarkPlots(std::string_view unit, const std::vector<PlottedKind>& kinds, const bench::OperationReport& all,
                       const std::vector<bench::Interval>& timeline, HtmlPage* page);

}  // namespace gannet::cli
