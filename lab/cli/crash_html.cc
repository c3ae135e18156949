#include "lab/cli/crash_html.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/parse.h"
#include "cli/report/html_page.h"
#include "lab/cli/crash_flags.h"

namespace gannet::cli {

namespace crash = scenario::crash;

namespace {

void AddTiles(const crash::CrashOptions& options, const crash::CrashReport& report, const Status& done,
              HtmlPage* page) {
  const crash::JudgeStatistics& o = report.operations;
  const bool judged = !absl::IsCancelled(done);
  page->AddTile(!judged     ? "not judged"
                : done.ok() ? "kept"
                            : "BROKEN",
                "what was promised",
                !judged     ? HtmlPage::Mood::kPlain
                : done.ok() ? HtmlPage::Mood::kGood
                            : HtmlPage::Mood::kBad);
  page->AddTile(WithCommas(report.cycles), report.cycles == 1 ? "kill" : "kills");
  page->AddTile(WithCommas(o.acknowledged), "operations acknowledged");
  if (options.mode == txn::DurabilityMode::kAsync) page->AddTile(WithCommas(o.lost), "of them lost, as async may");
  if (report.recoveries > 0) {
    const double mean = report.recovery_seconds / static_cast<double>(report.recoveries);
    page->AddTile(absl::StrFormat("%.1f ms", mean * 1e3), "recovery, on average");
    page->AddTile(absl::StrFormat("%.1f ms", report.longest_recovery_seconds * 1e3), "longest recovery");
  }
}

Plot PlotByCycle(std::string title, std::string y_label, PlotSeries series) {
  return {.title = std::move(title),
          .note = "",
          .x_label = "cycle",
          .x_name = "cycle",
          .x_unit = "",
          .y_label = std::move(y_label),
          .y_unit = "",
          .points = true,
          .views = {{"", {std::move(series)}}}};
}

}  // namespace

void CrashCycles::Note(const crash::CrashReport& report) {
  Cycle cycle;
  cycle.at_seconds = report.seconds;
  const uint64_t recoveries = report.recoveries - std::exchange(recoveries_, report.recoveries);
  const double seconds = report.recovery_seconds - std::exchange(recovery_seconds_, report.recovery_seconds);
  cycle.recovered = recoveries > 0;
  if (recoveries > 0) cycle.recovery_ms = seconds * 1e3 / static_cast<double>(recoveries);
  cycle.acknowledged = report.operations.acknowledged - std::exchange(acknowledged_, report.operations.acknowledged);
  cycles_.push_back(cycle);
}

std::string ToHtml(const crash::CrashOptions& options, const crash::CrashReport& report, const CrashCycles& cycles,
                   const Status& done) {
  HtmlPage page(
      "Crash test",
      absl::StrFormat("workload %s, %s, durability %s on %s, seed %d; %.1f s in all", NameOf(options.workload),
                      Count(static_cast<uint64_t>(options.nodes), "node"), FormatDurability(options.mode),
                      FormatMedium(options.medium), options.seed, report.seconds));
  if (absl::IsCancelled(done)) page.AddWarning("The test was stopped; the state after the last kill was not judged.");
  if (!done.ok() && !absl::IsCancelled(done)) page.AddWarning(std::string(done.message()));
  AddTiles(options, report, done, &page);
  PlotSeries recovery{"recovery, ms", {}, {}};
  PlotSeries acknowledged{"operations", {}, {}};
  for (size_t i = 0; i < cycles.cycles().size(); ++i) {
    const CrashCycles::Cycle& cycle = cycles.cycles()[i];
    acknowledged.x.push_back(static_cast<double>(i + 1));
    acknowledged.y.push_back(static_cast<double>(cycle.acknowledged));
    if (!cycle.recovered) continue;
    recovery.x.push_back(static_cast<double>(i + 1));
    recovery.y.push_back(cycle.recovery_ms);
  }
  page.AddPlot(PlotByCycle("Recovery in each cycle", "ms", std::move(recovery)));
  page.AddPlot(PlotByCycle("Operations acknowledged in each cycle", "operations", std::move(acknowledged)));
  std::vector<PageBar> kills;
  for (const auto& [name, each] : report.kills) {
    kills.push_back({name, {each.happened, each.planned - each.happened}});
  }
  page.AddBars("Where the process was killed", "At a named place in the code, or by the clock before it came there.",
               {"at the place", "by the clock before"}, kills);
  const crash::JudgeStatistics& o = report.operations;
  page.AddFacts(
      {{"What was compared",
        {{"operations begun", WithCommas(o.begun)},
         {"acknowledged", WithCommas(o.acknowledged)},
         {"seen by readers", WithCommas(o.observed)},
         {"recovered states compared", WithCommas(o.recoveries)},
         {"survived without an acknowledgement", WithCommas(o.recovered_unacknowledged)},
         {"longest cycle", absl::StrFormat("%.2f s, killed %s", report.longest_cycle_seconds, report.longest_cycle)},
         {"all cycles together", report.verdict.empty() ? "-" : report.verdict}}},
       {"Options", FactsOf(CrashValues(options))},
       {"Machine", MachineFacts()}});
  return page.ToString();
}

}  // namespace gannet::cli
