#include "lab/cli/sim_html.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/quantity.h"
#include "cli/report/html_page.h"
#include "lab/scenario/report_json.h"

namespace gannet::cli {
namespace {

using scenario::ScenarioReport;

constexpr std::string_view kMarksNote =
    "A mark is a place in the code that only bad luck leads to. The bars say how often the runs came there.";

void AddTiles(const ScenarioReport& report, HtmlPage* page) {
  page->AddTile(WithCommas(report.committed), "transactions committed");
  page->AddTile(WithCommas(report.aborts), "attempts met a conflict and were run again");
  page->AddTile(WithCommas(report.unknown), "transactions with an unknown outcome");
  page->AddTile(WithCommas(report.deaths), report.deaths == 1 ? "death of a node" : "deaths of nodes");
  page->AddTile(WithCommas(report.power_cuts), report.power_cuts == 1 ? "power cut" : "power cuts");
  page->AddTile(absl::StrFormat("%.3f s", static_cast<double>(report.virtual_nanos) * 1e-9), "of virtual time");
}

template <class Value>
PlotSeries BySeed(const std::string& name, const std::vector<ScenarioReport>& reports, const Value& value) {
  PlotSeries series{name, {}, {}};
  for (const ScenarioReport& report : reports) {
    series.x.push_back(static_cast<double>(report.seed));
    series.y.push_back(static_cast<double>(value(report)));
  }
  return series;
}

void AddPlotBySeed(const std::string& title, const std::string& y_label, std::vector<PlotView> views, HtmlPage* page) {
  Plot plot = {.title = title,
               .note = "",
               .x_label = "seed",
               .x_name = "seed",
               .x_unit = "",
               .y_label = y_label,
               .y_unit = "",
               .points = true,
               .views = std::move(views)};
  page->AddPlot(std::move(plot));
}

}  // namespace

std::string ToHtml(const ScenarioReport& report, const scenario::ScenarioOptions& drawn) {
  HtmlPage page(absl::StrCat("Simulated cluster, seed ", report.seed),
                absl::StrCat(Count(static_cast<uint64_t>(drawn.nodes), "node"), ", workload ", drawn.workload,
                             ", with faults that the seed draws; every transaction is checked"));
  page.AddTile(report.passed ? "passed" : "FAILED", report.undecided ? "verdict (not decided)" : "verdict",
               report.passed ? HtmlPage::Mood::kGood : HtmlPage::Mood::kBad);
  AddTiles(report, &page);
  if (!report.passed) page.AddWarning(report.verdict);
  if (!report.details.empty()) page.AddTable("What is wrong", "", {{"details"}, {report.details}}, {0});
  page.AddBars("How the transactions ended", "", {"transactions"},
               {{"committed", {report.committed}},
                {"rolled back", {report.failed}},
                {"outcome unknown to the client", {report.unknown}},
                {"attempts with a conflict", {report.aborts}}});
  std::vector<PageBar> marks;
  for (const auto& [mark, times] : report.marks) marks.push_back({mark, {times}});
  std::ranges::sort(marks, {}, [](const PageBar& bar) { return bar.parts[0]; });
  page.AddBars("Marks that the run reached", kMarksNote, {"times"}, marks);
  page.AddFacts({{"Scenario", FactsOf(scenario::ToJson(drawn))}, {"Machine", MachineFacts()}});
  return page.ToString();
}

std::string ToHtml(const SweepResult& sweep) {
  const uint64_t done = sweep.reports.size();
  const auto failed = static_cast<uint64_t>(
      std::ranges::count_if(sweep.reports, [](const ScenarioReport& report) { return !report.passed; }));
  HtmlPage page("Simulated clusters", absl::StrFormat("%s from %d, each a cluster with faults of its own; every "
                                                      "transaction is checked; %.1f s in all",
                                                      Count(done, "seed"), sweep.first_seed, sweep.seconds));
  if (sweep.interrupted) {
    page.AddWarning(absl::StrFormat("Stopped after %d of %s.", done, Count(sweep.wanted, "seed")));
  }
  page.AddTile(WithCommas(failed), failed == 1 ? "seed failed" : "seeds failed",
               failed == 0 ? HtmlPage::Mood::kGood : HtmlPage::Mood::kBad);
  AddTiles(sweep.total, &page);
  std::vector<std::vector<std::string>> failures = {{"seed", "verdict"}};
  for (const ScenarioReport& report : sweep.reports) {
    if (!report.passed) failures.push_back({std::to_string(report.seed), absl::StrCat("!", report.verdict)});
  }
  if (failures.size() > 1) {
    page.AddTable("Seeds that failed", "gannet sim --seed N --trace trace.txt repeats one.", failures, {0, 1});
  }
  AddPlotBySeed(
      "Transactions of each seed", "transactions",
      {{"committed", {BySeed("committed", sweep.reports, [](const auto& r) { return r.committed; })}},
       {"conflicts", {BySeed("attempts with a conflict", sweep.reports, [](const auto& r) { return r.aborts; })}},
       {"unknown", {BySeed("outcome unknown", sweep.reports, [](const auto& r) { return r.unknown; })}}},
      &page);
  AddPlotBySeed(
      "Time of each seed", "ms",
      {{"virtual",
        {BySeed("virtual ms", sweep.reports,
                [](const auto& r) { return static_cast<double>(r.virtual_nanos) * 1e-6; })}},
       {"real",
        {BySeed("real ms", sweep.reports, [](const auto& r) { return static_cast<double>(r.real_nanos) * 1e-6; })}}},
      &page);
  std::vector<PageBar> marks;
  for (const auto& [mark, seeds] : sweep.marks.seeds()) marks.push_back({mark, {seeds}});
  std::ranges::sort(marks, {}, [](const PageBar& bar) { return bar.parts[0]; });
  page.AddBars("Marks, and the number of seeds that reached them", kMarksNote, {"seeds"}, marks);
  HtmlPage::Facts never;
  for (const std::string& mark : sweep.marks.NeverReached()) never.emplace_back(mark, "");
  page.AddFacts({{"Marks that no seed reached", never}, {"Machine", MachineFacts()}});
  return page.ToString();
}

}  // namespace gannet::cli
