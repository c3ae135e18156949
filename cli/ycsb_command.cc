#include "cli/ycsb_command.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "cli/exit_codes.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/ycsb_cluster.h"
#include "cli/ycsb_flags.h"
#include "cli/ycsb_result.h"
#include "ycsb/driver.h"

namespace gannet::cli {
namespace {

// Of the wall clock, also beside a simulation.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

ycsb::RunOptions RunOptionsOf(const YcsbOptions& o) {
  ycsb::RunOptions run;
  run.threads_per_machine = o.clients.threads;
  run.coroutines = o.coroutines;
  run.mix = o.operations();
  run.distribution = o.keys_drawn();
  run.paths = o.paths;
  run.caches.xcache.mode = o.cache;
  run.caches.share_xcache = o.simulated();
  if (o.cache_bytes != 0) run.caches.location_bytes = run.caches.xcache.max_bytes = o.cache_bytes;
  run.warmup = *o.warmup;
  run.duration = *o.duration;
  run.interval = o.simulated() ? *o.duration / 5 : absl::Seconds(1);
  run.seed = o.seed;
  run.stop = &InterruptGuard::requested();
  return run;
}

Status Load(ycsb::Cluster& cluster, Progress& progress, YcsbResult* result) {
  const Stopwatch watch;
  Status loaded = cluster.Load([&](uint64_t keys) { progress.Loaded(keys, result->options.keys); });
  result->load_seconds = watch.seconds();
  return loaded;
}

Status Run(YcsbCluster& cluster, Progress& progress, YcsbResult* result) {
  const InterruptGuard interrupts;
  const Stopwatch watch;
  if (result->options.paths.reads == ycsb::Path::kOneSided) progress.Step("training models");
  GANNET_RETURN_IF_ERROR(cluster.cluster().Start());
  progress.Step("connecting clients and filling their caches");
  ycsb::RunOptions options = RunOptionsOf(result->options);
  options.watch = [&cluster](bool end) { cluster.Watch(end); };
  auto run = ycsb::RunBenchmark(&cluster.cluster(), options,
                                [&progress](const ycsb::IntervalReport& interval) { progress.Ran(interval); });
  if (!run.ok()) return run.status();
  result->run = *std::move(run);
  result->run_seconds = watch.seconds();
  result->interrupted = InterruptGuard::requested();
  result->simulation = cluster.simulation_report();
  return absl::OkStatus();
}

// How fast this machine is: without a meaning where time is virtual.
Status CalibrateFor(const YcsbOptions& options, Calibration* calibration) {
  if (options.simulated()) return absl::OkStatus();
  const StatusOr<Calibration> measured = Calibrate();
  if (measured.ok()) *calibration = *measured;
  return measured.status();
}

Status LoadRun(YcsbResult* result) {
  Progress progress;
  auto cluster = YcsbCluster::Open(result->options);
  if (!cluster.ok()) return cluster.status();
  GANNET_RETURN_IF_ERROR(Load((*cluster)->cluster(), progress, result));
  GANNET_RETURN_IF_ERROR(CalibrateFor(result->options, &result->before_run_calibration));
  GANNET_RETURN_IF_ERROR(Run(**cluster, progress, result));
  GANNET_RETURN_IF_ERROR(CalibrateFor(result->options, &result->after_run_calibration));
  progress.Step("measuring the index");
  MeasureStore(&(*cluster)->cluster(), result);
  return absl::OkStatus();
}

int Execute(YcsbOptions options) {
  const auto fail = [](const Status& status, int exit_code) {
    absl::FPrintF(stderr, "gannet ycsb: %s\n", status.message());
    return exit_code;
  };
  if (const Status complete = Complete(&options); !complete.ok()) return fail(complete, kExitBadFlags);
  std::optional<OutputFile> json;
  if (!options.json.empty()) {
    auto file = OutputFile::Open(options.json);
    if (!file.ok()) {
      return fail(absl::InvalidArgumentError(absl::StrFormat(
                      "--json %s; name a file in a directory that you may write to", file.status().message())),
                  kExitBadFlags);
    }
    json.emplace(*std::move(file));
  }
  YcsbResult result;
  result.options = std::move(options);
  if (const Status done = LoadRun(&result); !done.ok()) return fail(done, kExitFailed);
  absl::PrintF("%s", ToText(result));
  if (json.has_value()) {
    if (const Status written = json->Write(ToJson(result)); !written.ok()) return fail(written, kExitFailed);
  }
  return result.interrupted ? kExitSignal + InterruptGuard::signal() : kExitOk;
}

}  // namespace

void AddYcsbCommand(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("ycsb", "The YCSB workloads: measures an index and its records, over a fabric.");
  command->footer(
      "Servers hold keys and records; client machines read them with one-sided READs through the index's client\n"
      "cache, or by calls. Every value that is read is checked against its key. Reported are throughput, latencies,\n"
      "verbs, bytes and round trips per operation, what the index and its caches take, how good its model is, and, on\n"
      "sim, how busy CPUs and NICs are. On shm, times are this machine's; on sim they are those of the modelled "
      "rack.\n\n"
      "Exit code: 0 all is well; 1 the run failed or a wrong value was read; 2 a flag is wrong; 130 stopped by Ctrl-C\n"
      "(the report is still printed).\n\n"
      "Examples: gannet ycsb --workload c --index xstore --keys 1M\n"
      "          gannet ycsb --workload c --index xstore --keys 1M --path rpc\n"
      "          gannet ycsb --workload c --distribution uniform --fabric sim --keys 1M --clients 15x24 --json c.json");
  auto options = std::make_shared<YcsbOptions>();
  AddYcsbFlags(*command, options.get());
  command->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace gannet::cli
