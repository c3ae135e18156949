#include "scenario/workload/registers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "scenario/check/serializability.h"

namespace gannet::scenario {
namespace {

using index::Key;
using txn::Transaction;

enum Tables : uint32_t { kHash, kOrdered, kBytes, kNumTables };
constexpr std::array<const char*, kNumTables> kNames = {"hash", "ordered", "bytes"};
constexpr uint32_t kLoader = 0;  // as a client

// Numbers in their order as byte keys of several lengths.
std::string TextOf(uint64_t key) {
  return absl::StrFormat("key-%05d%s", key, std::string(key % 3 * 9, 'x'));
}
uint64_t NumberOf(uint32_t table, const Key& key) {
  return table == kBytes ? std::stoull(std::string(key.bytes().substr(4, 5))) : key.integer();
}

enum class StepKind : uint8_t { kGet, kGetMany, kUpdate, kPut, kInsert, kRemove, kScan };

struct Step {
  StepKind kind = StepKind::kGet;
  uint32_t table = kHash;
  uint64_t key = 0;
  uint64_t to = 0;  // kScan, kGetMany
  bool reverse = false;
  size_t limit = SIZE_MAX;
};

// Known only if the log or a node failed at the wrong moment.
bool MayHaveHappened(const Status& status) {
  return absl::IsUnknown(status);
}

}  // namespace

// One attempt after the other at the same steps.
class RegisterTransaction {
 public:
  RegisterTransaction(Registers* workload, txn::Session& session) : workload_(workload) {
    for (uint32_t t = 0; t < kNumTables; ++t) tables_[t] = session.database().FindTable(kNames[t]);
  }

  std::vector<Step>& steps() { return steps_; }
  void Begin(OperationId op) { op_ = op; }

  coro::Task<Status> Attempt(Transaction& transaction) {
    Draft& draft = workload_->history_.BeginAttempt(op_, workload_->control_->Now());
    for (const Step& step : steps_) {
      Status status = co_await Do(transaction, draft, step);
      if (!status.ok()) co_return status;
    }
    co_return absl::OkStatus();
  }

 private:
  using RegisterRow = Registers::RegisterRow;

  coro::Task<Status> Do(Transaction& transaction, Draft& draft, const Step& step) {
    switch (step.kind) {
      case StepKind::kGet:
        co_return co_await Get(transaction, draft, step);
      case StepKind::kGetMany:
        co_return co_await GetMany(transaction, draft, step);
      case StepKind::kInsert:
        co_return Insert(transaction, draft, step);
      case StepKind::kUpdate:
      case StepKind::kPut:
      case StepKind::kRemove:
        co_return co_await Change(transaction, draft, step);
      case StepKind::kScan:
        co_return co_await Scan(transaction, draft, step);
    }
    co_return absl::OkStatus();
  }

  Key KeyOf(const Step& step) {
    if (step.table != kBytes) return step.key;
    text_ = TextOf(step.key);
    return std::string_view(text_);
  }

  void Saw(Draft& draft, uint32_t table, uint64_t key, const RegisterRow& row) {
    const std::optional<WriteId> id = row.id();
    if (!id.has_value()) {
      workload_->control_->broken = absl::StrCat("a torn row: ", kNames[table], ":", key, " has words of writes ",
                                                 row.words[0], " to ", row.words[row.words.size() - 1]);
      return;
    }
    draft.Read({table, key}, *id);
  }

  coro::Task<Status> Get(Transaction& transaction, Draft& draft, const Step& step) {
    RegisterRow row;
    const Key key = KeyOf(step);
    Status status = co_await transaction.Get(*tables_[step.table], key, &row);
    if (status.ok()) Saw(draft, step.table, step.key, row);
    if (absl::IsNotFound(status)) draft.Read({step.table, step.key}, kAbsent);
    co_return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  coro::Task<Status> GetMany(Transaction& transaction, Draft& draft, const Step& step) {
    std::vector<RegisterRow> rows(step.to - step.key + 1);
    std::vector<std::string> texts(rows.size());
    std::vector<txn::GetRequest> requests;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (step.table == kBytes) texts[i] = TextOf(step.key + i);
      const Key key = step.table == kBytes ? Key(std::string_view(texts[i])) : Key(step.key + i);
      requests.push_back(txn::GetRequest::Of(*tables_[step.table], key, &rows[i]));
    }
    Status status = co_await transaction.GetMany(requests);
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (requests[i].status.ok()) {
        Saw(draft, step.table, step.key + i, rows[i]);
      } else if (absl::IsNotFound(requests[i].status)) {
        draft.Read({step.table, step.key + i}, kAbsent);
      } else {
        co_return requests[i].status;
      }
    }
    co_return absl::OkStatus();
  }

