#include "lab/scenario/workload/append_transaction.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::scenario {
namespace {

constexpr uint64_t kLongList = 40;
constexpr size_t kMostValues = 400;  // never reached: appends in flight when a list becomes long are far fewer
constexpr std::array<const char*, kListTables> kNames = {"lists by hash", "lists in order"};

// A row: the number of values, then the values.
constexpr size_t RowBytes(size_t values) {
  return (values + 1) * sizeof(uint64_t);
}

}  // namespace

std::vector<txn::TableOptions> ListTableOptions(const txn::Placement& placement, txn::IndexKind ordered) {
  std::vector<txn::TableOptions> tables;
  for (size_t i = 0; i < kNames.size(); ++i) {
    tables.push_back({.name = kNames[i],
                      .index = i == 0 ? txn::IndexKind::kHash : ordered,
                      .payload_bytes = RowBytes(kMostValues),
                      .variable_length = true,
                      .expected_rows = 256,
                      .placement = placement});
  }
  return tables;
}

uint64_t AppendPlanner::KeyAfter(uint64_t slot, uint64_t appends) const {
  const uint64_t generation = first_generation_ + (appends == 0 ? 0 : (appends - 1) / kLongList);
  return generation * slots() + slot;
}

uint64_t AppendPlanner::KeyOf(uint64_t slot) const {
  return KeyAfter(slot, appended_[slot].load(std::memory_order_relaxed));
}

std::vector<MicroOp> AppendPlanner::Draw(Random& random) {
  std::vector<MicroOp> micro_ops;
  const size_t n = 1 + random.Below(4);
  for (size_t i = 0; i < n; ++i) {
    const uint64_t slot = random.Below(slots());
    if (random.OneIn(2)) {
      micro_ops.push_back(MicroOp::Read(KeyOf(slot)));
      continue;
    }
    const uint64_t appends = appended_[slot].fetch_add(1, std::memory_order_relaxed) + 1;
    micro_ops.push_back(
        MicroOp::Append(KeyAfter(slot, appends), last_value_.fetch_add(1, std::memory_order_relaxed) + 1));
  }
  return micro_ops;
}

AppendTransaction::AppendTransaction(txn::Database& database) {
  for (size_t i = 0; i < kNames.size(); ++i) tables_[i] = database.FindTable(kNames[i]);
}

coro::Task<Status> AppendTransaction::Run(txn::Session& session, std::vector<MicroOp> micro_ops,
                                          txn::RunOutcome* outcome) {
  micro_ops_ = std::move(micro_ops);
  AppendTransaction* const self = this;
  const auto body = [self](txn::Transaction& transaction) { return self->Attempt(transaction); };
  Status status = co_await session.Run(body, outcome);
  if (!absl::IsDataLoss(status)) torn_.clear();  // seen by an attempt that was not valid
  co_return status;
}

coro::Task<Status> AppendTransaction::Attempt(txn::Transaction& transaction) {
  torn_.clear();
  lists_.assign(micro_ops_.size(), {});
  for (size_t i = 0; i < micro_ops_.size(); ++i) {
    Status status = co_await Do(transaction, micro_ops_[i], &lists_[i]);
    if (!status.ok()) co_return status;
  }
  co_return absl::OkStatus();
}

coro::Task<Status> AppendTransaction::Do(txn::Transaction& transaction, const MicroOp& op, List* list) {
  const txn::Table& table = *tables_[op.key % kNames.size()];
  const index::Key key = op.key;
  uint64_t values = 0;
  std::array<txn::GetRequest, 1> request = {txn::GetRequest::Of(table, key, &values, op.append)};
  request[0].offset = 0;
  Status status = co_await transaction.GetMany(request);
  if (!status.ok()) co_return status;
  if (absl::IsNotFound(request[0].status)) {
    if (!op.append) co_return absl::OkStatus();
    row_ = {1, op.value};
    co_return transaction.Insert(table, key, std::as_bytes(std::span(row_)));
  }
  if (!request[0].status.ok()) co_return request[0].status;
  // The length is known now, so the whole list can be read. If another transaction commits in between, the list looks
  // torn; that error is then ignored, because the read set does not validate.
  row_.assign(request[0].payload_bytes / sizeof(uint64_t), 0);
  status = co_await transaction.Get(table, key, std::as_writable_bytes(std::span(row_)), 0);
  if (!status.ok()) co_return status;
  if (row_.empty() || request[0].payload_bytes != RowBytes(row_.size() - 1) || row_[0] != row_.size() - 1) {
    torn_ = absl::StrCat("torn list: list ", op.key, " has ", request[0].payload_bytes, " bytes and says that it has ",
                         row_.empty() ? 0 : row_[0], " values");
    co_return absl::DataLossError(torn_);
  }
  if (!op.append) {
    list->assign(row_.begin() + 1, row_.end());
    co_return absl::OkStatus();
  }
  row_.push_back(op.value);
  row_[0] = row_.size() - 1;
  co_return transaction.Update(request[0].handle, std::as_bytes(std::span(row_)));
}

}  // namespace gannet::scenario
