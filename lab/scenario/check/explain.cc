#include "lab/scenario/check/explain.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gannet::scenario {
namespace {

// The edges of a cycle; a path over barriers becomes one edge.
std::vector<Edge> Steps(const DependencyGraph& graph, const Cycle& cycle) {
  std::vector<Edge> edges;
  for (const uint32_t e : cycle.edges) edges.push_back(graph.edges()[e]);
  const auto begins = [&](const Edge& edge) { return !graph.IsBarrier(edge.from); };
  std::rotate(edges.begin(), std::ranges::find_if(edges, begins), edges.end());
  std::vector<Edge> steps;
  for (const Edge& edge : edges) {
    if (begins(edge)) {
      steps.push_back(edge);
    } else {
      steps.back().to = edge.to;
    }
  }
  return steps;
}

bool WasSeen(const WriteIndex& index, const Commits& commits, OperationId op) {
  return std::ranges::any_of(commits.reads, [&](const ExternalRead& read) {
    return read.write != kNone && index.write(read.write).op == op && read.op != op;
  });
}

AnomalyKind Classify(const WriteIndex& index, const Commits& commits, const std::vector<Edge>& steps) {
  const auto count = [&](EdgeKind kind) { return std::ranges::count(steps, kind, &Edge::kind); };
  const auto rw = count(EdgeKind::kReadWrite);
  const auto rt = count(EdgeKind::kRealTime);
  const bool same_key = std::ranges::all_of(steps, [&](const Edge& step) { return step.key == steps[0].key; });
  const bool by_scan = std::ranges::any_of(steps, [](const Edge& step) { return step.absence && step.by_scan; });
  const bool absence = std::ranges::any_of(steps, &Edge::absence);
  if (rw == 1 && rt == 0 && same_key && count(EdgeKind::kWriteRead) == 0) return AnomalyKind::kLostUpdate;
  if (steps.size() == 2 && rw == 1 && rt == 1) {
    const Edge& read = steps[steps[0].kind == EdgeKind::kReadWrite ? 0 : 1];
    if (!WasSeen(index, commits, read.to)) return AnomalyKind::kLostWrite;
    return by_scan ? AnomalyKind::kPhantom : AnomalyKind::kStaleRead;
  }
  if (absence) return AnomalyKind::kPhantom;
  if (rt > 0)
    return rw == 1 && count(EdgeKind::kWriteWrite) + rt + 1 == static_cast<int64_t>(steps.size())
               ? AnomalyKind::kStaleRead
               : AnomalyKind::kRealTime;
  if (rw > 1) return AnomalyKind::kWriteSkew;
  if (rw == 1) return AnomalyKind::kReadSkew;
  return count(EdgeKind::kWriteRead) > 0 ? AnomalyKind::kCircularInformationFlow : AnomalyKind::kDirtyWrite;
}

std::string DescribeOperation(const History& history, OperationId op) {
  const Operation& operation = history.operation(op);
  std::string text = absl::StrFormat("T%u (client %u, %u ns to ", op, operation.client, operation.invoked);
  absl::StrAppend(&text, operation.completed == kNever ? "never" : absl::StrCat(operation.completed, " ns"));
  return absl::StrCat(text, operation.outcome == Outcome::kInfo ? ", outcome unknown)" : ")");
}

std::string DescribeStep(const History& history, const WriteIndex& index, const Edge& step) {
  const std::string key = step.key == kNone ? "" : index.key(step.key).ToString();
  const char* guess = step.guessed ? " (a guess)" : "";
  const char* scan = step.by_scan ? " in a scan" : "";
  switch (step.kind) {
    case EdgeKind::kWriteWrite:
      return absl::StrFormat("T%u -ww-> T%u: key %s as T%u wrote it was overwritten by T%u%s", step.from, step.to, key,
                             step.from, step.to, guess);
    case EdgeKind::kWriteRead:
      if (step.absence) {
        return absl::StrFormat("T%u -wr-> T%u: T%u removed key %s, and T%u found it absent%s%s", step.from, step.to,
                               step.from, key, step.to, scan, guess);
      }
      return absl::StrFormat("T%u -wr-> T%u: T%u wrote key %s, and T%u read that%s%s", step.from, step.to, step.from,
                             key, step.to, scan, guess);
    case EdgeKind::kReadWrite:
      if (step.absence) {
        return absl::StrFormat("T%u -rw-> T%u: T%u found key %s absent%s, before T%u wrote it%s", step.from, step.to,
                               step.from, key, scan, step.to, guess);
      }
      return absl::StrFormat("T%u -rw-> T%u: T%u read key %s%s as it was before T%u overwrote it%s", step.from, step.to,
                             step.from, key, scan, step.to, guess);
    case EdgeKind::kRealTime:
      return absl::StrFormat("T%u -rt-> T%u: T%u was complete at %u ns, T%u was invoked at %u ns", step.from, step.to,
                             step.from, history.operation(step.from).completed, step.to,
                             history.operation(step.to).invoked);
  }
  return "";
}

}  // namespace

Anomaly Explain(const History& history, const WriteIndex& index, const Commits& commits, const DependencyGraph& graph,
                const Cycle& cycle) {
  const std::vector<Edge> steps = Steps(graph, cycle);
  Anomaly anomaly{Classify(index, commits, steps), {}, absl::StrCat("a cycle of ", steps.size(), " transactions")};
  for (const Edge& step : steps) {
    anomaly.operations.push_back(step.from);
    absl::StrAppend(&anomaly.text, "\n  ", DescribeOperation(history, step.from));
  }
  for (const Edge& step : steps) absl::StrAppend(&anomaly.text, "\n  ", DescribeStep(history, index, step));
  return anomaly;
}

}  // namespace gannet::scenario
