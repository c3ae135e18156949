#include "lab/cli/reproduce_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/quantity.h"
#include "cli/common/command.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/common/interrupt.h"
#include "cli/common/progress.h"
#include "cli/lab_commands.h"
#include "cli/report/report_files.h"
#include "cli/ycsb/flags.h"
#include "cli/ycsb/options.h"
#include "lab/cli/reproduce_report.h"
#include "lab/experiments/catfish/catfish.h"
#include "lab/experiments/dex/dex.h"
#include "lab/experiments/dolphin/dolphin.h"
#include "lab/experiments/experiment.h"
#include "lab/experiments/kinds/kinds.h"
#include "lab/experiments/paths/paths.h"
#include "lab/experiments/rolex/rolex.h"
#include "lab/experiments/run.h"
#include "lab/experiments/xstore/xstore.h"

namespace gannet::cli {
namespace {

using experiments::Experiment;

constexpr double kMinScale = 0.01;
constexpr double kMaxScale = 1000;
constexpr uint64_t kMinKeys = 1000;
constexpr uint64_t kMaxKeys = 4'000'000'000;

// What can be reproduced: the experiments of a paper, or our own.
struct Subject {
  const char* name;
  const char* about;
  const char* footer;
  // What is loaded, and how many the paper has: --keys says something. Null: it does not.
  const char* keys;
  experiments::Options rack;  // the defaults of --keys and --clients
  const char* clients;        // their source
  const char* window;         // the measurement of one point at scale 1
  std::vector<Experiment> (*experiments)(const experiments::Options&);
  experiments::Report (*report)(const experiments::Options&, std::vector<Experiment>);

