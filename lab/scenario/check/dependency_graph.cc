#include "lab/scenario/check/dependency_graph.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace gannet::scenario {
namespace {

void AddVersionEdges(const WriteIndex& index, const Commits& commits, const VersionOrder& order,
                     DependencyGraph* graph) {
  const auto add = [&](uint32_t a, const Version& b, KeyIndex key) {
    const OperationId from = index.write(a).op;
    const OperationId to = index.write(b.write).op;
    const bool guessed = b.guessed || !commits.Certain(from) || !commits.Certain(to);
    graph->Add({.from = from, .to = to, .key = key, .kind = EdgeKind::kWriteWrite, .guessed = guessed});
  };
  for (KeyIndex key = 0; key < index.num_keys(); ++key) {
    const std::span<const Version> ordered = order.ordered(key);
    for (size_t i = 1; i < ordered.size(); ++i) add(ordered[i - 1].write, ordered[i], key);
    if (ordered.empty()) continue;
    for (const Version& last : order.tail(key)) add(ordered.back().write, last, key);
  }
}

void AddReadEdges(const WriteIndex& index, const Commits& commits, const VersionOrder& order, DependencyGraph* graph) {
  for (const ExternalRead& read : commits.reads) {
    if (read.write == kNone) continue;
    const OperationId writer = index.write(read.write).op;
    if (!commits.committed[writer]) continue;
    Edge edge{.from = writer, .to = read.op, .key = read.key, .kind = EdgeKind::kWriteRead, .by_scan = read.by_scan};
    edge.guessed = !commits.Certain(writer) || !commits.Certain(read.op);
    graph->Add(edge);
    const uint32_t position = order.position(read.write);
    if (position == kNone) continue;
    const auto overwritten_by = [&](const Version& version) {
      const OperationId overwriter = index.write(version.write).op;
      const bool guessed = version.guessed || !commits.Certain(overwriter) || !commits.Certain(read.op);
      graph->Add({.from = read.op,
                  .to = overwriter,
                  .key = read.key,
                  .kind = EdgeKind::kReadWrite,
                  .guessed = guessed,
                  .by_scan = read.by_scan});
    };
    const std::span<const Version> ordered = order.ordered(read.key);
    if (position + 1 < ordered.size()) {
      overwritten_by(ordered[position + 1]);
    } else {
      for (const Version& last : order.tail(read.key)) overwritten_by(last);
    }
  }
}

void AddRealTime(const History& history, const Commits& commits, DependencyGraph* graph) {
  std::vector<std::pair<uint64_t, OperationId>> completions;
  std::vector<std::pair<uint64_t, OperationId>> invocations;
  for (OperationId op = 0; op < history.size(); ++op) {
    if (!commits.committed[op]) continue;
    const uint64_t completed = CompletionOf(history.operation(op));
    if (completed != kNever) completions.emplace_back(completed, op);
    invocations.emplace_back(history.operation(op).invoked, op);
  }
  std::ranges::sort(completions);
  std::ranges::sort(invocations);
  size_t done = 0;
  uint32_t barrier = kNone;
  for (const auto& [invoked, op] : invocations) {
    for (; done < completions.size() && completions[done].first < invoked; ++done) {
      const uint32_t next = graph->AddBarrier();
      graph->Add({.from = completions[done].second, .to = next});
      if (barrier != kNone) graph->Add({.from = barrier, .to = next});
      barrier = next;
    }
    if (barrier != kNone) graph->Add({.from = barrier, .to = op});
  }
}

// A client runs one operation after the other, also within one tick of a coarse clock.
void AddClientOrder(const History& history, const Commits& commits, DependencyGraph* graph) {
  absl::flat_hash_map<uint32_t, OperationId> last;
  for (OperationId op = 0; op < history.size(); ++op) {
    const Operation& operation = history.operation(op);
    if (!commits.committed[op]) continue;
    const auto [entry, first] = last.emplace(operation.client, op);
    if (first) continue;
    const uint64_t completed = CompletionOf(history.operation(entry->second));
    if (completed == operation.invoked) graph->Add({.from = entry->second, .to = op});
    entry->second = op;
  }
}

}  // namespace

Adjacency::Adjacency(const DependencyGraph& graph, Options options) : first_(graph.num_nodes() + 1) {
  const auto end_of = [&](const Edge& edge) { return options.reversed ? edge.to : edge.from; };
  const auto wanted = [&](const Edge& edge) { return !options.certain || !edge.guessed; };
  for (const Edge& edge : graph.edges()) {
    if (wanted(edge)) ++first_[end_of(edge) + 1];
  }
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  edges_.resize(first_.back());
  std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
  for (uint32_t e = 0; e < graph.edges().size(); ++e) {
    if (wanted(graph.edges()[e])) edges_[next[end_of(graph.edges()[e])]++] = e;
  }
}

DependencyGraph BuildGraph(const History& history, const WriteIndex& index, const Commits& commits,
                           const VersionOrder& order) {
  DependencyGraph graph(static_cast<uint32_t>(history.size()));
  AddVersionEdges(index, commits, order, &graph);
  AddReadEdges(index, commits, order, &graph);
  AddRealTime(history, commits, &graph);
  AddClientOrder(history, commits, &graph);
  return graph;
}

}  // namespace gannet::scenario
