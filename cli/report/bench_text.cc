#include "cli/report/bench_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/parse.h"
#include "cli/common/table.h"

namespace gannet::cli {
namespace {

template <class Text>
std::vector<std::string> VerbCells(std::string name, const rdma::VerbCounters& v, const Text& text) {
  return {std::move(name), text(v.reads),    text(v.writes),    text(v.compare_and_swaps), text(v.fetch_and_adds),
          text(v.calls),   text(v.bytes_in), text(v.bytes_out), text(v.round_trips),       text(v.retries)};
}

// Operations with latencies in [from_us, to_us).
struct Bar {
  double from_us = 0;
  double to_us = 0;
  uint64_t operations = 0;
};

// Two bars for each power of two of nanoseconds.
std::vector<Bar> BarsOf(const std::vector<bench::LatencyRange>& distribution) {
  std::vector<Bar> bars;
  for (const bench::LatencyRange& range : distribution) {
    Bar bar = {range.from_us, range.to_us, range.operations};
    if (range.from_us >= 0.002) {
      const double power = std::exp2(std::floor(std::log2(range.from_us * 1e3) + 1e-9)) * 1e-3;
      const bool upper = range.from_us >= 1.5 * power * (1 - 1e-9);
      bar.from_us = upper ? 1.5 * power : power;
      bar.to_us = upper ? 2 * power : 1.5 * power;
    }
    if (!bars.empty() && bar.from_us <= bars.back().from_us * (1 + 1e-9)) {
      bars.back().operations += bar.operations;
    } else {
      bars.push_back(bar);
    }
  }
  return bars;
}

std::string Micros(double us) {
  return us < 10 ? absl::StrFormat("%.2f", us) : us < 100 ? absl::StrFormat("%.1f", us) : absl::StrFormat("%.0f", us);
}

std::string HistogramText(const NamedReport& named, int width) {
  const std::vector<Bar> bars = BarsOf(named.report->distribution);
  uint64_t all = 0;
  uint64_t most = 0;
  for (const Bar& bar : bars) {
    all += bar.operations;
    most = std::max(most, bar.operations);
  }
  std::string text = absl::StrFormat("latency of %s\n%10s    %-10s%14s%8s%9s\n", named.name, "from us", "below",
                                     "number", "%", "% so far");
  constexpr int kCells = 57;  // before the bar
  uint64_t so_far = 0;
  for (const Bar& bar : bars) {
    so_far += bar.operations;
    const auto percent = [all](uint64_t n) { return 100 * static_cast<double>(n) / static_cast<double>(all); };
    const double share = static_cast<double>(bar.operations) / static_cast<double>(most);
    const auto length = static_cast<size_t>(std::ceil(share * std::max(width - kCells, 0)));
    text +=
        absl::StrFormat("%10s -- %-10s%14s%8.2f%9.2f  %s\n", Micros(bar.from_us), Micros(bar.to_us),
                        WithCommas(bar.operations), percent(bar.operations), percent(so_far), std::string(length, '#'));
  }
  return text;
}

}  // namespace

std::vector<std::string> WithLatencyHeader(std::vector<std::string> header) {
  header.insert(header.end(), {"mean us", "p50 us", "p95 us", "p99 us", "max us"});
  return header;
}

std::vector<std::string> WithLatencies(std::vector<std::string> row, const bench::OperationReport& report) {
  for (const double us : {report.mean_us, report.p50_us, report.p95_us, report.p99_us, report.max_us}) {
    row.push_back(absl::StrFormat("%.1f", us));
  }
  return row;
}

std::string VerbsText(std::string_view operation, const std::vector<NamedReport>& reports,
                      const rdma::VerbCounters& sums, int width) {
  Table table({absl::StrFormat("per %s", operation), "READ", "WRITE", "CAS", "FAA", "CALL", "bytes in", "bytes out",
               "round trips", "retries"});
  for (const auto& [name, report] : reports) {
    if (report->verb_samples == 0) continue;
    table.AddUnlessZero(VerbCells(std::string(name), report->verbs, [r = report](uint64_t sum) {
      return absl::StrFormat("%.2f", r->PerOperation(sum));
    }));
  }
  table.AddUnlessZero(VerbCells("sum", sums, [](uint64_t sum) { return WithCommas(sum); }));
  return table.empty() ? "verbs: none; everything lies in the memory of its own node\n" : table.ToString(width);
}

std::string HistogramsText(const std::vector<NamedReport>& reports, int width) {
  std::string text;
  for (const NamedReport& named : reports) {
    if (named.report->distribution.empty()) continue;
    text += (text.empty() ? "" : "\n") + HistogramText(named, width);
  }
  return text;
}

std::string PathsText(const std::vector<txn::TablePaths>& paths, int width) {
  if (paths.empty()) return "";
  Table table({"accesses to other nodes", "kind", "one-sided", "by call", "estimated us", "by call", "busy owner",
               "contrary", "cost us each"});
  // Estimates are the adaptive policy's.
  const auto micros = [](uint64_t of, double nanos) {
    return of == 0 ? std::string("-") : absl::StrFormat("%.2f", nanos * 1e-3);
  };
  for (const txn::TablePaths& each : paths) {
    const txn::PathStatistics& p = each.paths;
    table.AddUnlessZero({each.table, txn::kAccessKindNames[static_cast<size_t>(each.kind)], WithCommas(p.one_sided),
                         WithCommas(p.calls), micros(p.estimated, p.one_sided_estimate()),
                         micros(p.estimated, p.call_estimate()), p.estimated == 0 ? "-" : WithCommas(p.backed_off),
                         p.estimated == 0 ? "-" : WithCommas(p.contrary), micros(p.contrary, p.contrary_cost())});
  }
  return table.ToString(width);
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
