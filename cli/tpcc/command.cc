#include "cli/tpcc/command.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "cli/common/data_directory.h"
#include "cli/common/exit_codes.h"
#include "cli/common/interrupt.h"
#include "cli/common/machine_memory.h"
#include "cli/common/progress.h"
#include "cli/report/bench_flags.h"
#include "cli/report/report_files.h"
#include "cli/report/time_series.h"
#include "cli/serve/cluster_file.h"
#include "cli/tpcc/cluster.h"
#include "cli/tpcc/directory.h"
#include "cli/tpcc/flags.h"
#include "cli/tpcc/options.h"
#include "cli/tpcc/result.h"
#include "tpcc/consistency.h"
#include "tpcc/driver.h"
#include "tpcc/loader.h"

namespace gannet::cli {
namespace {

double SecondsSince(uint64_t start_ns) {
  return static_cast<double>(NowNanos() - start_ns) * 1e-9;
}

Status Load(TpccCluster& cluster, Progress& progress, TpccResult* result) {
  const uint64_t start = NowNanos();
  progress.Begin("loading");
  const tpcc::LoadOptions options = {.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency())),
                                     .seed = result->options.run.load_seed};
  Status loaded = tpcc::Load(cluster.databases(), cluster.tables(), options,
                             [&progress](const tpcc::LoadProgress& p) { progress.Loaded(p); });
  result->load_seconds = SecondsSince(start);
  if (absl::IsResourceExhausted(loaded)) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s; give more --memory-per-node or fewer --warehouses", loaded.message()));
  }
  if (loaded.ok()) result->after_load = MeasureMemory(cluster.databases());
  return loaded;
}

// Loads, and makes the load durable; or records what was recovered from the directory.
Status Fill(TpccCluster& cluster, Progress& progress, TpccResult* result) {
  const bool durable = !result->options.database.directory.empty();
  if (durable) result->durability.emplace().log_description = cluster.databases()[0]->log_description();
  if (!result->options.loaded) {
    GANNET_RETURN_IF_ERROR(Load(cluster, progress, result));
    if (!durable) return absl::OkStatus();
    progress.Step("writing the first checkpoint");
    return cluster.Checkpoint();
  }
  for (const txn::RecoveryReport& recovery : cluster.recoveries()) {
    result->durability->recovery.push_back(recovery);
    result->load_seconds = std::max(result->load_seconds, recovery.log_seconds + recovery.load_seconds);
  }
  result->after_load = MeasureMemory(cluster.databases());
  return absl::OkStatus();
}

// The log's statistics for a run, from its start to its last interval, whose transactions are known, too.
class LogWatch {
 public:
  LogWatch(TpccCluster* cluster, DurabilityReport* report)
      : cluster_(cluster), report_(report), start_(LogStatisticsOf(cluster->databases())) {}
  void Ran(const tpcc::IntervalReport& interval) {
    report_->log = Difference(LogStatisticsOf(cluster_->databases()), start_);
    report_->transactions += interval.transactions;
    report_->new_orders += interval.new_orders;
  }
  void Ended() { report_->log_of_run = Difference(LogStatisticsOf(cluster_->databases()), start_); }

 private:
  TpccCluster* cluster_;
  DurabilityReport* report_;
  log::LogStatistics start_;
};

// Number of checkpoints ever taken in the directory, on all nodes: they are numbered.
StatusOr<uint64_t> CheckpointsOf(const TpccOptions& options) {
  if (options.database.directory.empty()) return 0;
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(*DiskFiles(), options.database.directory);
  if (!nodes.ok()) return nodes.status();
  uint64_t sum = 0;
  for (const NodeData& node : *nodes) {
    if (!node.manifest.checkpoints.empty()) sum += node.manifest.checkpoints.front().id;
  }
  return sum;
}

// False if Ctrl-C stopped it. The kernel may take seconds per GiB, so it is asked for a little more each time.
bool Prefault(TpccCluster& cluster, uint64_t bytes) {
  constexpr uint64_t kSlice = uint64_t{64} << 20;
  for (txn::Database* database : cluster.databases()) {
    for (uint64_t resident = 0; resident < bytes;) {
      if (InterruptGuard::requested()) return false;
      resident = std::min(bytes, resident + kSlice);
      database->PrefaultMemory(resident);
    }
  }
  return true;
}

