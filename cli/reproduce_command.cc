#include "cli/reproduce_command.h"

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
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/reproduce_report.h"
#include "cli/ycsb_flags.h"
#include "cli/ycsb_options.h"
#include "experiments/experiment.h"
#include "experiments/run.h"
#include "experiments/xstore/xstore.h"

namespace gannet::cli {
namespace {

using experiments::Experiment;

constexpr double kMinScale = 0.01;
constexpr double kMaxScale = 1000;
constexpr uint64_t kMinKeys = 1000;
constexpr uint64_t kMaxKeys = 4'000'000'000;

struct Options {
  experiments::xstore::Options rack;
  std::vector<std::string> only;
  int jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::string json;
  std::string html;
};

int Fail(const Status& status, int exit_code) {
  absl::FPrintF(stderr, "gannet reproduce xstore: %s\n", status.message());
  return exit_code;
}

StatusOr<double> ParseScale(const std::string& text) {
  double scale = 0;
  if (absl::SimpleAtod(text, &scale) && scale >= kMinScale && scale <= kMaxScale) return scale;
  return absl::InvalidArgumentError(absl::StrFormat("must be a number from %g to %g", kMinScale, kMaxScale));
}

StatusOr<std::vector<std::string>> ParseOnly(const std::string& text) {
  std::vector<std::string> known;
  for (const Experiment& experiment : experiments::xstore::Experiments({})) known.push_back(experiment.id);
  std::vector<std::string> ids = absl::StrSplit(text, ',');
  for (const std::string& id : ids) {
    if (std::ranges::find(known, id) == known.end()) {
      return absl::InvalidArgumentError(absl::StrFormat("'%s': must be some of %s", id, absl::StrJoin(known, ",")));
    }
  }
  return ids;
}

// Completes and checks the options of all points. InvalidArgument names the wrong flag.
Status CompleteAll(std::vector<Experiment>* all) {
  for (Experiment& experiment : *all) {
    for (experiments::Point& point : experiment.points) {
      if (!point.tpcc.has_value()) GANNET_RETURN_IF_ERROR(Complete(&point.options));
    }
  }
  return absl::OkStatus();
}

int Execute(const Options& options) {
  auto json = OpenOutput("--json", options.json);
  if (!json.ok()) return Fail(json.status(), kExitBadFlags);
  auto html = OpenOutput("--html", options.html);
  if (!html.ok()) return Fail(html.status(), kExitBadFlags);
  std::vector<Experiment> runs = experiments::xstore::Experiments(options.rack);
  if (!options.only.empty()) {
    std::erase_if(runs, [&options](const Experiment& experiment) {
      return std::ranges::find(options.only, experiment.id) == options.only.end();
    });
  }
  if (const Status complete = CompleteAll(&runs); !complete.ok()) return Fail(complete, kExitBadFlags);
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
  const bool interrupted = absl::IsCancelled(run);
  if (!run.ok() && !interrupted) return Fail(run, kExitFailed);
  if (interrupted) absl::FPrintF(stderr, "gannet reproduce xstore: stopped; the report has the finished runs\n");
  const experiments::Report report = experiments::xstore::MakeReport(options.rack, std::move(runs));
  absl::FPrintF(TextStream(*json), "%s", ToText(report));
  if (json->has_value()) {
    if (Status written = (*json)->Write(ToJson(report)); !written.ok()) {
      return Fail(written, kExitFailed);
    }
  }
  if (html->has_value()) {
    if (Status written = (*html)->Write(ToHtml(report)); !written.ok()) {
      return Fail(written, kExitFailed);
    }
  }
  return interrupted ? InterruptGuard::exit_code() : kExitOk;
}

}  // namespace

void AddReproduceCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("reproduce", "The experiments of a paper, on a simulated rack like its own.");
  command->require_subcommand(1);
  CLI::App* xstore =
      command->add_subcommand("xstore", "XStore (OSDI'20): YCSB, latency, inserts, caches, key forms, TPC-C.");
  xstore->footer(
      "Every point is a run of `gannet ycsb --fabric sim` in its own process. The report compares our throughput with\n"
      "the paper's, where its text gives one, and says what bounds ours. The same flags give the same figures.\n\n"
      "Exit code: 0 all ran; 1 a run failed; 2 a flag is wrong; 130 stopped by Ctrl-C (the report has the "
      "finished runs).\n\n"
      "Examples: gannet reproduce xstore --html xstore.html\n"
      "          gannet reproduce xstore --keys 10M --scale 3 --only fig10,fig12");
  auto options = std::make_shared<Options>();
  Options* o = options.get();
  Add(
      *xstore, "--keys", &o->rack.keys, [](const std::string& text) { return ParseCount(text, kMinKeys, kMaxKeys); },
      "N", "Keys that are loaded (the paper: 100M). Default: 1M");
  Add(*xstore, "--scale", &o->rack.scale, ParseScale, "F",
      "Length of the measurement: F x 300 us of virtual time for each point. Default: 1");
  Add(*xstore, "--clients", &o->rack.clients, ParseClients, "MxT",
      "Client machines x threads of each. Default: 15x24, as in the paper");
  Add(*xstore, "--only", &o->only, ParseOnly, "NAMES", "Only these: fig10,fig12,fig14b,burst,fig15b,fig15d,fig16b");
  AddInteger(*xstore, "--seed", &o->rack.seed, 0, INT64_MAX, "Seed of everything random. Default: 1");
  AddInteger(*xstore, "--jobs", &o->jobs, 1, 1024, "Runs at once. Default: one per core");
  AddPath(*xstore, "--json", &o->json, "FILE", "Write the report as JSON to this file; -: to standard output");
  AddPath(*xstore, "--html", &o->html, "FILE", "Write the report with plots as one HTML page");
  xstore->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace gannet::cli
