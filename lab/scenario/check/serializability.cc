#include "lab/scenario/check/serializability.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lab/scenario/check/absence.h"
#include "lab/scenario/check/choices.h"
#include "lab/scenario/check/commits.h"
#include "lab/scenario/check/cycle.h"
#include "lab/scenario/check/dependency_graph.h"
#include "lab/scenario/check/explain.h"
#include "lab/scenario/check/serial_order.h"
#include "lab/scenario/check/version_order.h"
#include "lab/scenario/check/write_index.h"

namespace gannet::scenario {
namespace {

// The time at which a transaction probably took effect, where nothing else determines it.
std::vector<uint64_t> Weights(const History& history, const DependencyGraph& graph) {
  std::vector<uint64_t> weights(graph.num_nodes());
  for (OperationId op = 0; op < history.size(); ++op) {
    const Operation& operation = history.operation(op);
    const uint64_t completed = CompletionOf(operation);
    weights[op] = completed == kNever ? operation.invoked : operation.invoked + (completed - operation.invoked) / 2;
  }
  return weights;
}

class Try {
 public:
  Try(const History& history, const WriteIndex& index, const CheckOptions& options, Choices* choices)
      : history_(history), index_(index), options_(options), choices_(choices), graph_(0) {}

  Report Run(std::vector<Anomaly> anomalies) {
    commits_ = FindCommits(history_, index_, choices_, &anomalies);
    const VersionOrder order(history_, index_, commits_, choices_, &anomalies);
    exhaustive_ = order.exhaustive() && !commits_.unknown_removals;
    graph_ = BuildGraph(history_, index_, commits_, order);
    const std::vector<LooseAbsence> loose = PlaceAbsences(history_, index_, commits_, order, &graph_);
    report_.anomalies = std::move(anomalies);
    if (!report_.anomalies.empty()) {
      report_.verdict = Verdict::kViolated;
    } else if (!commits_.doubts.empty()) {
      report_.verdict = Verdict::kUnknown;
      report_.anomalies = commits_.doubts;
    }
    JudgeGraph(loose);
    report_.operations = history_.size();
    report_.committed = static_cast<size_t>(std::ranges::count(commits_.committed, 1));
    report_.info_committed = commits_.info_committed;
    report_.edges = graph_.edges().size();
    if (report_.anomalies.size() > options_.max_anomalies) report_.anomalies.resize(options_.max_anomalies);
    return std::move(report_);
  }

  // True if the choices cover all possible orders: if all tries fail, there is no order.
  bool exhaustive() const { return exhaustive_; }

 private:
  void JudgeGraph(const std::vector<LooseAbsence>& loose) {
    const std::vector<Cycle> all = FindCycles(graph_, Adjacency(graph_, {}), options_.max_anomalies);
    if (all.empty()) {
      if (report_.verdict == Verdict::kSerializable && !loose.empty()) PlaceLoose(loose);
      return;
    }
    const Adjacency certain_edges(graph_, {.certain = true});
    const std::vector<Cycle> certain = FindCycles(graph_, certain_edges, options_.max_anomalies);
    if (!certain.empty()) {
      report_.verdict = Verdict::kViolated;
      Tell(certain);
    } else if (report_.verdict == Verdict::kSerializable) {
      report_.verdict = Verdict::kUnknown;
      Tell(all);
    }
  }

  // Adds cycles whose set of operations is not reported yet.
  void Tell(const std::vector<Cycle>& cycles) {
    for (const Cycle& cycle : cycles) {
      Anomaly anomaly = Explain(history_, index_, commits_, graph_, cycle);
      const bool known = std::ranges::any_of(report_.anomalies, [&](const Anomaly& other) {
        return std::ranges::is_permutation(other.operations, anomaly.operations);
      });
      if (!known) report_.anomalies.push_back(std::move(anomaly));
    }
  }

  // Moves transactions in a serial order until each absence that they found holds in it.
  void PlaceLoose(const std::vector<LooseAbsence>& loose) {
    SerialOrder order(graph_, Weights(history_, graph_));
    bool guessed = false;
    for (bool moved = true; moved;) {
      moved = false;
      for (const LooseAbsence& absence : loose) {
        const uint32_t reader = order.position(absence.reader);
        if (reader < order.position(absence.insert) || order.position(absence.remove) < reader) continue;
        moved = true;
        if (Decide(absence, &order, &guessed)) continue;
        return;
      }
    }
  }

  bool Decide(const LooseAbsence& absence, SerialOrder* order, bool* guessed) {
    const uint32_t since = order->position(absence.reader) - order->position(absence.insert);
    const uint32_t until = order->position(absence.remove) - order->position(absence.reader);
    const bool before = (since < until) == (choices_->Pick(2) == 0);
    if (Place(absence, before, order, /*guess=*/true)) {
      *guessed = true;
      return true;
    }
    if (Place(absence, !before, order, *guessed)) return true;
    Fail(absence, *guessed);
    return false;
  }

  bool Place(const LooseAbsence& absence, bool before, SerialOrder* order, bool guess) {
    const Edge edge = EdgeOf(absence, before, guess);
    if (!order->AddEdge(edge.from, edge.to)) return false;
    graph_.Add(edge);  // for the explanation of a failure
    return true;
  }

  static Edge EdgeOf(const LooseAbsence& absence, bool before, bool guess) {
    return {.from = before ? absence.reader : absence.remove,
            .to = before ? absence.insert : absence.reader,
            .key = absence.key,
            .kind = before ? EdgeKind::kReadWrite : EdgeKind::kWriteRead,
            .guessed = guess || absence.guessed,
            .absence = true,
            .by_scan = absence.by_scan};
  }

  // Reports that both edges close a cycle with earlier decisions.
  void Fail(const LooseAbsence& absence, bool guessed) {
    const bool certain = !guessed && !absence.guessed &&
                         std::ranges::none_of(graph_.edges(), [](const Edge& edge) { return edge.guessed; });
    report_.verdict = certain ? Verdict::kViolated : Verdict::kUnknown;
    graph_.Add(EdgeOf(absence, /*before=*/true, !certain));
    graph_.Add(EdgeOf(absence, /*before=*/false, !certain));
    Tell(FindCycles(graph_, Adjacency(graph_, {}), options_.max_anomalies));
  }

  const History& history_;
  const WriteIndex& index_;
  const CheckOptions& options_;
  Choices* choices_;
  Commits commits_;
  DependencyGraph graph_;
  Report report_;
  bool exhaustive_ = false;
};

}  // namespace

Report CheckSerializability(const History& history, const CheckOptions& options) {
  std::vector<Anomaly> anomalies;
  const WriteIndex index(history, &anomalies);
  Choices choices(options.seed);
  Report report;
  bool exhaustive = true;
  for (int tries = 1;; ++tries) {
    Try attempt(history, index, options, &choices);
    report = attempt.Run(anomalies);
    report.tries = tries;
    if (report.verdict != Verdict::kUnknown || tries >= options.max_tries) break;
    exhaustive &= attempt.exhaustive();
    if (tries > options.max_tries / 2) {
      choices.Draw();
    } else if (!choices.Next()) {
      if (exhaustive) report.verdict = Verdict::kViolated;
      break;
    }
  }
  return report;
}

}  // namespace gannet::scenario