  // Without looking first: AlreadyExists ends the transaction.
  Status Insert(Transaction& transaction, Draft& draft, const Step& step) {
    const WriteId id = workload_->history_.NextWriteId();
    draft.Insert({step.table, step.key}, id);
    return transaction.Insert(*tables_[step.table], KeyOf(step), RegisterRow::Of(id));
  }

  // Reads, and then updates, removes or (kPut) inserts.
  coro::Task<Status> Change(Transaction& transaction, Draft& draft, const Step& step) {
    const txn::Table& table = *tables_[step.table];
    const RowKey name{step.table, step.key};
    RegisterRow row;
    const Key key = KeyOf(step);
    StatusOr<txn::RecordHandle> handle = co_await transaction.GetForUpdate(table, key, &row);
    if (absl::IsNotFound(handle.status())) {
      draft.Read(name, kAbsent);
      if (step.kind != StepKind::kPut) co_return absl::OkStatus();
      const WriteId id = workload_->history_.NextWriteId();
      draft.Write(name, id);
      co_return transaction.Insert(table, KeyOf(step), RegisterRow::Of(id));
    }
    if (!handle.ok()) co_return handle.status();
    Saw(draft, step.table, step.key, row);
    const WriteId id = workload_->history_.NextWriteId();
    if (step.kind == StepKind::kRemove) {
      draft.Remove(name, id);
      co_return transaction.Remove(*handle);
    }
    draft.Write(name, id);
    co_return transaction.Update(*handle, RegisterRow::Of(id));
  }

  coro::Task<Status> Scan(Transaction& transaction, Draft& draft, const Step& step) {
    const std::string from = TextOf(step.key);
    const std::string to = TextOf(step.to);
    const bool bytes = step.table == kBytes;
    const index::ScanRange range{.from = bytes ? Key(std::string_view(from)) : Key(step.key),
                                 .to = bytes ? Key(std::string_view(to)) : Key(step.to),
                                 .reverse = step.reverse,
                                 .limit = step.limit};
    Status status = co_await transaction.Scan(*tables_[step.table], range, &rows_);
    if (!status.ok()) co_return status;
    draft.BeginScan(
        {.table = step.table, .from = step.key, .to = step.to, .reverse = step.reverse, .limit = step.limit});
    for (size_t i = 0; i < rows_.size(); ++i) {
      const auto row = rows_.As<RegisterRow>(i);
      const std::optional<WriteId> id = row.id();
      if (!id.has_value()) {
        workload_->control_->broken =
            absl::StrCat("a torn row in a scan: ", kNames[step.table], ":", NumberOf(step.table, rows_.key(i)),
                         " has words of writes ", absl::StrJoin(row.words, ","));
        break;
      }
      draft.Row(NumberOf(step.table, rows_.key(i)), *id);
    }
    draft.EndScan();
    co_return absl::OkStatus();
  }

  Registers* workload_;
  OperationId op_ = 0;
  std::array<const txn::Table*, kNumTables> tables_{};
  std::vector<Step> steps_;
  txn::ScanRows rows_;
  std::string text_;
};

class RegisterClient : public Client {
 public:
  RegisterClient(Registers* workload, txn::Session& session, uint32_t number)
      : workload_(workload),
        session_(session),
        number_(number),
        random_(Mix64(workload->seed_) + number),
        transaction_(workload, session) {}

