#include "cli/report/report_files.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "cli/common/flags.h"
#include "cli/common/terminal.h"

namespace gannet::cli {

void AddReportFlags(Flags* flags, bool run, ReportFlags* report) {
  flags->Group("Report");
  flags->Add("--json", "", &report->json, form::Path("FILE"),
             "Write the report as JSON to this file; -: to standard output");
  if (!run) return;
  flags->Add("--csv", "", &report->csv, form::Path("FILE"),
             "Write the time series as CSV to this file: a line for each interval and type, and one for all types\n"
             "together. -: to standard output");
  flags->Add("--html", "", &report->html, form::Path("FILE"),
             "Write the report as one HTML page to this file, with plots of throughput and latency. It loads nothing "
             "from\nelsewhere. -: to standard output");
  flags->AddSwitch("--histogram", "", &report->histogram,
                   "Print how the latencies of each type are distributed; --json then has that, too");
}

StatusOr<ReportFiles> ReportFiles::Open(const std::vector<FlagAndPath>& flags, const std::vector<FlagAndPath>& others) {
  ReportFiles files;
  std::vector<FlagAndPath> all = flags;
  all.insert(all.end(), others.begin(), others.end());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [flag, path] = all[i];
    if (path.empty()) continue;
    const bool is_report = i < flags.size();
    if (!is_report && path == "-") {
      return absl::InvalidArgumentError(absl::StrFormat("%s -: cannot go to standard output; name a file", flag));
    }
    for (size_t j = 0; j < i; ++j) {
      if (all[j].second.empty() || !IsSameOutput(all[j].second, path)) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("%s %s: %s goes there, too; name another file", flag, path, all[j].first));
    }
    StatusOr<std::optional<OutputFile>> file = OpenOutput(flag, path);
    if (!file.ok()) return file.status();
    if (is_report) files.files_.push_back({flag, *std::move(*file)});
  }
  return files;
}

std::FILE* ReportFiles::text_stream() const {
  return std::ranges::any_of(files_, [](const File& each) { return each.file.is_stdout(); }) ? stderr : stdout;
}

TextStyle ReportFiles::text_style(bool histograms) const {
  return {.width = TerminalWidth(fileno(text_stream())).value_or(kPlainWidth), .histograms = histograms};
}

Status ReportFiles::Write(const std::string& flag, const std::function<std::string()>& contents) {
  for (File& each : files_) {
    if (each.flag != flag) continue;
    Status written = each.file.Write(contents());
    if (written.ok()) return written;
    return absl::Status(written.code(), absl::StrFormat("%s %s", flag, written.message()));
  }
  return absl::OkStatus();
}

}  // namespace gannet::cli
