#include "txn/durable/compare_logs.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace gannet::txn {
namespace {

constexpr const char* kTogether = "the directories of all nodes must be of one moment";

// The last run of a log that closed an epoch; null: there is none. (Its first segments may be gone, but not all: they
// go with checkpoints, and a checkpoint of a later run would have closed epochs in that one.)
const log::LogRun* ClosedRun(const log::LogSummary& log) {
  const auto run = std::ranges::find_if(log.runs.rbegin(), log.runs.rend(), &log::LogRun::closed);
  return run == log.runs.rend() ? nullptr : &*run;
}

bool Has(const log::LogSummary& log, const log::LogRun& run) {
  if (run.identity.is_known())
    return std::ranges::find(log.runs, run.identity, &log::LogRun::identity) != log.runs.end();
  return !log.runs.empty() && log.runs.back().recovered_epoch >= run.recovered_epoch;
}

std::string Name(const log::LogRun& run) {
  return absl::StrCat("run ", run.number, run.identity.is_known() ? absl::StrCat(" (", run.identity.ToText(), ")") : "",
                      ", which began with epoch ", run.recovered_epoch);
}

// Adds a problem for each log that lacks the last closed run of another one.
void CompareRuns(std::span<const NodeData> nodes, std::span<const log::LogSummary> logs,
                 std::vector<log::Damage>* problems) {
  for (size_t node = 0; node < nodes.size(); ++node) {
    const log::LogRun* const own = ClosedRun(logs[node]);
    for (size_t other = 0; other < nodes.size(); ++other) {
      const log::LogRun* const run = ClosedRun(logs[other]);
      if (other == node || run == nullptr || Has(logs[node], *run)) continue;
      const bool apart = own != nullptr && !Has(logs[other], *own);
      std::string what =
          absl::StrCat("its log lacks ", Name(*run),
                       ", and in which the nodes made commits durable: ", nodes[other].path, " has that run. ");
      absl::StrAppend(&what, apart ? absl::StrCat("In place of it it has ", Name(*own),
                                                  ": the two went on separately from copies of one directory")
                                   : "This directory is older than the other, or log files are missing");
      problems->push_back({.file = nodes[node].path, .offset = 0, .what = absl::StrCat(what, "; ", kTogether)});
      break;
    }
  }
}

// Once all logs have reached an epoch, they always reach it. So an undamaged log that ends before it is an old copy.
// Returns the greatest such epoch.
uint64_t ReachedByAll(std::span<const NodeData> nodes, std::span<const log::LogSummary> logs) {
  uint64_t reached = 0;
  for (const log::LogSummary& log : logs) {
    if (!log.runs.empty()) reached = std::max(reached, log.runs.back().recovered_epoch);
  }
  for (const NodeData& node : nodes) {
    if (!node.manifest.checkpoints.empty()) reached = std::max(reached, node.manifest.checkpoints.front().end_epoch);
  }
  return reached;
}

}  // namespace

LogsTogether CompareLogs(std::span<const NodeData> nodes, std::span<const log::LogSummary> logs) {
  const auto epoch_of = [](const log::LogSummary& log) { return log.end.recovered_epoch; };
  const auto [least, greatest] = std::ranges::minmax_element(logs, {}, epoch_of);
  LogsTogether together{.recovered_epoch = epoch_of(*least)};
  CompareRuns(nodes, logs, &together.problems);
  const uint64_t reached = ReachedByAll(nodes, logs);
  const std::string& path = nodes[static_cast<size_t>(least - logs.begin())].path;
  if (reached > together.recovered_epoch &&
      std::ranges::find(together.problems, path, &log::Damage::file) == together.problems.end()) {
    together.problems.push_back(
        {.file = path,
         .offset = 0,
         .what = absl::StrCat("its log goes up to epoch ", together.recovered_epoch,
                              " only, but the nodes have recovered or kept epoch ", reached,
                              ": log files are missing, or this directory is older than the others; ", kTogether)});
  }
  if (!together.problems.empty()) together.recovered_epoch = std::max(reached, epoch_of(*greatest));
  return together;
}

}  // namespace gannet::txn