  coro::Task<void> Run() override {
    Control& control = *workload_->control_;
    while (!control.stop && control.broken.empty()) {
      if (rests()) {
        co_await session_.worker().SleepUntil(NowNanos() + kRestNanos);
        continue;
      }
      Plan();
      const Status status = co_await Execute();
      if (status.ok() || absl::IsAlreadyExists(status)) {
        co_await session_.worker().Yield();  // on one node nothing else would let the others have a turn
        continue;
      }
      co_await session_.worker().SleepUntil(NowNanos() + 50'000);  // something is broken: no hurry
    }
  }

  // Runs what Plan, or the caller, put into steps().
  coro::Task<Status> Execute() {
    Control& control = *workload_->control_;
    History& history = workload_->history_;
    const OperationId op = history.Invoke(number_, control.Now());
    transaction_.Begin(op);
    RegisterTransaction* const attempt = &transaction_;
    txn::RunOutcome outcome;
    const auto body = [attempt](Transaction& transaction) { return attempt->Attempt(transaction); };
    Status status = co_await session_.Run(body, &outcome);
    control.aborts += outcome.aborts;
    if (status.ok()) {
      history.Complete(op, control.Now(), Outcome::kOk);
      ++control.committed;
      ++committed_;
    } else if (MayHaveHappened(status)) {
      history.Complete(op, control.Now(), Outcome::kInfo);
      ++control.unknown;
    } else {
      history.Complete(op, control.Now(), Outcome::kFail);
      ++control.failed;
    }
    co_return status;
  }

  std::vector<Step>& steps() { return transaction_.steps(); }

 private:
  void Plan() {
    std::vector<Step>& steps = transaction_.steps();
    steps.clear();
    const size_t n = 1 + random_.Below(4);
    for (size_t i = 0; i < n; ++i) steps.push_back(DrawStep());
  }

  Step DrawStep() {
    Step step;
    step.table = static_cast<uint32_t>(random_.Below(kNumTables));
    step.key = random_.Below(workload_->keys_);
    const uint64_t kind = random_.Below(100);
    if (kind < 30) {
      step.kind = StepKind::kGet;
    } else if (kind < 35) {
      step.kind = StepKind::kGetMany;
      step.to = std::min(workload_->keys_ - 1, step.key + random_.Below(6));
    } else if (kind < 60) {
      step.kind = StepKind::kPut;
    } else if (kind < 70) {
      step.kind = StepKind::kUpdate;
    } else if (kind < 75) {
      step.kind = StepKind::kInsert;
    } else if (kind < 85) {
      step.kind = StepKind::kRemove;
    } else {
      step.kind = StepKind::kScan;
      if (step.table == kHash) step.table = kOrdered;
      step.to = step.key + random_.Below(workload_->keys_ - step.key);
      step.reverse = random_.OneIn(3);
      if (random_.OneIn(3)) step.limit = 1 + random_.Below(4);
    }
    return step;
  }

  Registers* workload_;
  txn::Session& session_;
  uint32_t number_;
  Random random_;
  RegisterTransaction transaction_;
};

Registers::Registers(const ScenarioOptions& drawn, Control* control)
    : keys_(drawn.keys), seed_(drawn.seed), nodes_(drawn.nodes), placement_(PlacementOf(drawn)), control_(control) {}

std::vector<txn::TableOptions> Registers::Tables() const {
  std::vector<txn::TableOptions> tables;
  for (uint32_t t = 0; t < kNumTables; ++t) {
    tables.push_back({.name = kNames[t],
                      .key_kind = t == kBytes ? index::KeyKind::kBytes : index::KeyKind::kInteger,
                      .max_key_bytes = t == kBytes ? size_t{32} : index::kIntegerKeyBytes,
                      .index = t == kHash ? txn::IndexKind::kHash : txn::IndexKind::kXStore,
                      .payload_bytes = sizeof(RegisterRow),
                      .expected_rows = 64,
                      .placement = placement_});
  }
  return tables;
}

// Every other key is there from the beginning.
Status Registers::Load(txn::Session& session) {
  RegisterClient loader(this, session, kLoader);
  for (uint64_t key = 0; key < keys_; key += 2) {
    loader.steps().clear();
    for (uint32_t t = 0; t < kNumTables; ++t) loader.steps().push_back({StepKind::kPut, t, key});
    GANNET_RETURN_IF_ERROR(session.worker().BlockOn(loader.Execute()));
  }
  return absl::OkStatus();
}

std::unique_ptr<Client> Registers::NewClient(txn::Session& session, uint32_t number) {
  return std::make_unique<RegisterClient>(this, session, number);
}

Status Registers::ReadAll(txn::Session& session, bool whole) {
  RegisterClient reader(this, session, UINT32_MAX);
  if (!whole) {
    for (uint64_t key = 0; key < keys_; ++key) {
      for (uint32_t t = 0; t < kNumTables; ++t) {
        reader.steps() = {{StepKind::kGet, t, key}};
        const Status status = session.worker().BlockOn(reader.Execute());
        if (!absl::IsUnavailable(status)) GANNET_RETURN_IF_ERROR(status);
      }
    }
    return absl::OkStatus();
  }
  reader.steps() = {{StepKind::kGetMany, kHash, 0, keys_ - 1},
                    {StepKind::kScan, kOrdered, 0, keys_ - 1},
                    {StepKind::kScan, kBytes, 0, keys_ - 1}};
  return session.worker().BlockOn(reader.Execute());
}

bool Registers::CanGoOn(const std::function<bool(int node)>& lives) const {
  for (uint64_t key = 0; key < keys_; ++key) {
    const std::string text = TextOf(key);
    if (lives(placement_.owner(key, nodes_)) || lives(placement_.owner(std::string_view(text), nodes_))) return true;
  }
  return false;
}

Judgement Registers::Judge() {
  return JudgementOf(CheckSerializability(history_));
}

}  // namespace gannet::scenario
