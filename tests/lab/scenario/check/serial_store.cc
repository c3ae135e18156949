#include "tests/lab/scenario/check/serial_store.h"

#include <algorithm>
#include <map>

namespace gannet::scenario {
namespace {

class Store {
 public:
  explicit Store(const WorkloadOptions& options) : options_(options), random_(options.seed) {}

  Transaction Execute(size_t number) {
    Transaction transaction;
    const uint64_t now = (number + options_.overlap) * 10;
    transaction.invoked = now - random_.Below(options_.overlap * 5 + 1);
    transaction.completed = now + random_.Below(options_.overlap * 5 + 1);
    if (random_.Below(100) < options_.info_percent) transaction.outcome = Outcome::kInfo;
    const bool lost = transaction.outcome == Outcome::kInfo && random_.OneIn(2);
    std::map<uint64_t, WriteId> before;
    if (lost) before = rows_;
    const uint64_t steps = 1 + random_.Below(options_.max_steps);
    for (uint64_t i = 0; i < steps; ++i) transaction.steps.push_back(Take());
    if (lost) rows_.swap(before);
    return transaction;
  }

 private:
  Step Take() {
    if (random_.Below(100) < options_.scan_percent) return Scan();
    const RowKey row{0, random_.Below(options_.keys)};
    Step step{.kind = Step::Kind::kGet, .row = row};
    const auto found = rows_.find(row.key);
    if (found != rows_.end()) step.seen = found->second;
    if (random_.OneIn(2)) return step;
    step.id = ++last_id_;
    if (options_.versions) step.version = ++last_version_;
    if (found == rows_.end()) {
      step.kind = Step::Kind::kInsert;
      rows_[row.key] = step.id;
    } else if (random_.Below(100) < options_.remove_percent) {
      step.kind = Step::Kind::kRemove;
      rows_.erase(found);
    } else {
      step.kind = Step::Kind::kUpdate;
      found->second = step.id;
    }
    return step;
  }

  Step Scan() {
    Step step{.kind = Step::Kind::kScan};
    const uint64_t a = random_.Below(options_.keys);
    const uint64_t b = std::min(options_.keys - 1, a + random_.Below(20));
    step.query = {.from = a, .to = b, .reverse = random_.OneIn(2)};
    if (random_.OneIn(3)) step.query.limit = 1 + random_.Below(4);
    const auto begin = rows_.lower_bound(a);
    const auto end = rows_.upper_bound(b);
    step.rows.assign(begin, end);
    if (step.query.reverse) std::ranges::reverse(step.rows);
    if (step.rows.size() > step.query.limit) step.rows.resize(step.query.limit);
    return step;
  }

  const WorkloadOptions& options_;
  Random random_;
  std::map<uint64_t, WriteId> rows_;
  WriteId last_id_ = 0;
  uint64_t last_version_ = 0;
};

void Replay(const Step& step, bool blind, Draft* draft) {
  const bool writes = step.kind != Step::Kind::kScan && step.kind != Step::Kind::kGet;
  if (step.kind != Step::Kind::kScan && !(writes && blind)) draft->Read(step.row, step.seen);
  switch (step.kind) {
    case Step::Kind::kGet:
      break;
    case Step::Kind::kUpdate:
    case Step::Kind::kInsert:
      draft->Write(step.row, step.id, step.version);
      break;
    case Step::Kind::kRemove:
      draft->Remove(step.row, step.id, step.version);
      break;
    case Step::Kind::kScan:
      draft->BeginScan(step.query);
      for (const auto& [key, id] : step.rows) draft->Row(key, id);
      draft->EndScan();
      break;
  }
}

}  // namespace

std::vector<Transaction> RunSerially(const WorkloadOptions& options) {
  Store store(options);
  std::vector<Transaction> transactions;
  for (size_t i = 0; i < options.transactions; ++i) transactions.push_back(store.Execute(i));
  return transactions;
}

History Record(const std::vector<Transaction>& transactions) {
  std::vector<const Transaction*> by_invocation;
  for (const Transaction& transaction : transactions) by_invocation.push_back(&transaction);
  std::ranges::stable_sort(by_invocation, {}, &Transaction::invoked);
  History history;
  for (const Transaction* transaction : by_invocation) {
    const OperationId op = history.Invoke(static_cast<uint32_t>(history.size()), transaction->invoked);
    Draft& draft = history.draft(op);
    for (const Step& step : transaction->steps) Replay(step, step.version != 0, &draft);
    history.Complete(op, transaction->completed, transaction->outcome);
  }
  return history;
}

}  // namespace gannet::scenario
