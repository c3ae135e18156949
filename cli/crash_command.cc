#include "cli/crash_command.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/crash/child.h"
#include "cli/crash/crash_test.h"
#include "cli/crash/options.h"
#include "cli/data_directory.h"
#include "cli/exit_codes.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "log/kill_point.h"

namespace gannet::cli {
namespace {

using crash::CrashOptions;

// "random", "none", or one of the names.
StatusOr<std::string> ParseKillPoint(const std::string& text) {
  std::vector<std::string> choices = {"random", "none"};
  for (const std::string_view name : log::KillPointNames()) choices.emplace_back(name);
  if (std::ranges::find(choices, text) != choices.end()) return text;
  return absl::InvalidArgumentError("must be one of " + absl::StrJoin(choices, ", "));
}

StatusOr<txn::DurabilityMode> ParseMode(const std::string& text) {
  StatusOr<txn::DurabilityMode> mode = ParseDurability(text);
  if (mode.ok() && *mode != txn::DurabilityMode::kNone) return mode;
  return absl::InvalidArgumentError("must be sync or async");
}

// What the test and its children have in common.
void AddCommonFlags(CLI::App& command, CrashOptions* o) {
  AddInteger(command, "--seed", &o->seed, 0, INT64_MAX, "Of everything that is drawn. Default: 1");
  Add(command, "--workload", &o->workload, crash::ParseWorkload, "NAME",
      "kv (rows of its own for every worker: exactly what was promised must be there), bank (transfers between shared\n"
      "accounts: the sum), tpcc (the twelve conditions and no order lost), append (appends to shared lists: one "
      "strictly\n"
      "serializable history over all kills; sync only), or load (bulk loads beside changes: all of a load or nothing, "
      "and\n"
      "no change without it). Default: kv");
  Add(command, "--mode", &o->mode, ParseMode, "MODE", "Durability: sync or async. Default: sync");
  Add(command, "--medium", &o->medium, ParseMedium, "MEDIUM", "file or pmem. Default: file");
  AddInteger(command, "--nodes", &o->nodes, 1, 4, "Nodes, all within the process that is killed. Default: 1");
  AddInteger(command, "--threads", &o->threads, 1, 16, "Of the process that is killed. Default: 2");
  AddInteger(command, "--coroutines", &o->coroutines, 1, 15, "Operations at once, per thread. Default: 8");
  AddPath(command, "--dir", &o->directory, "DIR",
          "New or empty; it is kept. Default: one in $TMPDIR, removed at the end");
}

StatusOr<std::string> MakeTemporaryDirectory() {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / "gannet-crashtest-XXXXXX").string();
  if (error || mkdtemp(path.data()) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cannot make a directory like %s; name one with --dir, or set TMPDIR", path));
  }
  return path;
}

int Fail(const Status& status, int exit_code) {
  absl::FPrintF(stderr, "gannet crashtest: %s\n", status.message());
  return exit_code;
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
        "--mode async: a crash may take what was acknowledged, so the history of --workload append would not be "
        "serializable; use sync");
  }
  if (!append && !o.elle_file.empty()) {
    return absl::InvalidArgumentError("--elle: only --workload append makes lists");
  }
  if (!o.elle_file.empty() && !std::ofstream(o.elle_file)) {
    return absl::InvalidArgumentError(absl::StrFormat("--elle %s: cannot be written", o.elle_file));
  }
  return absl::OkStatus();
}

