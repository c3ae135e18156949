#include "lab/scenario/workload/append.h"

#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "index/registry.h"
#include "lab/scenario/check/elle.h"

namespace gannet::scenario {

class AppendClient : public Client {
 public:
  AppendClient(Append* workload, txn::Session& session, uint32_t number)
      : Client(&session, workload->control_),
        workload_(workload),
        number_(number),
        random_(Mix64(workload->seed_) + number),
        transaction_(session.database()) {}

  coro::Task<Status> Execute(std::vector<MicroOp> micro_ops) {
    const OperationId op = workload_->history_.Invoke(number_, control().Now(), micro_ops);
    txn::RunOutcome outcome;
    Status status = co_await transaction_.Run(session(), std::move(micro_ops), &outcome);
    control().aborts += outcome.aborts;
    if (!transaction_.torn().empty()) control().broken = transaction_.torn();
    if (status.ok()) {
      workload_->history_.Complete(op, control().Now(), Outcome::kOk, transaction_.lists());
      ++control().committed;
      CountCommit();
    } else if (absl::IsUnknown(status)) {
      workload_->history_.Complete(op, control().Now(), Outcome::kInfo);
      ++control().unknown;
    } else {
      workload_->history_.Complete(op, control().Now(), Outcome::kFail);
      ++control().failed;
    }
    co_return status;
  }

 private:
  coro::Task<Status> RunOne() override { co_return co_await Execute(workload_->planner_.Draw(random_)); }

  Append* workload_;
  uint32_t number_;
  Random random_;
  AppendTransaction transaction_;
};

Append::Append(const ScenarioOptions& drawn, Control* control)
    : planner_(drawn.keys),
      seed_(drawn.seed),
      placement_(txn::Placement::ByHash()),
      ordered_(*index::IndexKindOf(drawn.ordered_index)),
      elle_file_(drawn.elle_file),
      control_(control) {}

std::vector<txn::TableOptions> Append::Tables() const {
  return ListTableOptions(placement_, ordered_);
}

std::unique_ptr<Client> Append::NewClient(txn::Session& session, uint32_t number) {
  return std::make_unique<AppendClient>(this, session, number);
}

Status Append::ReadAll(txn::Session& session, bool whole) {
  AppendClient reader(this, session, history_.num_clients());
  if (!whole) {
    for (uint64_t slot = 0; slot < planner_.slots(); ++slot) {
      const Status status =
          UntilKnown([&] { return session.worker().BlockOn(reader.Execute({MicroOp::Read(planner_.KeyOf(slot))})); });
      if (!absl::IsUnavailable(status)) GANNET_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }
  std::vector<MicroOp> reads;
  for (uint64_t slot = 0; slot < planner_.slots(); ++slot) reads.push_back(MicroOp::Read(planner_.KeyOf(slot)));
  return UntilKnown([&] { return session.worker().BlockOn(reader.Execute(reads)); });
}

Judgement Append::Judge() {
  Judgement result;
  if (!elle_file_.empty()) {
    std::ofstream file(elle_file_);
    file << ToElleEdn(history_);
    file.close();
    if (!file) {
      result.passed = false;
      result.verdict = absl::StrCat("--elle ", elle_file_, ": cannot be written");
      return result;
    }
  }
  return JudgementOf(CheckListAppend(history_));
}

}  // namespace gannet::scenario