Status Run(TpccCluster& cluster, Progress& progress, TpccResult* result) {
  const TpccOptions& o = result->options;
  tpcc::RunOptions options = o.run;
  options.stop = &InterruptGuard::requested();
  if (const cluster::Client* client = cluster.client(); client != nullptr) {
    options.first_worker = FirstWorkerOfSlot(o.cluster_file->config, client->slot());
  }

  if (*o.prefault > 0) {
    progress.Step("making memory resident");
    if (!Prefault(cluster, *o.prefault)) return absl::CancelledError("stopped while memory was made resident");
  }
  StatusOr<bench::Calibration> calibration = bench::CalibrateForRun(options.duration);
  if (!calibration.ok()) return calibration.status();
  result->before_run_calibration = *calibration;
  std::optional<LogWatch> log;
  if (result->durability.has_value()) log.emplace(&cluster, &*result->durability);
  const StatusOr<uint64_t> checkpoints = CheckpointsOf(o);
  if (!checkpoints.ok()) return checkpoints.status();
  auto report = tpcc::RunBenchmark(cluster.databases(), cluster.tables(), options,
                                   [&progress, &log](const tpcc::IntervalReport& interval) {
                                     progress.Ran(interval);
                                     if (log.has_value()) log->Ran(interval);
                                   });
  if (!report.ok()) return report.status();
  if (log.has_value()) log->Ended();
  const StatusOr<uint64_t> checkpoints_now = CheckpointsOf(o);
  if (!checkpoints_now.ok()) return checkpoints_now.status();
  if (result->durability.has_value()) result->durability->checkpoints = *checkpoints_now - *checkpoints;
  result->run = *std::move(report);
  result->options.run.coroutines = result->run->coroutines;
  result->options.in_flight = result->run->in_flight;
  result->interrupted = InterruptGuard::requested();
  calibration = bench::CalibrateForRun(options.duration);
  if (!calibration.ok()) return calibration.status();
  result->after_run_calibration = *calibration;
  result->after_run = MeasureMemory(cluster.databases());
  return absl::OkStatus();
}

// The conditions hold between transactions: no other client may run any at the same time.
bool OthersRun(const TpccCluster& cluster) {
  return cluster.client() != nullptr && cluster.client()->OtherClients();
}