int Execute(CrashOptions options) {
  const bool temporary = options.directory.empty();
  if (options.threads < options.nodes) {
    return Fail(absl::InvalidArgumentError(
                    absl::StrFormat("--threads %d: each of the %d nodes needs one", options.threads, options.nodes)),
                kExitBadFlags);
  }
  if (const Status usable = CheckHistory(options); !usable.ok()) return Fail(usable, kExitBadFlags);
  if (const Status usable = CheckDirectory(&options); !usable.ok()) return Fail(usable, kExitBadFlags);
  Progress progress;
  const InterruptGuard interrupts(InterruptGuard::Second::kIsNoted);
  crash::CrashTest test(options);
  const Status done =
      test.Run([&options, &progress](
                   uint64_t cycle) { progress.Count(absl::StrFormat("cycle %d of %d", cycle + 1, options.cycles)); },
               &InterruptGuard::requested(), &InterruptGuard::requested_again());
  progress.EndCount();
  absl::PrintF("%s", crash::ToText(options, test.report()));
  std::fflush(stdout);
  const bool judged = !absl::IsCancelled(done);
  if (!done.ok() && judged) return Fail(done, kExitFailed);
  std::error_code error;
  if (temporary) std::filesystem::remove_all(options.directory, error);
  if (!InterruptGuard::requested()) return kExitOk;
  absl::FPrintF(stderr, "gannet crashtest: stopped after %d of %d cycles%s\n", test.report().cycles, options.cycles,
                judged ? "" : "; what the last child left was not judged");
  return InterruptGuard::exit_code();
}

void AddChildCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("crashtest-child", "What crashtest starts and kills.")->group("");
  auto options = std::make_shared<crash::ChildOptions>();
  AddCommonFlags(*command, &options->test);
  AddInteger(*command, "--cycle", &options->cycle, 0, INT64_MAX, "Which cycle");
  Add(*command, "--kill-point", &options->kill_point, ParseKillPoint, "NAME", "Where to die");
  AddInteger(*command, "--kill-count", &options->kill_count, 1, INT64_MAX, "At which passage");
  AddDuration(*command, "--checkpoint-every", &options->checkpoint_every, absl::ZeroDuration(), "0s: never");
  AddDuration(*command, "--group-commit", &options->group_commit, absl::Microseconds(1), "Between batches");
  command->add_flag("--armed-from-start", options->armed_from_start, "Passages of recovery count");
  AddInteger(*command, "--lists-from", &options->test.lists_from, 0, INT64_MAX, "append: tell the lists from here on");
  AddInteger(*command, "--lists-to", &options->test.lists_to, 0, INT64_MAX, "append: there are none from here on");
  command->add_flag("--create", options->create, "The database may not be there yet");
  command->add_flag("--finish", options->finish, "Tell, close, end");
  command->callback([options, exit_code] { *exit_code = crash::RunChild(*options); });
}

}  // namespace

void AddCrashCommand(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("crashtest", "Kill a database again and again; look whether it keeps its word.");
  command->footer(
      "A child process works in a directory until it is killed (-9), at a random moment or at a named place in the\n"
      "code. The next one recovers what is there, and is killed in turn. What was begun and acknowledged is noted\n"
      "outside: with sync every acknowledged operation must have survived; with async a prefix, with every operation "
      "of\n"
      "which the log had said that it is durable: so what is lost is what was acknowledged in the last group commit\n"
      "and while it was being written. How long that was is measured. What was told by an error (NotFound,\n"
      "AlreadyExists, an error of the caller's own) must have survived as what was read.\n"
      "Exit code 1, the directory and the command that repeats it, if something is lost or half there; 130 if Ctrl-C\n"
      "stopped it (after the cycle under way, with the report of those that were run; at once, if pressed twice).");
  auto options = std::make_shared<CrashOptions>();
  AddInteger(*command, "--cycles", &options->cycles, 1, 1'000'000, "How often it is killed. Default: 20");
  AddCommonFlags(*command, options.get());
  Add(*command, "--kill-point", &options->kill_point, ParseKillPoint, "NAME",
      "Where: the name of a place, random (all of them in turn, and by the clock), or none (by the clock). Default:\n"
      "random");
  AddDuration(*command, "--cycle-time", &options->cycle_time, absl::Milliseconds(1),
              "The longest that a child works until the clock kills it. Default: 150ms");
  AddPath(*command, "--elle", &options->elle_file, "FILE",
          "With --workload append: write the history as EDN, for Elle (docs/checking.md)");
  command->callback([options, exit_code] { *exit_code = Execute(*options); });
  AddChildCommand(app, exit_code);
}

}  // namespace gannet::cli