  std::string Command() const { return absl::StrCat("reproduce ", name); }
};

constexpr char kExitCodes[] =
    "\n\nExit code: 0 all ran; 1 a run failed; 2 a flag is wrong; 130 stopped by Ctrl-C (the report has the finished "
    "runs).\n\n";

const Subject kSubjects[] = {
    {.name = "xstore",
     .about = "XStore (OSDI'20): YCSB, latency, inserts, caches, key forms, inline values, TPC-C, a log.",
     .footer =
         "Every point is a run of `gannet ycsb --fabric sim` in its own process. The report compares our throughput "
         "with\nthe paper's, where its text gives one, and says what bounds ours. The same flags give the same "
         "figures.",
     .keys = "Keys that are loaded (the paper: 100M)",
     .rack = {},
     .clients = "as in the paper",
     .window = "F x 300 us of virtual time for each point",
     .experiments = experiments::xstore::Experiments,
     .report = experiments::xstore::MakeReport},
    {.name = "catfish",
     .about = "Catfish (TSAS'22): searches of an R-tree by calls, by READs, and by the path that is chosen for each.",
     .footer = "Every request is a transaction on a simulated rack with one server. The report compares the adaptive "
               "way with the\nbetter one of the fixed ways, and our throughput with the paper's, where its text gives "
               "one. The same flags give the\nsame figures.",
     .keys = "Rectangles that are loaded (the paper: 2M). With fewer, rectangles and windows are larger",
     .rack = {.keys = 300'000, .clients = {8, 32}},
     .clients = "as in the paper",
     .window = "F x 10 ms of virtual time for each point",
     .experiments = experiments::catfish::Experiments,
     .report = experiments::catfish::MakeReport},
    {.name = "rolex",
     .about = "ROLEX (FAST'23): YCSB, inserts, key forms, cores and memory, against FG, Sherman, EMT-D and XStore-D.",
     .footer =
         "Every point is a run of `gannet ycsb --fabric sim --inline` in its own process. The report compares our "
         "factors with\nthe paper's, where its text gives one, and says what bounds ours. The same flags give the same "
         "figures.",
     .keys = "Keys that are loaded (the paper: 100M)",
     .rack = {.keys = 1'000'000, .clients = {3, 24}},
     .clients = "as in the paper",
     .window = "F x 2 ms of virtual time for each point",
     .experiments = experiments::rolex::Experiments,
     .report = experiments::rolex::MakeReport},
    {.name = "dex",
     .about = "DEX (VLDB'24): its five workloads, against Sherman, P-Sherman and ROLEX.",
     .footer =
         "Every point is a run of `gannet ycsb --fabric sim --inline --colocated` in its own process. The report "
         "compares our\nfactors with the paper's, and says what is different. The same flags give the same figures.",
     .keys = "Keys that are loaded (the paper: 200M)",
     .rack = {.keys = 1'000'000, .clients = {4, 36}},
     .clients = "as in the paper",
     .window = "F x 10 ms of virtual time for each point",
     .experiments = experiments::dex::Experiments,
     .report = experiments::dex::MakeReport},
    {.name = "dolphin",
     .about = "Dolphin (MSST'24): sizes of the cache, YCSB, inserts, memory and scans, against Sherman.",
     .footer =
         "Every point is a run of `gannet ycsb --fabric sim` in its own process. The report compares our factors with "
         "the\npaper's, where its text gives one, and says what is different. The same flags give the same figures.",
     .keys = "Keys that are loaded (the paper: 512M)",
     .rack = {.keys = 1'000'000, .clients = {4, 18}},
     .clients = "as in the paper",
     .window = "F x 5 ms of virtual time for each point, of inserts alone longer",
     .experiments = experiments::dolphin::Experiments,
     .report = experiments::dolphin::MakeReport},
    {.name = "paths",
     .about = "How the path of an access is chosen: TPC-C with 4 to 24 cores per server, and a step of load.",
     .footer = "Not of a paper. Each run is TPC-C on a simulated rack, with fixed paths (one-sided; calls; calls for\n"
               "ordered tables only) and with the adaptive one. The report compares the adaptive path with the best "
               "fixed one.\nThe same flags give the same figures.",
     .keys = nullptr,
     .rack = {},
     .clients = "as in XStore's paper",
     .window = "F x 2 ms of virtual time for each point, of the step of load F x 160 ms",
     .experiments = experiments::paths::Experiments,
     .report = experiments::paths::MakeReport},
    {.name = "kinds",
     .about = "All kinds of index in one table: reads, updates, inserts and scans of other nodes, and memory.",
     .footer = "Not of a paper: it shows which kind to take for a table (docs/indexes.md). Each run is the same rows "
               "with one kind\nof index on a simulated rack. The same flags give the same figures.",
     .keys = "Rows that are loaded",
     .rack = {.keys = 300'000, .clients = {8, 16}},
     .clients = "enough to keep the server's NIC busy",
     .window = "F x 5 ms of virtual time for each point, F x 10 ms with few clients",
     .experiments = experiments::kinds::Experiments,
     .report = experiments::kinds::MakeReport},
};

struct Options {
  const Subject* subject;
  experiments::Options rack;
  std::vector<std::string> only;
  int jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::string json;
  std::string html;
};

StatusOr<double> ParseScale(const std::string& text) {
  double scale = 0;
  if (absl::SimpleAtod(text, &scale) && scale >= kMinScale && scale <= kMaxScale) return scale;
  return absl::InvalidArgumentError(absl::StrFormat("must be a number from %g to %g", kMinScale, kMaxScale));
}

std::vector<std::string> IdsOf(const Subject& subject) {
  std::vector<std::string> ids;
  for (const Experiment& experiment : subject.experiments({})) ids.push_back(experiment.id);
  return ids;
}

StatusOr<std::vector<std::string>> ParseOnly(const Subject& subject, const std::string& text) {
  const std::vector<std::string> known = IdsOf(subject);
  std::vector<std::string> ids = absl::StrSplit(text, ',');
  for (const std::string& id : ids) {
    if (id.empty()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("has an empty element: must be some of %s", absl::StrJoin(known, ",")));
    }
    if (std::ranges::find(known, id) == known.end()) {
      return absl::InvalidArgumentError(absl::StrFormat("'%s': must be some of %s", id, absl::StrJoin(known, ",")));
    }
  }
  return ids;
}

// Complete() would name a flag of `gannet ycsb` that `gannet reproduce` does not have.
Status CheckMachines(const Experiment& experiment, const bench::YcsbOptions& options) {
  const auto& [machines, threads] = options.clients;
  if (options.insert_rate == 0 || machines > 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--clients %dx%d: %s needs a machine that inserts while the others read; give --clients 2x%d or "
                      "more, or leave %s out with --only",
                      machines, threads, experiment.id, threads, experiment.id));
}

// Completes and checks the options of all points. InvalidArgument names the wrong flag.
Status CompleteAll(std::vector<Experiment>* all) {
  for (Experiment& experiment : *all) {
    for (experiments::Point& point : experiment.points) {
      if (!point.is_ycsb()) continue;
      GANNET_RETURN_IF_ERROR(CheckMachines(experiment, point.options));
      GANNET_RETURN_IF_ERROR(Complete(&point.options));
      point.configuration = YcsbConfiguration(point.options);
    }
  }
  return absl::OkStatus();
}

int Execute(const Options& options) {
  const Subject& subject = *options.subject;
  StatusOr<ReportFiles> files = ReportFiles::Open({{"--json", options.json}, {"--html", options.html}});
  if (!files.ok()) return Fail(subject.Command(), files.status(), kExitBadFlags);
  std::vector<Experiment> runs = subject.experiments(options.rack);
  if (!options.only.empty()) {
    std::erase_if(runs, [&options](const Experiment& experiment) {
      return std::ranges::find(options.only, experiment.id) == options.only.end();
    });
  }
  if (const Status complete = CompleteAll(&runs); !complete.ok())
    return Fail(subject.Command(), complete, kExitBadFlags);
  const auto begin = std::chrono::steady_clock::now();
  const InterruptGuard interrupts;
  Progress progress;
  experiments::RunExperimentsOptions how;
  how.jobs = options.jobs;
  how.progress = [&progress, begin](size_t done, size_t of, const std::string& what) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
    progress.Step(absl::StrFormat("%d of %d runs, %d s: %s", done, of, seconds.count(), what));
  };
  how.ycsb_progress = YcsbProgressOf(&progress);
  how.stop = &InterruptGuard::requested();
  const Status run = experiments::RunExperiments(how, &runs);
  progress.EndCount();
  const bool interrupted = absl::IsCancelled(run);
  if (!run.ok() && !interrupted) return Fail(subject.Command(), run, kExitFailed);
  if (interrupted) {
    absl::FPrintF(stderr, "gannet reproduce %s: stopped; the report has the finished runs\n", subject.name);
  }
  const experiments::Report report = subject.report(options.rack, std::move(runs));
  absl::FPrintF(files->text_stream(), "%s", ToText(report));
  Status written = files->Write("--json", [&report] { return ToJson(report); });
  if (written.ok()) written = files->Write("--html", [&report] { return ToHtml(report); });
  if (!written.ok()) return Fail(subject.Command(), written, kExitFailed);
  return interrupted ? InterruptGuard::exit_code() : kExitOk;
}

void AddSubject(const Subject& subject, CLI::App* command, int* exit_code) {
  CLI::App* app = command->add_subcommand(subject.name, subject.about);
  const std::string page = absl::StrFormat("          gannet reproduce %s --scale 3 --only %s --html %s.html",
                                           subject.name, IdsOf(subject).front(), subject.name);
  app->footer(absl::StrCat(subject.footer, kExitCodes, "Examples: gannet reproduce ", subject.name, "\n", page));
  auto options = std::make_shared<Options>();
  Options* o = options.get();
  o->subject = &subject;
  o->rack = subject.rack;
  if (subject.keys != nullptr) {
    Add(
        *app, "--keys", &o->rack.keys, [](const std::string& text) { return ParseCount(text, kMinKeys, kMaxKeys); },
        "N", absl::StrFormat("%s. Default: %s", subject.keys, WithCommas(subject.rack.keys)));
  }
  Add(*app, "--scale", &o->rack.scale, ParseScale, "F",
      absl::StrCat("Length of the measurement: ", subject.window, ". Default: 1"));
  Add(*app, "--clients", &o->rack.clients, ParseClients, "MxT",
      absl::StrFormat("Client machines x threads of each. Default: %dx%d, %s", subject.rack.clients.machines,
                      subject.rack.clients.threads, subject.clients));
  Add(
      *app, "--only", &o->only, [&subject](const std::string& text) { return ParseOnly(subject, text); }, "NAMES",
      absl::StrCat("Only these: ", absl::StrJoin(IdsOf(subject), ",")));
  app->add_flag_callback(
      "--no-spread", [o] { o->rack.spread = false; },
      "Every round trip takes the same time, apart from queues. Without this flag one in ten takes 0.7 us longer than\n"
      "the median or more, one in 100 1.6 us, one in 1,000 5 us");
  AddInteger(*app, "--seed", &o->rack.seed, 0, INT64_MAX, "Seed of everything random. Default: 1");
  AddInteger(*app, "--jobs", &o->jobs, 1, 1024, "Runs at once. Default: one per core");
  AddPath(*app, "--json", &o->json, "FILE", "Write the report as JSON to this file; -: to standard output");
  AddPath(*app, "--html", &o->html, "FILE",
          "Write the report with plots as one HTML page to this file; -: to standard output");
  app->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace

void AddReproduceCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(kReproduceCommand.name, kReproduceCommand.about);
  command->require_subcommand(1);
  for (const Subject& subject : kSubjects) AddSubject(subject, command, exit_code);
}

}  // namespace gannet::cli
