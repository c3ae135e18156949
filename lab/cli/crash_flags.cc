#include "lab/cli/crash_flags.h"

#include <algorithm>
#include <string_view>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/common/flags.h"
#include "cli/common/parse.h"
#include "log/file/kill_point.h"

namespace gannet::cli {

namespace crash = scenario::crash;

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

StatusOr<crash::WorkloadKind> ParseWorkload(const std::string& text) {
  const auto at = ParseChoice(text, crash::kWorkloadNames);
  if (!at.ok()) return at.status();
  return static_cast<crash::WorkloadKind>(*at);
}

// The flags that the test and its children share.
void AddCommonFlags(CLI::App& command, CrashOptions* o) {
  AddInteger(command, "--seed", &o->seed, 0, INT64_MAX, "Seed of everything that is drawn. Default: 1");
  Add(command, "--workload", &o->workload, ParseWorkload, "NAME",
      "kv (every worker has its own rows; exactly the promised ones must be there), bank (transfers between shared\n"
      "accounts: the sum), tpcc (the twelve conditions and no order lost), append (appends to shared lists: one "
      "history\n"
      "over all kills that is strictly serializable; sync only), load (bulk loads and changes: all of a load or\n"
      "nothing, and no change without it), or rectangles (kv, with a spatial table: searches find what lookups find).\n"
      "Default: kv");
  Add(command, "--mode", &o->mode, ParseMode, "MODE", "Durability: sync or async. Default: sync");
  Add(command, "--medium", &o->medium, ParseMedium, "MEDIUM", "file or pmem. Default: file");
  Add(command, "--ordered-index", &o->ordered_index, ParseOrderedIndex, "NAME",
      "Index of the tables that are scanned: xstore, blink or rolex. Default: xstore");
  AddInteger(command, "--nodes", &o->nodes, 1, 4, "Nodes, all within the process that is killed. Default: 1");
  AddInteger(command, "--threads", &o->threads, 1, 16, "Threads of the process that is killed. Default: 2");
  AddInteger(command, "--coroutines", &o->coroutines, 1, 15, "Operations at once, per thread. Default: 8");
  AddPath(command, "--dir", &o->directory, "DIR",
          "A new or empty directory, which is kept. Default: one in $TMPDIR, removed at the end");
}

}  // namespace

void AddCrashFlags(CLI::App& command, CrashOptions* options) {
  AddInteger(command, "--cycles", &options->cycles, 1, 1'000'000, "Number of kills. Default: 20");
  AddCommonFlags(command, options);
  Add(command, "--kill-point", &options->kill_point, ParseKillPoint, "NAME",
      "Where to kill: the name of a place, random (all places in turn, and the clock), or none (the clock).\n"
      "Default: random");
  AddDuration(command, "--cycle-time", &options->cycle_time, absl::Milliseconds(1),
              "The longest time that a child works before the clock kills it. Default: 150ms");
  AddPath(command, "--elle", &options->elle_file, "FILE",
          "With --workload append: write the history as EDN, for Elle (docs/checking.md)");
}

void AddCrashChildFlags(CLI::App& command, crash::ChildOptions* options) {
  AddCommonFlags(command, &options->test);
  AddInteger(command, "--cycle", &options->cycle, 0, INT64_MAX, "Number of the cycle");
  Add(command, "--kill-point", &options->kill_point, ParseKillPoint, "NAME", "Where to die");
  AddInteger(command, "--kill-count", &options->kill_count, 1, INT64_MAX, "At which passage");
  AddDuration(command, "--checkpoint-every", &options->checkpoint_every, absl::ZeroDuration(), "0s: never");
  AddDuration(command, "--group-commit", &options->group_commit, absl::Microseconds(1), "Between batches");
  command.add_flag("--armed-from-start", options->armed_from_start, "Passages of recovery count");
  AddInteger(command, "--lists-from", &options->test.lists.from, 0, INT64_MAX, "append: the first list to report");
  AddInteger(command, "--lists-to", &options->test.lists.to, 0, INT64_MAX, "append: there is no list from this one on");
  command.add_flag("--create", options->create, "The database may not be there yet");
  command.add_flag("--finish", options->finish, "Report, close, end");
}

std::vector<std::string> CrashChildArguments(const crash::ChildOptions& child) {
  const CrashOptions& test = child.test;
  std::vector<std::string> arguments = {"crashtest-child",
                                        "--dir",
                                        test.directory,
                                        "--seed",
                                        absl::StrCat(test.seed),
                                        "--cycle",
                                        absl::StrCat(child.cycle),
                                        "--workload",
                                        crash::NameOf(test.workload),
                                        "--mode",
                                        FormatDurability(test.mode),
                                        "--medium",
                                        FormatMedium(test.medium),
                                        "--ordered-index",
                                        index::EntryOf(test.ordered_index).name,
                                        "--nodes",
                                        absl::StrCat(test.nodes),
                                        "--threads",
                                        absl::StrCat(test.threads),
                                        "--coroutines",
                                        absl::StrCat(test.coroutines),
                                        "--checkpoint-every",
                                        absl::FormatDuration(child.checkpoint_every),
                                        "--group-commit",
                                        absl::FormatDuration(child.group_commit),
                                        "--lists-from",
                                        absl::StrCat(test.lists.from),
                                        "--lists-to",
                                        absl::StrCat(test.lists.to)};
  if (child.create) arguments.emplace_back("--create");
  if (child.finish) arguments.emplace_back("--finish");
  if (!child.kill_point.empty()) {
    arguments.insert(arguments.end(),
                     {"--kill-point", child.kill_point, "--kill-count", absl::StrCat(child.kill_count)});
  }
  if (child.armed_from_start) arguments.emplace_back("--armed-from-start");
  return arguments;
}

std::string CrashReplayCommand(const CrashOptions& o, uint64_t cycle) {
  return absl::StrFormat(
      "gannet crashtest --seed %d --cycles %d --workload %s --mode %s --medium %s --ordered-index %s --kill-point %s "
      "--nodes %d --threads "
      "%d --coroutines %d --cycle-time %s%s",
      o.seed, cycle + 1, crash::NameOf(o.workload), FormatDurability(o.mode), FormatMedium(o.medium),
      index::EntryOf(o.ordered_index).name, o.kill_point, o.nodes, o.threads, o.coroutines,
      absl::FormatDuration(o.cycle_time), o.elle_file.empty() ? "" : " --elle " + o.elle_file);
}

}  // namespace gannet::cli
