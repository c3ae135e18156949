// The parts that the text reports of all benchmarks share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/calibration.h"
#include "bench/harness/report.h"
#include "cli/common/terminal.h"
#include "rdma/statistics.h"
#include "txn/store/statistics.h"

namespace gannet::cli {

// How a report is written as text.
struct TextStyle {
  int width = kPlainWidth;  // of its lines
  bool histograms = false;  // of latencies
};

// A row of a table: a kind of operation, or all of them.
struct NamedReport {
  std::string_view name;
  const bench::OperationReport* report;
};

// The cells of one row of a table that ends with latencies: `row`, and mean, percentiles and maximum in microseconds.
std::vector<std::string> WithLatencies(std::vector<std::string> row, const bench::OperationReport& report);
// The header of that table.
std::vector<std::string> WithLatencyHeader(std::vector<std::string> header);

// The table of verbs: for one `operation` ("transaction") on average, for each of `reports` that has a sample; the last
// row is the sums of all verbs. One line if there were none.
std::string VerbsText(std::string_view operation, const std::vector<NamedReport>& reports,
                      const rdma::VerbCounters& sums, int width);

// Shows for each of `reports` that has latencies how many operations took how long, in two ranges for each power of
// two, with bars.
std::string HistogramsText(const std::vector<NamedReport>& reports, int width);

// The table of the paths to records of other nodes: for each table and kind of access how often each was taken, what
// they were estimated to take, and what it cost to try the dearer one. Empty if there was no such access.
std::string PathsText(const std::vector<txn::TablePaths>& paths, int width);

// The line of the heading that says that Ctrl-C ended the run.
std::string InterruptedText();

std::string CalibrationText(const bench::Calibration& before_run, const bench::Calibration& after_run);

}  // namespace gannet::cli
