#include "lab/cli/crash_flags.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "index/registry.h"
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

// The flags that the test and its children share.
void AddCommonFlags(CrashOptions* o, Flags* flags) {
  flags->Add("--seed", "seed", &o->seed, form::Integer(0, INT64_MAX), "Seed of everything that is drawn. Default: 1");
  flags->Add("--workload", "workload", &o->workload, form::OneOf<crash::WorkloadKind>("NAME", crash::kWorkloadNames),
             "kv (every worker has its own rows; exactly the promised ones must be there), bank (transfers between "
             "shared\naccounts: the sum), tpcc (the twelve conditions and no order lost), append (appends to shared "
             "lists: one history\nover all kills that is strictly serializable; sync only), load (bulk loads and "
             "changes: all of a load or\nnothing, and no change without it), or rectangles (kv, with a spatial table: "
             "searches find what lookups find).\nDefault: kv");
  flags->Add("--mode", "durability", &o->mode, Form{"MODE", ParseMode, FormatDurability},
             "Durability: sync or async. Default: sync");
  flags->Add("--medium", "medium", &o->medium, form::kMedium, "file or pmem. Default: file");
  flags->Add("--ordered-index", "ordered_index", &o->ordered_index, form::kOrderedIndex,
             absl::StrCat("Index of the tables that are scanned: ", index::KindsWith(&index::IndexTraits::ordered),
                          ". Default: xstore"));
  flags->Add("--nodes", "nodes", &o->nodes, form::Integer(1, 4),
             "Nodes, all within the process that is killed. Default: 1");
  flags->Add("--threads", "threads", &o->threads, form::Integer(1, 16),
             "Threads of the process that is killed. Default: 2");
  flags->Add("--coroutines", "coroutines", &o->coroutines, form::Integer(1, 15),
             "Operations at once, per thread. Default: 8");
  flags->Add("--dir", "", &o->directory, form::Path("DIR"),
             "A new or empty directory, which is kept. Default: one in $TMPDIR, removed at the end");
}

const auto kKillPoint = Form{"NAME", ParseKillPoint, form::kItself};

}  // namespace

Flags CrashFlags(CrashOptions* o) {
  Flags flags;
  flags.Add("--cycles", "cycles", &o->cycles, form::Integer(1, 1'000'000), "Number of kills. Default: 20");
  AddCommonFlags(o, &flags);
  flags.Add("--kill-point", "kill_point", &o->kill_point, kKillPoint,
            "Where to kill: the name of a place, random (all places in turn, and the clock), or none (the clock).\n"
            "Default: random");
  flags.Add("--cycle-time", "cycle_time_seconds", &o->cycle_time, form::Time(absl::Milliseconds(1)),
            "The longest time that a child works before the clock kills it. Default: 150ms");
  flags.Add("--elle", "", &o->elle_file, form::Path("FILE"),
            "With --workload append: write the history as EDN, for Elle (docs/checking.md)");
  return flags;
}

Flags CrashChildFlags(crash::ChildOptions* o) {
  Flags flags;
  AddCommonFlags(&o->test, &flags);
  flags.Add("--cycle", "", &o->cycle, form::Integer(0, INT64_MAX), "Number of the cycle");
  flags.Add("--kill-point", "", &o->kill_point, kKillPoint, "Where to die");
  flags.Add("--kill-count", "", &o->kill_count, form::Integer(1, INT64_MAX), "At which passage");
  flags.Add("--checkpoint-every", "", &o->checkpoint_every, form::Time(absl::ZeroDuration()), "0s: never");
  flags.Add("--group-commit", "", &o->group_commit, form::Time(absl::Microseconds(1)), "Between batches");
  flags.AddSwitch("--armed-from-start", "", &o->armed_from_start, "Passages of recovery count");
  flags.Add("--lists-from", "", &o->test.lists.from, form::Integer(0, INT64_MAX), "append: the first list to report");
  flags.Add("--lists-to", "", &o->test.lists.to, form::Integer(0, INT64_MAX),
            "append: there is no list from this one on");
  flags.AddSwitch("--create", "", &o->create, "The database may not be there yet");
  flags.AddSwitch("--finish", "", &o->finish, "Report, close, end");
  return flags;
}

nlohmann::ordered_json CrashValues(CrashOptions options) {
  return CrashFlags(&options).Values();
}

std::vector<std::string> CrashChildArguments(crash::ChildOptions child) {
  std::vector<std::string> arguments = CrashChildFlags(&child).Arguments();
  arguments.insert(arguments.begin(), "crashtest-child");
  return arguments;
}

std::string CrashReplayCommand(CrashOptions options, uint64_t cycle) {
  options.cycles = cycle + 1;
  options.directory.clear();
  return "gannet crashtest " + absl::StrJoin(CrashFlags(&options).Arguments(), " ");
}

}  // namespace gannet::cli
