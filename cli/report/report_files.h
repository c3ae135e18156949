// The files into which a command writes its report in other forms than text: --json, --csv, --html.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/common/output_file.h"
#include "cli/report/bench_text.h"

namespace gannet::cli {

class Flags;

// The flags of a benchmark's report, as values.
struct ReportFlags {
  std::string json;  // file for the report; empty: none
  std::string csv;   // for the time series
  std::string html;  // for the page with plots
  bool histogram = false;
};

// Adds --json; with `run`, which has a time series and latencies, also --csv, --html and --histogram.
void AddReportFlags(Flags* flags, bool run, ReportFlags* report);

class ReportFiles {
 public:
  using FlagAndPath = std::pair<std::string, std::string>;

  // Opens the file of each flag that is given (its path is not empty), before the work begins. InvalidArgument names
  // the flag, the file and the reason: it cannot be written, or another flag writes it, too. The caller writes the
  // files of `others` itself; none of them is standard output.
  static StatusOr<ReportFiles> Open(const std::vector<FlagAndPath>& flags, const std::vector<FlagAndPath>& others = {});
  static StatusOr<ReportFiles> Open(const ReportFlags& flags) {
    return Open({{"--json", flags.json}, {"--csv", flags.csv}, {"--html", flags.html}});
  }

  // Stream of the text report: standard output, unless one of the files is that; then standard error.
  std::FILE* text_stream() const;
  // The style of text for this stream.
  TextStyle text_style(bool histograms = false) const;

  // Writes what `contents` returns to the file of this flag; does nothing if the flag was not given.
  Status Write(const std::string& flag, const std::function<std::string()>& contents);

 private:
  struct File {
    std::string flag;
    OutputFile file;
  };
  std::vector<File> files_;
};

}  // namespace gannet::cli
