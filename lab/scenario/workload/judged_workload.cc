#include "lab/scenario/workload/judged_workload.h"

#include <algorithm>

#include "lab/scenario/check/serializability.h"

namespace gannet::scenario {

// A commit that ended as Unknown shows its own node's part while the rest is owed. If its node dies then, the rest is
// undone, and others may have seen the part: docs/repair.md has this among what the engine cannot do. An anomaly with
// such a commit proves nothing else.
Judgement JudgedWorkload::Judge() {
  Report report = CheckSerializability(history_);
  const auto is_half = [this](OperationId op) {
    return std::ranges::any_of(control_->owed, [&](const Control::OwedCommit& owed) {
      return owed.operation == op && std::ranges::find(control_->dead, owed.node) != control_->dead.end();
    });
  };
  const auto has_half = [&](const Anomaly& anomaly) { return std::ranges::any_of(anomaly.operations, is_half); };
  const bool excused = report.verdict == Verdict::kViolated && !report.anomalies.empty() &&
                       std::ranges::all_of(report.anomalies, has_half);
  if (excused) report.verdict = Verdict::kUnknown;
  Judgement judgement = JudgementOf(report);
  if (excused) {
    judgement.verdict = "undecided: a node died that owed others their parts of a commit (docs/repair.md)";
  }
  return judgement;
}

coro::Task<Status> JudgedClient::Execute() {
  Status status = co_await transaction().Execute(session(), number_);
  if (status.ok()) CountCommit();
  co_return status;
}

Status JudgedClient::ExecuteNow() {
  return UntilKnown([this] { return session().worker().BlockOn(Execute()); });
}

}  // namespace gannet::scenario
