#include "lab/cli/crash_command.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/command.h"
#include "cli/common/data_directory.h"
#include "cli/common/exit_codes.h"
#include "cli/common/flags.h"
#include "cli/common/interrupt.h"
#include "cli/common/json_text.h"
#include "cli/common/output_file.h"
#include "cli/common/progress.h"
#include "cli/lab_commands.h"
#include "cli/report/report_files.h"
#include "lab/cli/crash_flags.h"
#include "lab/cli/crash_html.h"
#include "lab/cli/crash_text.h"
#include "lab/scenario/crash/child.h"
#include "lab/scenario/crash/crash_test.h"
#include "lab/scenario/crash/options.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {
namespace {

namespace crash = scenario::crash;
using crash::CrashOptions;

StatusOr<std::string> MakeTemporaryDirectory() {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / "gannet-crashtest-XXXXXX").string();
  if (error || mkdtemp(path.data()) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cannot make a directory like %s; name one with --dir, or set TMPDIR", path));
  }
  return path;
}

Status CheckDirectory(CrashOptions* o) {
  if (o->directory.empty()) {
    StatusOr<std::string> made = MakeTemporaryDirectory();
    if (!made.ok()) return made.status();
    o->directory = *std::move(made);
    return absl::OkStatus();
  }
  const auto wrong = [o](const auto& what) {
    return absl::InvalidArgumentError(absl::StrFormat("--dir %s: %s; name a new directory", o->directory, what));
  };
  const StatusOr<bool> empty = IsAbsentOrEmpty(*DiskFiles(), o->directory);
  if (!empty.ok()) return wrong(empty.status().message());
  if (!*empty) return wrong("is not empty");
  std::error_code error;
  std::filesystem::create_directories(o->directory, error);
  if (error) return wrong("cannot be made: " + error.message());
  const Status usable = CheckMayMakeIn(o->directory);
  return usable.ok() ? usable : wrong(usable.message());
}

Status CheckHistory(const CrashOptions& o) {
  const bool append = o.workload == crash::WorkloadKind::kAppend;
  if (append && o.mode != txn::DurabilityMode::kSync) {
    return absl::InvalidArgumentError(
        "--mode async: a crash may lose acknowledged transactions, so the history of --workload append would not be "
        "serializable; use sync");
  }
  if (!append && !o.elle_file.empty()) {
    return absl::InvalidArgumentError("--elle: only --workload append makes lists");
  }
  return absl::OkStatus();
}

int Execute(CrashOptions options, const ReportFlags& report) {
  const bool temporary = options.directory.empty();
  if (options.threads < options.nodes) {
    return Fail("crashtest",
                absl::InvalidArgumentError(
                    absl::StrFormat("--threads %d: each of the %d nodes needs one", options.threads, options.nodes)),
                kExitBadFlags);
  }
  if (const Status usable = CheckHistory(options); !usable.ok()) return Fail("crashtest", usable, kExitBadFlags);
  StatusOr<ReportFiles> files =
      ReportFiles::Open({{"--json", report.json}, {"--html", report.html}}, {{"--elle", options.elle_file}});
  if (!files.ok()) return Fail("crashtest", files.status(), kExitBadFlags);
  if (const Status usable = CheckDirectory(&options); !usable.ok()) return Fail("crashtest", usable, kExitBadFlags);
  Progress progress;
  const InterruptGuard interrupts(InterruptGuard::Second::kIsNoted);
  crash::CrashTest test(options, {.child_arguments = CrashChildArguments, .replay_command = CrashReplayCommand});
  CrashCycles cycles;
  const auto ended = [&](uint64_t cycle) {
    cycles.Note(test.report());
    progress.Count(absl::StrFormat("cycle %d of %d", cycle + 1, options.cycles));
  };
  const Status done = test.Run(ended, &InterruptGuard::requested(), &InterruptGuard::requested_again());
  progress.EndCount();
  absl::FPrintF(files->text_stream(), "%s", ToText(options, test.report(), files->text_style().width));
  std::fflush(files->text_stream());
  Status written = files->Write("--json", [&] { return JsonText(ToJson(options, test.report(), done)); });
  written.Update(files->Write("--html", [&] { return ToHtml(options, test.report(), cycles, done); }));
  if (!written.ok() && (done.ok() || absl::IsCancelled(done))) return Fail("crashtest", written, kExitFailed);
  const bool judged = !absl::IsCancelled(done);
  if (!done.ok() && judged) return Fail("crashtest", done, kExitFailed);
  std::error_code error;
  if (temporary) std::filesystem::remove_all(options.directory, error);
  if (!InterruptGuard::requested()) return kExitOk;
  absl::FPrintF(stderr, "gannet crashtest: stopped after %d of %s%s\n", test.report().cycles,
                Count(options.cycles, "cycle"), judged ? "" : "; the state after the last kill was not judged");
  return InterruptGuard::exit_code();
}

void AddChildCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("crashtest-child", "The process that crashtest starts and kills.")->group("");
  auto options = std::make_shared<crash::ChildOptions>();
  CrashChildFlags(options.get()).AddTo(command);
  command->callback([options, exit_code] {
    crash::RunChild(*options);
    *exit_code = kExitOk;
  });
}

}  // namespace

void AddCrashCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(kCrashCommand.name, kCrashCommand.about);
  command->footer(
      "A child process works in a directory until it is killed (-9), at a random moment or at a named place in the\n"
      "code. The next one recovers what is there, and is killed in turn. This process notes which operations were\n"
      "begun and acknowledged. With sync every acknowledged operation must have survived. With async a prefix of the\n"
      "operations must have survived, with every operation that the log reported durable: so only operations of the\n"
      "last group commit, or of the one being written, may be lost. How long that was is measured. The data that led\n"
      "to an error (NotFound, AlreadyExists, one of the caller) must have survived like a value that was read.\n"
      "If an operation is lost or half there, the exit code is 1, and the output has the directory and the command\n"
      "that repeats the test. If Ctrl-C stops it, the exit code is 130 (after the current cycle, with a report of\n"
      "the cycles so far; at once, if pressed twice).");
  auto options = std::make_shared<CrashOptions>();
  CrashFlags(options.get()).AddTo(command);
  auto report = std::make_shared<ReportFlags>();
  AddPath(*command, "--json", &report->json, "FILE", "Write the report as JSON to this file; -: to standard output");
  AddPath(*command, "--html", &report->html, "FILE",
          "Write the report as one HTML page with plots to this file; -: to standard output");
  command->callback([options, report, exit_code] { *exit_code = Execute(*options, *report); });
  AddChildCommand(app, exit_code);
}

}  // namespace gannet::cli
