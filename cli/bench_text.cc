#include "cli/bench_text.h"

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/parse.h"
#include "cli/table.h"

namespace gannet::cli {
namespace {

template <class Text>
std::vector<std::string> VerbCells(std::string name, const rdma::VerbCounters& v, const Text& text) {
  return {std::move(name), text(v.reads),    text(v.writes),    text(v.compare_and_swaps), text(v.fetch_and_adds),
          text(v.calls),   text(v.bytes_in), text(v.bytes_out), text(v.round_trips),       text(v.retries)};
}

}  // namespace

std::vector<std::string> WithLatencyHeader(std::vector<std::string> header) {
  header.insert(header.end(), {"mean us", "p50 us", "p90 us", "p99 us", "max us"});
  return header;
}

std::vector<std::string> WithLatencies(std::vector<std::string> row, const bench::OperationReport& report) {
  for (const double us : {report.mean_us, report.p50_us, report.p90_us, report.p99_us, report.max_us}) {
    row.push_back(absl::StrFormat("%.1f", us));
  }
  return row;
}

std::string VerbsText(std::string_view operation, const std::vector<NamedReport>& reports,
                      const rdma::VerbCounters& sums) {
  Table table({absl::StrFormat("per %s", operation), "READ", "WRITE", "CAS", "FAA", "CALL", "bytes in", "bytes out",
               "round trips", "retries"});
  for (const auto& [name, report] : reports) {
    if (report->verb_samples == 0) continue;
    table.Add(VerbCells(std::string(name), report->verbs,
                        [r = report](uint64_t sum) { return absl::StrFormat("%.2f", r->PerOperation(sum)); }));
  }
  table.Add(VerbCells("sum", sums, [](uint64_t sum) { return WithCommas(sum); }));
  return table.ToString();
}

std::string PathsText(const std::vector<txn::TablePaths>& paths) {
  if (paths.empty()) return "";
  Table table({"accesses to other nodes", "kind", "one-sided", "by call", "estimated us", "by call", "busy owner",
               "contrary", "cost us each"});
  // Estimates are the adaptive policy's.
  const auto micros = [](uint64_t of, double nanos) {
    return of == 0 ? std::string("-") : absl::StrFormat("%.2f", nanos * 1e-3);
  };
  for (const txn::TablePaths& each : paths) {
    const txn::PathStatistics& p = each.paths;
    table.Add({each.table, txn::kAccessKindNames[static_cast<size_t>(each.kind)], WithCommas(p.one_sided),
               WithCommas(p.calls), micros(p.estimated, p.one_sided_estimate()), micros(p.estimated, p.call_estimate()),
               p.estimated == 0 ? "-" : WithCommas(p.backed_off), p.estimated == 0 ? "-" : WithCommas(p.contrary),
               micros(p.contrary, p.contrary_cost())});
  }
  return table.ToString();
}

std::string InterruptedText() {
  return "INTERRUPTED: the run was stopped early; the figures cover what was measured by then\n";
}

std::string CalibrationText(const bench::Calibration& before_run, const bench::Calibration& after_run) {
  return absl::StrFormat(
      "calibration: %.0f ns before the run and %.0f ns after it per dependent 64-byte random read within %s\n",
      before_run.dependent_read_ns, after_run.dependent_read_ns, FormatBytes(before_run.buffer_bytes));
}

}  // namespace gannet::cli
