#include "scenario/workload/append.h"

#include <array>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/base/clock.h"
#include "scenario/check/elle.h"

namespace gannet::scenario {
namespace {

constexpr uint64_t kLongList = 40;
constexpr size_t kMostValues = 400;  // nobody gets there: what is in flight when a list becomes long is far less
constexpr std::array<const char*, 2> kNames = {"lists by hash", "lists in order"};

// A row: the number of values, then the values.
constexpr size_t RowBytes(size_t values) {
  return (values + 1) * sizeof(uint64_t);
}

}  // namespace

class AppendClient : public Client {
 public:
  AppendClient(Append* workload, txn::Session& session, uint32_t number)
      : workload_(workload), session_(session), number_(number), random_(Mix64(workload->seed_) + number) {
    for (size_t i = 0; i < kNames.size(); ++i) tables_[i] = session.database().FindTable(kNames[i]);
  }

  coro::Task<void> Run() override {
    Control& control = *workload_->control_;
    while (!control.stop && control.broken.empty()) {
      if (rests()) {
        co_await session_.worker().SleepUntil(NowNanos() + kRestNanos);
        continue;
      }
      const Status status = co_await Execute(Plan());
      if (status.ok()) {
        co_await session_.worker().Yield();
      } else {
        co_await session_.worker().SleepUntil(NowNanos() + 50'000);
      }
    }
  }

  coro::Task<Status> Execute(std::vector<MicroOp> micro_ops) {
    Control& control = *workload_->control_;
    micro_ops_ = micro_ops;
    const OperationId op = workload_->history_.Invoke(number_, control.Now(), std::move(micro_ops));
    txn::RunOutcome outcome;
    AppendClient* const self = this;
    const auto body = [self](txn::Transaction& transaction) { return self->Attempt(transaction); };
    Status status = co_await session_.Run(body, &outcome);
    control.aborts += outcome.aborts;
    if (status.ok()) {
      workload_->history_.Complete(op, control.Now(), Outcome::kOk, lists_);
      ++control.committed;
      ++committed_;
    } else if (absl::IsUnknown(status)) {
      workload_->history_.Complete(op, control.Now(), Outcome::kInfo);
      ++control.unknown;
    } else {
      workload_->history_.Complete(op, control.Now(), Outcome::kFail);
      ++control.failed;
    }
    co_return status;
  }

 private:
  std::vector<MicroOp> Plan() {
    std::vector<MicroOp> micro_ops;
    const size_t n = 1 + random_.Below(4);
    for (size_t i = 0; i < n; ++i) {
      const uint64_t slot = random_.Below(workload_->generations_.size());
      if (random_.OneIn(2)) {
        micro_ops.push_back(MicroOp::Read(workload_->KeyOf(slot)));
        continue;
      }
      if (workload_->appended_[slot]++ >= kLongList) {
        ++workload_->generations_[slot];
        workload_->appended_[slot] = 1;
      }
      micro_ops.push_back(MicroOp::Append(workload_->KeyOf(slot), ++workload_->last_value_));
    }
    return micro_ops;
  }

  coro::Task<Status> Attempt(txn::Transaction& transaction) {
    lists_.assign(micro_ops_.size(), {});
    for (size_t i = 0; i < micro_ops_.size(); ++i) {
      Status status = co_await Do(transaction, micro_ops_[i], &lists_[i]);
      if (!status.ok()) co_return status;
    }
    co_return absl::OkStatus();
  }

  coro::Task<Status> Do(txn::Transaction& transaction, const MicroOp& op, List* list) {
    const txn::Table& table = *tables_[op.key % kNames.size()];
    const index::Key key = op.key;
    uint64_t values = 0;
    std::array<txn::GetRequest, 1> request = {txn::GetRequest::Of(table, key, &values, op.append)};
    Status status = co_await transaction.GetMany(request);
    if (!status.ok()) co_return status;
    if (absl::IsNotFound(request[0].status)) {
      if (!op.append) co_return absl::OkStatus();
      row_ = {1, op.value};
      co_return transaction.Insert(table, key, std::as_bytes(std::span(row_)));
    }
    if (!request[0].status.ok()) co_return request[0].status;
    // How long it is is known now, so all of it can be read. Another transaction may come in between: then what follows
    // is not believed.
    row_.assign(request[0].payload_bytes / sizeof(uint64_t), 0);
    status = co_await transaction.Get(table, key, std::as_writable_bytes(std::span(row_)));
    if (!status.ok()) co_return status;
    if (row_.empty() || row_[0] != row_.size() - 1) {
      co_return absl::InternalError(absl::StrCat("list ", op.key, " is of ", row_.size() - 1,
                                                 " values, and says that it has ", row_.empty() ? 0 : row_[0]));
    }
    if (!op.append) {
      list->assign(row_.begin() + 1, row_.end());
      co_return absl::OkStatus();
    }
    row_.push_back(op.value);
    row_[0] = row_.size() - 1;
    co_return transaction.Update(request[0].handle, std::as_bytes(std::span(row_)), 0, /*resize=*/true);
  }

  Append* workload_;
  txn::Session& session_;
  uint32_t number_;
  Random random_;
  std::array<const txn::Table*, kNames.size()> tables_{};
  std::vector<MicroOp> micro_ops_;
  std::vector<List> lists_;
  std::vector<uint64_t> row_;
};

Append::Append(const ScenarioOptions& drawn, Control* control)
    : generations_(drawn.keys),
      appended_(drawn.keys),
      seed_(drawn.seed),
      placement_(PlacementOf(drawn)),
      elle_file_(drawn.elle_file),
      control_(control) {}

std::vector<txn::TableOptions> Append::Tables() const {
  std::vector<txn::TableOptions> tables;
  for (size_t i = 0; i < kNames.size(); ++i) {
    tables.push_back({.name = kNames[i],
                      .index = i == 0 ? txn::IndexKind::kHash : txn::IndexKind::kXStore,
                      .payload_bytes = RowBytes(kMostValues),
                      .variable_length = true,
                      .expected_rows = 256,
                      .placement = placement_});
  }
  return tables;
}

std::unique_ptr<Client> Append::NewClient(txn::Session& session, uint32_t number) {
  return std::make_unique<AppendClient>(this, session, number);
}

Status Append::ReadAll(txn::Session& session, bool whole) {
  AppendClient reader(this, session, history_.num_clients());
  if (!whole) {
    for (uint64_t slot = 0; slot < generations_.size(); ++slot) {
      const Status status = session.worker().BlockOn(reader.Execute({MicroOp::Read(KeyOf(slot))}));
      if (!absl::IsUnavailable(status)) GANNET_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }
  std::vector<MicroOp> reads;
  for (uint64_t slot = 0; slot < generations_.size(); ++slot) reads.push_back(MicroOp::Read(KeyOf(slot)));
  return session.worker().BlockOn(reader.Execute(std::move(reads)));
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
