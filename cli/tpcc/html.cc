// The report as an HTML page.
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/parse.h"
#include "cli/report/html_page.h"
#include "cli/tpcc/result.h"

namespace gannet::cli {
namespace {

void AddTransactions(const tpcc::RunReport& run, HtmlPage* page) {
  std::vector<std::vector<std::string>> rows = {
      {"", "committed", "run again", "rolled back", "mean µs", "p50 µs", "p95 µs", "p99 µs", "max µs"}};
  std::vector<PageBar> bars;
  const auto add = [&rows](const char* name, const tpcc::ProcedureReport& p) {
    if (p.committed + p.aborted + p.rolled_back == 0) return;
    rows.push_back({name, WithCommas(p.committed), WithCommas(p.aborted), WithCommas(p.rolled_back),
                    HtmlPage::Micros(p.mean_us), HtmlPage::Micros(p.p50_us), HtmlPage::Micros(p.p95_us),
                    HtmlPage::Micros(p.p99_us), HtmlPage::Micros(p.max_us)});
  };
  for (size_t i = 0; i < run.procedures.size(); ++i) {
    const tpcc::ProcedureReport& p = run.procedures[i];
    add(tpcc::kProcedureNames[i], p);
    bars.push_back({tpcc::kProcedureNames[i], {p.aborted, p.rolled_back}});
  }
  add("all", run.all);
  page->AddTable("Transactions",
                 "Latency is from the first attempt to the answer; with a durable log the answer waits for the disk.",
                 rows, {0});
  page->AddBars(
      "Why attempts did not commit",
      "A conflict is with another transaction, and the attempt is run again. One new_order in a hundred names an "
      "item that does not exist, and rolls back, as the benchmark demands.",
      {"conflict", "rolled back by the transaction itself"}, bars);
}

void AddConditions(const TpccResult& result, HtmlPage* page) {
  if (result.consistency.empty()) return;
  std::vector<std::vector<std::string>> rows = {{"condition", "", "what must be equal, and what was found"}};
  for (const tpcc::ConditionResult& condition : result.consistency) {
    rows.push_back({std::to_string(condition.condition), condition.holds ? "holds" : "!FAILS", condition.detail});
  }
  page->AddTable("Consistency of the data after the run", "The twelve conditions of clause 3.3.2, over all rows.", rows,
                 {0, 1, 2});
}

void AddTiles(const TpccResult& result, HtmlPage* page) {
  const tpcc::RunReport& run = *result.run;
  page->AddTile(WithCommas(static_cast<uint64_t>(run.transactions_per_second)), "transactions per second");
  page->AddTile(WithCommas(static_cast<uint64_t>(run.new_orders_per_minute)),
                result.options.run.think_time ? "NewOrders per minute, with think time"
                                              : "NewOrders per minute, without think time");
  page->AddTile(TimeText(run.all.p50_us), "half of all took less (p50)");
  page->AddTile(TimeText(run.all.p99_us), "99% of all took less (p99)");
  const uint64_t attempts = run.all.committed + run.all.rolled_back + run.all.aborted;
  if (attempts > 0) {
    const double share = 100 * static_cast<double>(run.all.aborted) / static_cast<double>(attempts);
    page->AddTile(absl::StrFormat("%.2f%%", share), "of the attempts met a conflict");
  }
  if (!result.consistency.empty()) {
    page->AddTile(result.consistent() ? "all hold" : "FAILS", "consistency conditions",
                  result.consistent() ? HtmlPage::Mood::kGood : HtmlPage::Mood::kBad);
  }
}

HtmlPage::Facts MachineDuring(const TpccResult& result) {
  HtmlPage::Facts facts = MachineFacts();
  if (result.before_run_calibration.is_measured()) {
    facts.emplace_back("a dependent read from memory", absl::StrFormat("%.0f ns before the run, %.0f ns after it",
                                                                       result.before_run_calibration.dependent_read_ns,
                                                                       result.after_run_calibration.dependent_read_ns));
  }
  facts.emplace_back("memory of this process", FormatBytes(result.after_run.resident_bytes));
  return facts;
}

}  // namespace

std::string ToHtml(const TpccResult& result) {
  const tpcc::RunReport& run = *result.run;
  const TpccOptions& o = result.options;
  HtmlPage page(
      "TPC-C on Gannet",
      absl::StrFormat("%s on %s, %s, measured for %.1f s%s", Count(static_cast<uint64_t>(o.warehouses), "warehouse"),
                      Count(static_cast<uint64_t>(o.nodes), o.cluster_file.has_value() ? "server" : "node"),
                      Count(static_cast<uint64_t>(run.threads), "thread"), run.seconds,
                      o.database.directory.empty()
                          ? ""
                          : absl::StrFormat(", durability %s", FormatDurability(o.database.durability))));
  if (result.interrupted) page.AddWarning("The run was stopped early; the figures cover what was measured by then.");
  if (!result.not_checked.empty()) page.AddWarning("The data was not checked: " + result.not_checked);
  AddTiles(result, &page);
  std::vector<PlottedKind> kinds;
  for (size_t i = 0; i < run.procedures.size(); ++i) kinds.push_back({tpcc::kProcedureNames[i], &run.procedures[i]});
  AddBenchmarkPlots("transactions", kinds, run.all, {run.timeline.begin(), run.timeline.end()}, &page);
  AddTransactions(run, &page);
  AddConditions(result, &page);
  page.AddFacts({{"Options", FactsOf(ConfigurationJson(result))}, {"Machine", MachineDuring(result)}});
  return page.ToString();
}

}  // namespace gannet::cli
