#include "cli/ycsb/command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "bench/ycsb/result.h"
#include "bench/ycsb/run.h"
#include "cli/common/exit_codes.h"
#include "cli/common/interrupt.h"
#include "cli/common/progress.h"
#include "cli/report/bench_flags.h"
#include "cli/report/report_files.h"
#include "cli/report/time_series.h"
#include "cli/ycsb/flags.h"
#include "cli/ycsb/html.h"
#include "cli/ycsb/options.h"
#include "cli/ycsb/text.h"

namespace gannet::cli {
namespace {

Status WriteFiles(const bench::YcsbResult& result, bool histogram, ReportFiles* files) {
  GANNET_RETURN_IF_ERROR(files->Write("--json", [&] { return bench::ToJson(result, histogram); }));
  const std::vector<ycsb::IntervalReport>& timeline = result.run.timeline;
  GANNET_RETURN_IF_ERROR(files->Write("--csv", [&timeline] {
    return TimeSeriesCsv({timeline.begin(), timeline.end()}, bench::KindNames());
  }));
  return files->Write("--html", [&result] { return ToHtml(result); });
}

// The line of progress has ended when this returns.
Status RunWithProgress(bench::YcsbResult* result) {
  Progress progress;
  return bench::RunYcsb(YcsbProgressOf(&progress), &InterruptGuard::requested(), result);
}

int Execute(const YcsbFlags& flags, const std::string& flag_of_servers, const std::string& flag_of_one_process,
            bench::YcsbOptions options) {
  const auto fail = [](const Status& status, int exit_code) {
    absl::FPrintF(stderr, "gannet ycsb: %s\n", status.message());
    return exit_code;
  };
  Status complete = ReadCluster(flags, flag_of_servers, flag_of_one_process, &options);
  if (complete.ok()) complete = Complete(&options);
  if (!complete.ok()) return fail(complete, kExitBadFlags);
  StatusOr<ReportFiles> files = ReportFiles::Open(flags.report);
  if (!files.ok()) return fail(files.status(), kExitBadFlags);
  const InterruptGuard interrupts;
  bench::YcsbResult result;
  result.options = std::move(options);
  const Status done = RunWithProgress(&result);
  if (absl::IsCancelled(done)) {
    const char* const left =
        result.options.cluster_config.has_value() ? "the servers still have their data" : "no data is kept";
    return fail(absl::CancelledError(absl::StrFormat("%s; %s", done.message(), left)), InterruptGuard::exit_code());
  }
  if (!done.ok()) return fail(done, kExitFailed);
  result.configuration = YcsbConfiguration(result.options, flags);
  if (result.options.cluster_config.has_value()) result.configuration["slot"] = result.slot;
  absl::FPrintF(files->text_stream(), "%s", ToText(result, files->text_style(flags.report.histogram)));
  const Status written = WriteFiles(result, flags.report.histogram, &*files);
  if (!written.ok()) return fail(written, kExitFailed);
  return result.interrupted ? InterruptGuard::exit_code() : kExitOk;
}

}  // namespace

void AddYcsbCommand(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("ycsb", "The YCSB workloads: measures an index and its records, over a fabric.");
  command->footer(
      "Servers hold keys and records; client machines read them with one-sided READs through the index's client\n"
      "cache, or by calls. Every value that is read is checked against its key. The report has throughput, latencies,\n"
      "verbs, bytes and round trips per operation, the memory of the index and its caches, the accuracy of its model,\n"
      "and, on sim, how busy CPUs and NICs are. On shm, times are this machine's; on sim they are those of the\n"
      "modelled rack. With --cluster the servers are processes (`gannet serve`), and this process is one client\n"
      "machine.\n\n"
      "Exit code: 0 success; 1 the run failed or a wrong value was read; 2 a flag is wrong; 130 stopped by Ctrl-C\n"
      "(the report is printed if the run had begun).\n\n"
      "Examples: gannet ycsb --workload c --index xstore --keys 1M\n"
      "          gannet ycsb --workload c --index xstore --keys 1M --path rpc\n"
      "          gannet ycsb --workload a --cluster cluster.toml --clients 1x2\n"
      "          gannet ycsb --workload c --distribution uniform --fabric sim --keys 1M --clients 15x24 --json c.json");
  auto flags = std::make_shared<YcsbFlags>();
  auto options = std::make_shared<bench::YcsbOptions>();
  FlagsOfYcsb(options.get(), flags.get()).AddTo(command);
  command->callback([=] {
    const Flags all = FlagsOfYcsb(options.get(), flags.get());
    *exit_code =
        Execute(*flags, all.FirstGiven(*command, kOfServers), all.FirstGiven(*command, kOfOneProcess), *options);
  });
}

}  // namespace gannet::cli
