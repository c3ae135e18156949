#include "lab/cli/sim_command.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/quantity.h"
#include "cli/common/command.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_text.h"
#include "cli/common/progress.h"
#include "cli/common/table.h"
#include "cli/common/terminal.h"
#include "cli/lab_commands.h"
#include "cli/report/report_files.h"
#include "lab/cli/sim_html.h"
#include "lab/scenario/mark_tally.h"
#include "lab/scenario/report_json.h"
#include "lab/scenario/scenario.h"
#include "lab/scenario/sweep.h"
#include "lab/scenario/workload/workload.h"

namespace gannet::cli {
namespace {

using scenario::ScenarioOptions;
using scenario::ScenarioReport;

constexpr int64_t kMaxSeed = INT64_MAX;

struct SimOptions {
  uint64_t seed = 1;
  uint64_t seeds = 0;       // 0: one seed, in this process
  std::optional<int> jobs;  // none: one per core
  std::string scenario_file;
  std::string workload;
  std::optional<absl::Duration> until;
  std::string trace_file;
  std::string elle_file;
  std::string json_file;
  std::string html_file;
  bool keep_going = false;
  bool no_faults = false;
  bool require_marks = false;
};

StatusOr<std::string> ParseWorkload(const std::string& text) {
  const std::vector<std::string>& names = scenario::WorkloadNames();
  if (std::ranges::find(names, text) != names.end()) return text;
  return absl::InvalidArgumentError("must be one of " + absl::StrJoin(names, ", "));
}

// The flag is part of the command line that repeats the run of a seed.
constexpr Marks kRepeated = 1;

Flags SimFlags(SimOptions* o) {
  Flags flags;
  flags.Add("--seed", "", &o->seed, form::Integer(0, kMaxSeed), "Seed of everything random. Default: 1", kRepeated);
  flags.Add("--seeds", "", &o->seeds, form::Integer(1, INT64_MAX),
            "Number of seeds, from --seed on, each in its own process");
  flags.Add("--jobs", "", &o->jobs, form::Integer(1, 1024), "Processes at once, with --seeds. Default: one per core");
  flags.Add("--scenario", "", &o->scenario_file, form::Path("FILE"),
            "A JSON object that sets what the seed would draw: workload, nodes, workers_per_node, coroutines, keys, "
            "nic,\ncoherent, durability, power_cuts, deaths, checks, client, faulty_nanos, settle_nanos, faults {...}, "
            "and options of\nthe databases. --json shows one in full",
            kRepeated);
  flags.Add(
      "--workload", "", &o->workload, Form{"NAME", ParseWorkload, form::kItself},
      "registers (reads, updates, inserts, removals, scans of few keys), rectangles (the same of a spatial table, "
      "and searches\nof windows), append (lists that only grow, for Elle), or tpcc (its twelve conditions). "
      "Default: drawn",
      kRepeated);
  flags.Add("--until", "", &o->until, form::Time(absl::Milliseconds(1), absl::Hours(1)),
            "Approximate virtual time with faults; at most 1h. Default: 20ms", kRepeated);
  flags.AddSwitch("--no-faults", "", &o->no_faults, "Inject no faults", kRepeated);
  flags.AddSwitch("--require-marks", "", &o->require_marks,
                  "With --seeds: fail if a place in the code that only bad luck leads to (docs/simulation.md) was "
                  "reached by no seed");
  flags.AddSwitch("--keep-going", "", &o->keep_going, "With --seeds: do not stop at the first seed that fails");
  flags.Add("--trace", "", &o->trace_file, form::Path("FILE"), "Write a trace, one line per event");
  flags.Add("--elle", "", &o->elle_file, form::Path("FILE"),
            "With --workload append: write the history as EDN, for Elle");
  flags.Add("--json", "", &o->json_file, form::Path("FILE"),
            "Write the report as JSON to this file; -: to standard output");
  flags.Add("--html", "", &o->html_file, form::Path("FILE"),
            "Write the report as one HTML page with plots to this file; -: to standard output");
  return flags;
}

// The words after `gannet sim` that repeat the run of `seed`.
std::string ReplayArguments(SimOptions o, uint64_t seed) {
  o.seed = seed;
  return absl::StrJoin(SimFlags(&o).Arguments(kRepeated), " ");
}

StatusOr<ScenarioOptions> MakeScenario(const SimOptions& o) {
  ScenarioOptions result;
  if (!o.scenario_file.empty()) {
    std::ifstream file(o.scenario_file);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) return absl::InvalidArgumentError(absl::StrCat("--scenario ", o.scenario_file, ": cannot be read"));
    if (Status status = ReadScenario(text.str(), &result); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--scenario ", o.scenario_file, ": ", status.message()));
    }
  }
  result.seed = o.seed;
  if (!o.workload.empty()) result.workload = o.workload;
  if (o.until.has_value()) result.faulty_nanos = static_cast<uint64_t>(absl::ToInt64Nanoseconds(*o.until));
  if (o.no_faults) {
    result.faults = rdma::sim::Faults{};
    result.deaths = 0;
  }
  result.elle_file = o.elle_file;
  GANNET_RETURN_IF_ERROR(CheckScenario(result));
  return result;
}

// Prints lines that fit the terminal, or a report's width elsewhere.
void Print(std::FILE* to, const std::string& text) {
  absl::FPrintF(to, "%s", Wrap(text, TerminalWidth(fileno(to)).value_or(kPlainWidth)));
}

// How the transactions of a run, or of a sweep, ended, and what happened to them.
std::string OutcomesText(const ScenarioReport& report) {
  return absl::StrFormat("%s committed, %s rolled back, %s unknown, %s, %s, %s, %s", WithCommas(report.committed),
                         WithCommas(report.failed), WithCommas(report.unknown), Count(report.aborts, "conflict"),
                         Count(report.power_cuts, "power cut"), Count(report.deaths, "death"),
                         Count(report.checks, "check"));
}

void PrintReport(const SimOptions& o, const ScenarioOptions& scenario, const ScenarioReport& report, std::FILE* to) {
  ScenarioOptions seeded = scenario;
  seeded.seed = report.seed;
  Print(to, absl::StrFormat("seed %d: %s\n", report.seed, Describe(Drawn(seeded))));
  absl::FPrintF(to, "%s: %s\n", report.passed ? "passed" : "FAILED", report.verdict);
  if (!report.details.empty()) absl::FPrintF(to, "%s\n", report.details);
  Print(to, OutcomesText(report) + "\n");
  Print(to, absl::StrFormat(
                "%.3f virtual seconds in %.3f real ones (1:%.1f); %s, %s, %s\n",
                static_cast<double>(report.virtual_nanos) * 1e-9, static_cast<double>(report.real_nanos) * 1e-9,
                static_cast<double>(report.real_nanos) / std::max<double>(1, static_cast<double>(report.virtual_nanos)),
                Count(report.events, "event"), CountOf(report.switches, "switch", "switches"),
                Count(report.preemptions, "preemption")));
  absl::FPrintF(to, "digest %016x\n", report.digest);
  absl::FPrintF(to, "%d of %d marks reached\n", report.marks.size(), scenario::MarkTally().seeds().size());
  if (!report.passed) absl::FPrintF(to, "replay: gannet sim %s --trace trace.txt\n", ReplayArguments(o, report.seed));
}

// Prints each Sometimes mark with the number of seeds that reached it, the rarest first. False if marks are required
// and one was not reached.
bool PrintMarks(std::FILE* to, const SimOptions& o, const scenario::MarkTally& tally) {
  std::vector<std::pair<uint64_t, std::string>> marks;
  for (const auto& [mark, seeds] : tally.seeds()) marks.emplace_back(seeds, mark);
  std::ranges::sort(marks);
  const std::vector<std::string> never = tally.NeverReached();
  absl::FPrintF(to, "%d of %d marks reached; number of seeds for each:\n", marks.size() - never.size(), marks.size());
  for (const auto& [seeds, mark] : marks) {
    if (seeds > 0) absl::FPrintF(to, "  %8d  %s\n", seeds, mark);
  }
  if (!never.empty()) Print(to, "not reached: " + absl::StrJoin(never, ", ") + "\n");
  if (never.empty() || !o.require_marks) return true;
  for (const std::string& mark : never) absl::FPrintF(to, "FAILED: no seed reached the mark \"%s\"\n", mark);
  return false;
}

// The exit code after a run that has `passed` or not.
int WriteFiles(ReportFiles* files, const nlohmann::ordered_json& json, const std::function<std::string()>& html,
               bool passed) {
  Status written = files->Write("--json", [&json] { return JsonText(json); });
  if (written.ok()) written = files->Write("--html", html);
  if (!written.ok()) return Fail("sim", written, kExitFailed);
  return passed ? kExitOk : kExitFailed;
}

// Reports what a stopped run of one seed leaves; returns the exit code.
int Stopped(const SimOptions& o, const ScenarioReport& report) {
  std::string files;
  if (!o.trace_file.empty()) absl::StrAppend(&files, "; ", o.trace_file, " has the events until then");
  if (!o.elle_file.empty()) absl::StrAppend(&files, "; ", o.elle_file, " has no history");
  absl::FPrintF(stderr, "gannet sim: stopped after %.3f virtual seconds, without a verdict%s\n",
                static_cast<double>(report.virtual_nanos) * 1e-9, files);
  return InterruptGuard::exit_code();
}

int RunOne(const SimOptions& o, ScenarioOptions scenario, ReportFiles* files) {
  std::ofstream trace;
  if (!o.trace_file.empty()) {
    trace.open(o.trace_file);
    if (!trace) {
      return Fail("sim", absl::InvalidArgumentError(absl::StrCat("--trace ", o.trace_file, ": cannot be written")),
                  kExitBadFlags);
    }
    scenario.trace = [&trace](std::string_view line) { trace << line << '\n'; };
  }
  const InterruptGuard interrupts;
  scenario.stop = &InterruptGuard::requested();
  const Progress progress(absl::StrFormat("running seed %d", scenario.seed));
  const ScenarioReport report = RunScenario(scenario);
  if (report.stopped) return Stopped(o, report);
  PrintReport(o, scenario, report, files->text_stream());
  trace.close();
  if (!o.trace_file.empty() && !trace) {
    return Fail("sim",
                absl::UnavailableError(absl::StrCat("--trace ", o.trace_file, ": is not complete: the disk is full?")),
                kExitFailed);
  }
  nlohmann::ordered_json json = ToJson(report);
  json["scenario"] = ToJson(Drawn(scenario));
  return WriteFiles(
      files, json, [&] { return ToHtml(report, Drawn(scenario)); }, report.passed);
}

int RunMany(const SimOptions& o, const ScenarioOptions& scenario, ReportFiles* files) {
  scenario::SweepOptions sweep;
  sweep.first_seed = o.seed;
  sweep.seeds = o.seeds;
  const int jobs = o.jobs.value_or(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  sweep.jobs = jobs;
  sweep.scenario = scenario;
  sweep.stop = &InterruptGuard::requested();
  const InterruptGuard interrupts;
  Progress progress;
  std::FILE* const to = files->text_stream();
  const uint64_t begun = NowNanos();
  uint64_t done = 0;
  uint64_t failed = 0;
  uint64_t undecided = 0;
  SweepResult all;
  all.first_seed = o.seed;
  all.wanted = o.seeds;
  ScenarioReport& total = all.total;
  scenario::MarkTally& marks = all.marks;
  nlohmann::ordered_json failures = nlohmann::ordered_json::array();
  const Status status = RunSweep(sweep, [&](const ScenarioReport& report) {
    ++done;
    undecided += report.undecided ? 1 : 0;
    marks.Add(report);
    total.committed += report.committed;
    total.failed += report.failed;
    total.unknown += report.unknown;
    total.aborts += report.aborts;
    total.power_cuts += report.power_cuts;
    total.deaths += report.deaths;
    total.checks += report.checks;
    total.events += report.events;
    total.virtual_nanos += report.virtual_nanos;
    total.real_nanos += report.real_nanos;
    if (!o.html_file.empty()) {
      all.reports.push_back(report);
      all.reports.back().marks.clear();
    }
    progress.Count(absl::StrFormat("%d of %d %s, %d failed", done, o.seeds, o.seeds == 1 ? "seed" : "seeds", failed));
    if (report.passed) return true;
    ++failed;
    progress.EndCount();
    PrintReport(o, scenario, report, to);
    std::fflush(to);
    failures.push_back(ToJson(report));
    return o.keep_going;
  });
  progress.EndCount();
  const bool interrupted = absl::IsCancelled(status);
  if (!status.ok() && !interrupted) return Fail("sim", status, kExitFailed);
  const double seconds = static_cast<double>(NowNanos() - begun) * 1e-9;
  if (interrupted) absl::FPrintF(to, "stopped after %d of %s\n", done, Count(o.seeds, "seed"));
  Print(to, absl::StrFormat("%s from %d: %d failed, %d undecided; %s\n", Count(done, "seed"), o.seed, failed, undecided,
                            OutcomesText(total)));
  Print(to, absl::StrFormat("%.1f virtual seconds in %.1f real ones of %s; %.1f million events\n",
                            static_cast<double>(total.virtual_nanos) * 1e-9, seconds,
                            CountOf(static_cast<uint64_t>(jobs), "process", "processes"),
                            static_cast<double>(total.events) * 1e-6));
  const bool marked = PrintMarks(to, o, marks) || interrupted;
  nlohmann::ordered_json json;
  json["seeds"] = done;
  json["first_seed"] = o.seed;
  json["failed"] = failed;
  json["undecided"] = undecided;
  json["seconds"] = seconds;
  json["total"] = ToJson(total);
  json["marks"] = marks.seeds();
  json["marks_never_reached"] = marks.NeverReached();
  json["failures"] = failures;
  json["interrupted"] = interrupted;
  std::ranges::sort(all.reports, {}, &ScenarioReport::seed);  // they came as they ended
  all.seconds = seconds;
  all.interrupted = interrupted;
  const int exit_code = WriteFiles(
      files, json, [&all] { return ToHtml(all); }, failed == 0 && marked);
  return interrupted && exit_code == kExitOk ? InterruptGuard::exit_code() : exit_code;
}

// InvalidArgument if the flags of a sweep do not fit each other.
Status CheckSweep(const SimOptions& o) {
  const char* flag = o.require_marks      ? "--require-marks"
                     : o.jobs.has_value() ? "--jobs"
                     : o.keep_going       ? "--keep-going"
                                          : nullptr;
  if (o.seeds == 0 && flag != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " is for a sweep: give --seeds, too, or leave ", flag, " out"));
  }
  const uint64_t most = kMaxSeed - o.seed + 1;
  if (o.seeds <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--seeds ", o.seeds, ": from --seed ", o.seed, " on there are ", most, "; give fewer"));
}

int Execute(const SimOptions& o) {
  StatusOr<ScenarioOptions> scenario = MakeScenario(o);
  if (!scenario.ok()) return Fail("sim", scenario.status(), kExitBadFlags);
  if (const Status consistent = CheckSweep(o); !consistent.ok()) return Fail("sim", consistent, kExitBadFlags);
  if (o.seeds != 0 && (!o.trace_file.empty() || !o.elle_file.empty())) {
    return Fail("sim", absl::InvalidArgumentError("--trace and --elle are for one seed: leave out --seeds"),
                kExitBadFlags);
  }
  if (!o.elle_file.empty() && Drawn(*scenario).workload != "append") {
    return Fail("sim", absl::InvalidArgumentError("--elle: only --workload append makes lists"), kExitBadFlags);
  }
  StatusOr<ReportFiles> files = ReportFiles::Open({{"--json", o.json_file}, {"--html", o.html_file}},
                                                  {{"--trace", o.trace_file}, {"--elle", o.elle_file}});
  if (!files.ok()) return Fail("sim", files.status(), kExitBadFlags);
  if (o.seeds == 0) return RunOne(o, *std::move(scenario), &*files);
  return RunMany(o, *scenario, &*files);
}

}  // namespace

void AddSimCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(kSimCommand.name, kSimCommand.about);
  command->footer(
      "Everything runs in one thread and virtual time, driven by the seed: the same seed gives the same run. What the\n"
      "scenario does not set (nodes, workload, kinds and rates of faults) is drawn from the seed. During faults no\n"
      "result may be wrong; after them, every worker must make progress. At the end all transactions are checked\n"
      "(strict serializability, phantoms included), and so is the structure of every index.\n"
      "If a seed fails, the exit code is 1, and the output has the error and the command that repeats it. If Ctrl-C\n"
      "stops the command, the exit code is 130; a sweep still sums up what was run, a single seed has no result.\n\n"
      "Example: gannet sim --seeds 1000\n"
      "         gannet sim --seed 17 --trace trace.txt");
  auto options = std::make_shared<SimOptions>();
  SimFlags(options.get()).AddTo(command);
  command->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace gannet::cli
