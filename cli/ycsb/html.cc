#include "cli/ycsb/html.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/report/html_page.h"

namespace gannet::cli {
namespace {

void AddOperations(const ycsb::RunReport& run, HtmlPage* page) {
  std::vector<std::vector<std::string>> rows = {
      {"", "operations", "mean µs", "p50 µs", "p95 µs", "p99 µs", "max µs", "round trips each", "bytes each"}};
  const auto add = [&rows](std::string_view name, const ycsb::KindReport& k) {
    if (k.operations == 0) return;
    rows.push_back({std::string(name), WithCommas(k.operations), HtmlPage::Micros(k.mean_us),
                    HtmlPage::Micros(k.p50_us), HtmlPage::Micros(k.p95_us), HtmlPage::Micros(k.p99_us),
                    HtmlPage::Micros(k.max_us), absl::StrFormat("%.2f", k.PerOperation(k.verbs.round_trips)),
                    absl::StrFormat("%.0f", k.PerOperation(k.verbs.bytes_in + k.verbs.bytes_out))});
  };
  for (size_t k = 0; k < ycsb::kKinds; ++k) add(ycsb::kKindNames[k], run.kinds[k]);
  add("all", run.all);
  page->AddTable("Operations", "", rows, {0});
}

void AddTiles(const bench::YcsbResult& result, HtmlPage* page) {
  const ycsb::RunReport& run = result.run;
  page->AddTile(WithCommas(static_cast<uint64_t>(run.operations_per_second)), "operations per second");
  page->AddTile(TimeText(run.all.p50_us), "half of all took less (p50)");
  page->AddTile(TimeText(run.all.p99_us), "99% of all took less (p99)");
  page->AddTile(FormatBytes(run.lookups.cache_bytes), "caches of the clients");
  if (result.simulation.has_value()) {
    page->AddTile(absl::StrFormat("%.0f%%", 100 * result.simulation->servers.cpu), "of the servers' processors busy");
    page->AddTile(absl::StrFormat("%.0f%%", 100 * result.simulation->servers.nic_serve),
                  "of the servers' network cards busy");
  }
}

HtmlPage::Facts MachineDuring(const bench::YcsbResult& result) {
  HtmlPage::Facts facts = MachineFacts();
  if (result.simulation.has_value()) {
    facts.emplace_back("times", "of the simulated rack, not of this machine");
  } else if (result.before_run_calibration.is_measured()) {
    facts.emplace_back("a dependent read from memory", absl::StrFormat("%.0f ns before the run, %.0f ns after it",
                                                                       result.before_run_calibration.dependent_read_ns,
                                                                       result.after_run_calibration.dependent_read_ns));
  }
  facts.emplace_back("memory of this process", FormatBytes(result.resident_bytes));
  return facts;
}

}  // namespace

std::string ToHtml(const bench::YcsbResult& result) {
  const bench::YcsbOptions& o = result.options;
  const ycsb::RunReport& run = result.run;
  HtmlPage page(
      "YCSB on Gannet",
      absl::StrFormat("workload %s, %s, index %s, %s, measured for %s%s", o.workload.name, Count(o.keys, "key"),
                      index::EntryOf(o.index).name, Count(static_cast<uint64_t>(run.threads), "client thread"),
                      absl::FormatDuration(absl::Trunc(absl::Seconds(run.seconds), absl::Microseconds(1))),
                      o.simulated() ? " on a simulated rack" : ""));
  if (result.interrupted) page.AddWarning("The run was stopped early; the figures cover what was measured by then.");
  AddTiles(result, &page);
  std::vector<PlottedKind> kinds;
  for (size_t k = 0; k < ycsb::kKinds; ++k) kinds.push_back({std::string(ycsb::kKindNames[k]), &run.kinds[k]});
  AddBenchmarkPlots("operations", kinds, run.all, {run.timeline.begin(), run.timeline.end()}, &page);
  AddOperations(run, &page);
  page.AddFacts({{"Options", FactsOf(result.configuration)}, {"Machine", MachineDuring(result)}});
  return page.ToString();
}

}  // namespace gannet::cli