Status Check(TpccCluster& cluster, Progress& progress, TpccResult* result) {
  constexpr const char* kOthersRun =
      "another client of this cluster is attached; when all have ended: gannet tpcc check --cluster";
  if (OthersRun(cluster)) {
    result->not_checked = kOthersRun;
    return absl::OkStatus();
  }
  progress.Step("checking the twelve consistency conditions");
  const uint64_t start = NowNanos();
  // After a stopped run, the check continues. A signal after the run, or without a run, ends the check.
  const std::atomic<bool>* const stop = result->interrupted ? nullptr : &InterruptGuard::requested();
  auto conditions = tpcc::CheckConsistency(cluster.databases(), cluster.tables(), stop);
  if (absl::IsCancelled(conditions.status()) && result->options.verb == TpccVerb::kRun) {
    result->interrupted = true;
    result->not_checked = "the check was stopped";
    return absl::OkStatus();
  }
  if (!conditions.ok()) return conditions.status();
  if (OthersRun(cluster)) {  // it came during the check
    result->not_checked = kOthersRun;
    return absl::OkStatus();
  }
  result->consistency = *std::move(conditions);
  result->check_seconds = SecondsSince(start);
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<TpccCluster>> OpenCluster(const TpccOptions& options, Progress& progress) {
  if (!options.cluster_file.has_value()) {
    if (options.loaded) progress.Step("recovering " + options.database.directory);
    return TpccCluster::Open(options, &InterruptGuard::requested());
  }
  return TpccCluster::Attach(options, {.at_most = options.wait.value_or(absl::Minutes(1)),
                                       .advice = kWaitAdvice,
                                       .stop = &InterruptGuard::requested(),
                                       .note = [&progress](const std::string& what) { progress.Step(what); }});
}

Status RunAndCheck(TpccCluster& cluster, Progress& progress, TpccResult* result) {
  if (result->options.verb == TpccVerb::kRun) GANNET_RETURN_IF_ERROR(Run(cluster, progress, result));
  return result->options.verb == TpccVerb::kPrepare ? absl::OkStatus() : Check(cluster, progress, result);
}

Status LoadRunCheck(TpccResult* result) {
  Progress progress;
  auto cluster = OpenCluster(result->options, progress);
  if (!cluster.ok()) return cluster.status();
  const cluster::Client* const client = (*cluster)->client();
  if (client != nullptr) result->slot = client->slot();
  if (Status filled = Fill(**cluster, progress, result); !filled.ok()) {
    (*cluster)->Abandon();
    return filled;
  }
  const Status done = RunAndCheck(**cluster, progress, result);
  if (!done.ok()) return client == nullptr ? done : client->Explain(done);
  if (!result->durability.has_value()) return absl::OkStatus();
  const uint64_t start = NowNanos();
  progress.Begin("closing " + result->options.database.directory);
  Status closed = (*cluster)->Close();
  result->durability->close_seconds = SecondsSince(start);
  return closed;
}

// The state in which a stopped command leaves the data, in one clause.
std::string WhatIsLeft(const TpccOptions& options) {
  const std::string& directory = options.database.directory;
  if (options.cluster_file.has_value()) return "the servers still have their data";
  if (directory.empty()) return "no data is kept";
  if (options.loaded) return directory + " still has its data";
  const StatusOr<TpccDirectory> found = LookIntoTpccDirectory(directory);
  if (!found.ok()) return absl::StrFormat("%s %s", directory, found.status().message());
  if (found->loaded) return directory + " has the load";
  return absl::StrFormat("%s has a load that did not finish; gannet tpcc prepare --dir %s%s loads it again", directory,
                         directory, found->nodes == 0 ? " --create" : "");
}

Status WriteFiles(const TpccResult& result, ReportFiles* files) {
  GANNET_RETURN_IF_ERROR(files->Write("--json", [&result] { return ToJson(result); }));
  if (!result.run.has_value()) return absl::OkStatus();
  const std::vector<tpcc::IntervalReport>& timeline = result.run->timeline;
  GANNET_RETURN_IF_ERROR(files->Write("--csv", [&timeline] {
    return TimeSeriesCsv({timeline.begin(), timeline.end()}, ProcedureNames());
  }));
  return files->Write("--html", [&result] { return ToHtml(result); });
}

int Execute(TpccOptions options, const std::string& name) {
  const InterruptGuard interrupts;
  const auto fail = [&name](const Status& status, int exit_code) {
    absl::FPrintF(stderr, "gannet tpcc %s: %s\n", name, status.message());
    return exit_code;
  };
  if (const Status complete = Complete(&options); !complete.ok()) return fail(complete, kExitBadFlags);
  StatusOr<ReportFiles> files = ReportFiles::Open(options.report);
  if (!files.ok()) return fail(files.status(), kExitBadFlags);
  TpccResult result;
  result.options = std::move(options);
  const Status done = LoadRunCheck(&result);
  if (absl::IsCancelled(done)) {
    return fail(absl::CancelledError(absl::StrFormat("%s; %s", done.message(), WhatIsLeft(result.options))),
                InterruptGuard::exit_code());
  }
  if (!done.ok()) return fail(NameMemoryFlag(done), kExitFailed);
  absl::FPrintF(files->text_stream(), "%s", ToText(result, files->text_style(result.options.report.histogram)));
  if (const Status written = WriteFiles(result, &*files); !written.ok()) return fail(written, kExitFailed);
  if (result.options.verb == TpccVerb::kCheck && !result.not_checked.empty()) {
    return fail(absl::FailedPreconditionError("not checked: " + result.not_checked), kExitFailed);
  }
  if (!result.consistent()) {
    return fail(absl::DataLossError("a consistency condition fails; see the report"), kExitFailed);
  }
  return result.interrupted ? InterruptGuard::exit_code() : kExitOk;
}

void AddVerb(CLI::App& tpcc, TpccVerb verb, const char* name, const char* description, const char* footer,
             int* exit_code) {
  CLI::App* command = tpcc.add_subcommand(name, description);
  command->footer(footer);
  auto options = std::make_shared<TpccOptions>();
  options->verb = verb;
  TpccFlags(options.get()).AddTo(command);
  command->callback([command, options, exit_code] {
    const Flags flags = TpccFlags(options.get());
    options->flag_of_servers = flags.FirstGiven(*command, kOfServers);
    options->flag_of_directory = flags.FirstGiven(*command, kOfDirectory);
    *exit_code = Execute(*options, command->get_name());
  });
}

}  // namespace

void AddTpccCommand(CLI::App& app, int* exit_code) {
  CLI::App* tpcc = app.add_subcommand("tpcc", "The TPC-C benchmark: nine tables, five transactions.");
  tpcc->require_subcommand(1);
  tpcc->footer(
      "Without --dir a database lives as long as the process that owns it: the verbs load what they need, and keep\n"
      "nothing. With --dir they keep the data, and continue with it; --create makes a new database there.\n"
      "`run` is the one to start with.");
  AddVerb(
      *tpcc, TpccVerb::kPrepare, "prepare", "Load the tables; report their rows and memory.",
      "Reports how long loading takes and how much memory the warehouses need. Without --dir the tables are not kept.",
      exit_code);
  AddVerb(*tpcc, TpccVerb::kRun, "run", "Load the tables, run the mix, check consistency, report.",
          "Exit code: 0 success; 1 the run failed or a condition does not hold; 2 a flag is wrong; 130 stopped by\n"
          "Ctrl-C (the report is printed if the run had begun).\n\n"
          "Example: gannet tpcc run --warehouses 2 --threads 2 --duration 30s --json report.json\n"
          "With a durable log: gannet tpcc run --warehouses 2 --threads 2 --duration 30s --dir data --create",
          exit_code);
  AddVerb(
      *tpcc, TpccVerb::kCheck, "check", "Load the tables and evaluate the twelve consistency conditions.",
      "Checks what --dir has, or else what `prepare` would load; `run` checks what its transactions left. Exit code 1\n"
      "if a condition does not hold.",
      exit_code);
}

}  // namespace gannet::cli
