#include "lab/scenario/workload/registers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "index/registry.h"
#include "lab/scenario/check/serializability.h"
#include "lab/scenario/workload/judged_transaction.h"
#include "txn/database.h"

namespace gannet::scenario {
namespace {

using index::Key;
using txn::Transaction;

// The rows of each table but the last have a fixed length.
enum Tables : uint32_t { kHash, kOrdered, kBytes, kLengths, kNumTables };
constexpr uint32_t kNumFixed = kLengths;
constexpr std::array<const char*, kNumTables> kRegisterTableNames = {"hash", "ordered", "bytes", "lengths"};
constexpr uint32_t kRegisterLoader = 0;  // its client number

// Encodes numbers as byte keys of several lengths, in the same order.
std::string TextOf(uint64_t key) {
  return absl::StrFormat("key-%05d%s", key, std::string(key % 3 * 9, 'x'));
}
uint64_t NumberOf(uint32_t table, const Key& key) {
  return table == kBytes ? std::stoull(std::string(key.bytes().substr(4, 5))) : key.integer();
}

enum class RegisterStepKind : uint8_t {
  kGet,
  kGetMany,
  kUpdate,
  kPut,
  kInsert,
  kRemove,
  kScan,
  kResize,
  kResizeMany,
  kReadLengths
};

constexpr uint64_t kManyRowWords = 1000;  // or more: such a transaction's changes may exceed one message
constexpr uint64_t kLengthsOfLarge = 16;

// A row of kLengths has at most `row_words` words (ScenarioOptions), each the id of the write that made it. Large rows
// have nearly the same length, so that they are written in place.
std::vector<uint64_t> LongRow(WriteId id, uint64_t row_words) {
  const uint64_t words = row_words < kManyRowWords ? 1 + id % row_words : row_words - id % kLengthsOfLarge;
  return std::vector<uint64_t>(words, id);
}
std::optional<WriteId> IdOfLongRow(std::span<const std::byte> payload, uint64_t row_words) {
  uint64_t id = 0;
  if (payload.size() < sizeof id) return std::nullopt;
  std::memcpy(&id, payload.data(), sizeof id);
  const std::vector<uint64_t> whole = LongRow(id, row_words);
  if (!std::ranges::equal(payload, std::as_bytes(std::span(whole)))) return std::nullopt;
  return id;
}

constexpr uint64_t kLongestRange = 64;  // in keys, of a scan or a wave
constexpr uint64_t kLargeRows = 12;     // most rows changed by one step
// Longest quiet time after the removal of all rows. In it empty leaves are removed from their trees; in every other
// seed single rows are inserted during it.
constexpr uint64_t kQuietNanos = 20'000'000;
constexpr uint64_t kTrickleNanos = 200'000;  // longest time between two such inserts of a client

struct RegisterStep {
  RegisterStepKind kind = RegisterStepKind::kGet;
  uint32_t table = kHash;
  uint64_t key = 0;
  uint64_t to = 0;  // kScan, kGetMany
  bool reverse = false;
  size_t limit = SIZE_MAX;
};

constexpr char kOwnWriteUnseen[] = "a transaction does not see its own write, and only that";

}  // namespace

class RegisterTransaction final : public JudgedTransaction {
 public:
  RegisterTransaction(Registers* workload, txn::Session& session)
      : JudgedTransaction(&workload->history_, workload->control_), workload_(workload) {
    for (uint32_t t = 0; t < kNumTables; ++t) tables_[t] = session.database().FindTable(kRegisterTableNames[t]);
  }

  std::vector<RegisterStep>& steps() { return steps_; }

 private:
  using RegisterRow = Registers::RegisterRow;

  size_t num_steps() const override { return steps_.size(); }
  coro::Task<Status> Do(Transaction& transaction, Draft& draft, size_t step) override {
    co_return co_await Do(transaction, draft, steps_[step]);
  }

  coro::Task<Status> Do(Transaction& transaction, Draft& draft, const RegisterStep& step) {
    switch (step.kind) {
      case RegisterStepKind::kGet:
        co_return co_await Get(transaction, draft, step);
      case RegisterStepKind::kGetMany:
        co_return co_await GetMany(transaction, draft, step);
      case RegisterStepKind::kInsert:
        co_return Insert(transaction, draft, step);
      case RegisterStepKind::kUpdate:
      case RegisterStepKind::kPut:
      case RegisterStepKind::kRemove:
        co_return co_await Change(transaction, draft, step);
      case RegisterStepKind::kScan:
        co_return co_await Scan(transaction, draft, step);
      case RegisterStepKind::kResize:
        co_return co_await Resize(transaction, draft, step);
      case RegisterStepKind::kResizeMany:
        co_return co_await ResizeMany(transaction, draft, step);
      case RegisterStepKind::kReadLengths:
        co_return co_await ReadLengths(transaction, draft, step);
    }
    co_return absl::OkStatus();
  }

  Key KeyOf(const RegisterStep& step) {
    if (step.table != kBytes) return step.key;
    text_ = TextOf(step.key);
    return std::string_view(text_);
  }

  void Saw(Draft& draft, uint32_t table, uint64_t key, const RegisterRow& row) {
    const std::optional<WriteId> id = row.id();
    if (!id.has_value()) {
      control().broken = absl::StrCat("a torn row: ", kRegisterTableNames[table], ":", key, " has words of writes ",
                                      row.words[0], " to ", row.words[row.words.size() - 1]);
      return;
    }
    draft.Read({table, key}, *id);
  }

  coro::Task<Status> Get(Transaction& transaction, Draft& draft, const RegisterStep& step) {
    RegisterRow row;
    const Key key = KeyOf(step);
    Status status = co_await transaction.Get(*tables_[step.table], key, &row);
    if (status.ok()) Saw(draft, step.table, step.key, row);
    if (absl::IsNotFound(status)) draft.Read({step.table, step.key}, kAbsent);
    co_return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  coro::Task<Status> GetMany(Transaction& transaction, Draft& draft, const RegisterStep& step) {
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

  // Inserts without reading first. The commit returns AlreadyExists, or the insert itself does if this transaction has
  // inserted the key before. In the second case nothing was written, and a careless body continues.
  Status Insert(Transaction& transaction, Draft& draft, const RegisterStep& step) {
    const WriteId id = history().NextWriteId();
    Status inserted = transaction.Insert(*tables_[step.table], KeyOf(step), RegisterRow::Of(id));
    if (inserted.ok()) draft.Insert({step.table, step.key}, id);
    return inserted;
  }

  // Reads, and then updates, removes or (kPut) inserts.
  coro::Task<Status> Change(Transaction& transaction, Draft& draft, const RegisterStep& step) {
    const txn::Table& table = *tables_[step.table];
    const RowKey name{step.table, step.key};
    RegisterRow row;
    const Key key = KeyOf(step);
    StatusOr<txn::RecordHandle> handle = co_await transaction.GetForUpdate(table, key, &row);
    if (absl::IsNotFound(handle.status())) {
      draft.Read(name, kAbsent);
      if (step.kind != RegisterStepKind::kPut) co_return absl::OkStatus();
      const WriteId id = history().NextWriteId();
      draft.Write(name, id);
      co_return transaction.Insert(table, KeyOf(step), RegisterRow::Of(id));
    }
    if (!handle.ok()) co_return handle.status();
    Saw(draft, step.table, step.key, row);
    const WriteId id = history().NextWriteId();
    if (step.kind == RegisterStepKind::kRemove) {
      draft.Remove(name, id);
      co_return transaction.Remove(*handle);
    }
    draft.Write(name, id);
    co_return transaction.Update(*handle, RegisterRow::Of(id));
  }

  coro::Task<Status> Scan(Transaction& transaction, Draft& draft, const RegisterStep& step) {
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
        control().broken =
            absl::StrCat("a torn row in a scan: ", kRegisterTableNames[step.table], ":",
                         NumberOf(step.table, rows_.key(i)), " has words of writes ", absl::StrJoin(row.words, ","));
        break;
      }
      draft.Row(NumberOf(step.table, rows_.key(i)), *id);
    }
    draft.EndScan();
    co_return absl::OkStatus();
  }

  coro::Task<Status> ReadLengths(Transaction& transaction, Draft& draft, const RegisterStep& step) {
    const index::ScanRange range{.from = Key(step.key), .to = Key(step.to)};
    Status status = co_await transaction.Scan(*tables_[kLengths], range, &rows_);
    if (!status.ok()) co_return status;
    draft.BeginScan({.table = kLengths, .from = step.key, .to = step.to});
    for (size_t i = 0; i < rows_.size() && SawLong(i).has_value(); ++i) draft.Row(rows_.key(i).integer(), *SawLong(i));
    draft.EndScan();
    co_return absl::OkStatus();
  }

  // The write that made row `i` of the scan.
  std::optional<WriteId> SawLong(size_t i) {
    const std::optional<WriteId> id = IdOfLongRow(rows_.payload(i), workload_->row_words_);
    if (!id.has_value()) {
      control().broken =
          absl::StrCat("a torn row: lengths:", rows_.key(i).integer(), " of ", rows_.payload(i).size(), " bytes");
    }
    return id;
  }

  // Finds a row, or inserts it. Then gives it one length and another one after that, or removes it and inserts it with
  // another length. No other transaction may ever see the intermediate row.
  coro::Task<Status> Resize(Transaction& transaction, Draft& draft, const RegisterStep& step) {
    const txn::Table& table = *tables_[kLengths];
    const RowKey name{kLengths, step.key};
    const index::ScanRange range{.from = Key(step.key), .to = Key(step.key)};
    const txn::ScanOptions options{.for_update = true};
    Status status = co_await transaction.Scan(table, range, &rows_, options);
    if (!status.ok()) co_return status;
    const WriteId id = history().NextWriteId();
    const std::vector<uint64_t> between = LongRow(history().NextWriteId(), workload_->row_words_);
    const std::vector<uint64_t> row = LongRow(id, workload_->row_words_);
    const bool removes = step.to % 2 == 1;
    const bool found = !rows_.empty();
    if (found && !SawLong(0).has_value()) co_return absl::OkStatus();
    draft.Read(name, found ? *SawLong(0) : kAbsent);
    draft.Write(name, id);
    status = found ? transaction.Update(rows_.handle(0), std::as_bytes(std::span(between)))
                   : transaction.Insert(table, step.key, std::as_bytes(std::span(between)));
    if (!status.ok()) co_return status;
    status = co_await transaction.Scan(table, range, &rows_, options);
    if (!status.ok()) co_return status;
    if (rows_.size() != 1) co_return Impossible(kOwnWriteUnseen);
    if (!removes || !found) {
      co_return transaction.Update(rows_.handle(0), std::as_bytes(std::span(row)));
    }
    status = transaction.Remove(rows_.handle(0));
    if (!status.ok()) co_return status;
    co_return transaction.Insert(table, step.key, std::as_bytes(std::span(row)));
  }

  // Gives each row of a range another length.
  coro::Task<Status> ResizeMany(Transaction& transaction, Draft& draft, const RegisterStep& step) {
    const index::ScanRange range{.from = Key(step.key), .to = Key(step.to)};
    Status status = co_await transaction.Scan(*tables_[kLengths], range, &rows_, {.for_update = true});
    if (!status.ok()) co_return status;
    draft.BeginScan({.table = kLengths, .from = step.key, .to = step.to});
    for (size_t i = 0; i < rows_.size() && SawLong(i).has_value(); ++i) draft.Row(rows_.key(i).integer(), *SawLong(i));
    draft.EndScan();
    for (size_t i = 0; i < rows_.size(); ++i) {
      const WriteId id = history().NextWriteId();
      const std::vector<uint64_t> row = LongRow(id, workload_->row_words_);
      draft.Write({kLengths, rows_.key(i).integer()}, id);
      status = transaction.Update(rows_.handle(i), std::as_bytes(std::span(row)));
      if (!status.ok()) co_return status;
    }
    co_return absl::OkStatus();
  }

  Registers* workload_;
  std::array<const txn::Table*, kNumTables> tables_{};
  std::vector<RegisterStep> steps_;
  txn::ScanRows rows_;
  std::string text_;
};

class RegisterClient : public JudgedClient {
 public:
  RegisterClient(Registers* workload, txn::Session& session, uint32_t number)
      : JudgedClient(&session, workload->control_, number),
        workload_(workload),
        random_(Mix64(workload->seed_) + number),
        endings_(Mix64(workload->seed_ + 1) + number),
        transaction_(workload, session) {}

  std::vector<RegisterStep>& steps() { return transaction_.steps(); }

 private:
  JudgedTransaction& transaction() override { return transaction_; }
  bool quiet() const { return control().Now() < workload_->quiet_until_; }
  bool Waits() const override { return quiet() && !workload_->trickles(); }
  coro::Task<Status> RunOne() override {
    const bool trickles = quiet();
    if (trickles) co_await session().worker().SleepUntil(NowNanos() + random_.Below(kTrickleNanos));
    Plan(trickles);
    co_return co_await Execute();
  }

  void Plan(bool quiet) {
    std::vector<RegisterStep>& steps = transaction_.steps();
    steps.clear();
    transaction_.EndPlainly();
    transaction_.AskAgain(workload_->DrawAttempts(&endings_));
    if (quiet)
      return steps.push_back({RegisterStepKind::kPut, kOrdered + static_cast<uint32_t>(random_.Below(2)), DrawKey()});
    if (workload_->keys_ >= kManyKeys && (Removes() || random_.OneIn(2))) return PlanWave();
    const size_t n = 1 + random_.Below(4);
    for (size_t i = 0; i < n; ++i) {
      const RegisterStep step = DrawStep();
      // The error AlreadyExists can be judged if the key was read before.
      if (step.kind == RegisterStepKind::kInsert && endings_.OneIn(2))
        steps.push_back({RegisterStepKind::kGet, step.table, step.key});
      steps.push_back(step);
      if (!endings_.OneIn(8)) continue;
      steps.back() = {RegisterStepKind::kResize, kLengths, step.key, endings_.Below(2)};
      if (endings_.OneIn(3)) steps.back().kind = RegisterStepKind::kReadLengths;
      if (steps.back().kind == RegisterStepKind::kReadLengths) {
        steps.back().to = step.key + DrawRange(step.key, endings_);
      }
      if (workload_->row_words_ < kManyRowWords || !endings_.OneIn(2)) continue;
      const uint64_t more = endings_.Below(std::min(workload_->keys_ - step.key, kLargeRows));
      steps.back() = {RegisterStepKind::kResizeMany, kLengths, step.key, step.key + more};
    }
    transaction_.DrawEnding(&endings_);
  }

  uint64_t DrawKey() { return random_.Below(workload_->keys_); }

  // Number of keys beyond the first one.
  uint64_t DrawRange(uint64_t key, Random& random) const {
    return random.Below(std::min(workload_->keys_ - key, kLongestRange));
  }

  // Number of waves over one table, and over all tables.
  uint64_t WavesOfTable() const { return (workload_->keys_ + kLongestRange - 1) / kLongestRange; }
  uint64_t WavesOfAll() const { return WavesOfTable() * kNumFixed; }
  // True if the next wave removes rows.
  bool Removes() const { return workload_->waves_ / WavesOfAll() % 2 == 0; }

  // Plans a wave: neighbouring keys of one table. The waves of all clients together visit all keys of all tables and
  // remove the rows; after a while they visit them again and insert rows. The hash table is filled while the others are
  // emptied.
  void PlanWave() {
    const bool removes = Removes();
    const uint64_t wave = workload_->waves_++ % WavesOfAll();
    const auto table = static_cast<uint32_t>(wave / WavesOfTable());
    const uint64_t from = wave % WavesOfTable() * kLongestRange;
    for (uint64_t key = from; key < std::min(from + kLongestRange, workload_->keys_); ++key) {
      transaction_.steps().push_back(
          {removes != (table == kHash) ? RegisterStepKind::kRemove : RegisterStepKind::kPut, table, key});
    }
    if (removes && wave == WavesOfAll() - 1) {
      workload_->quiet_until_ = workload_->control_->Now() + random_.Below(kQuietNanos);
    }
  }

  RegisterStep DrawStep() {
    RegisterStep step;
    step.table = static_cast<uint32_t>(random_.Below(kNumFixed));
    step.key = DrawKey();
    const uint64_t kind = random_.Below(100);
    if (kind < 30) {
      step.kind = RegisterStepKind::kGet;
    } else if (kind < 35) {
      step.kind = RegisterStepKind::kGetMany;
      step.to = std::min(workload_->keys_ - 1, step.key + random_.Below(6));
    } else if (kind < 60) {
      step.kind = RegisterStepKind::kPut;
    } else if (kind < 70) {
      step.kind = RegisterStepKind::kUpdate;
    } else if (kind < 75) {
      step.kind = RegisterStepKind::kInsert;
    } else if (kind < 85) {
      step.kind = RegisterStepKind::kRemove;
    } else {
      step.kind = RegisterStepKind::kScan;
      if (step.table == kHash) step.table = kOrdered;
      step.to = step.key + DrawRange(step.key, random_);
      step.reverse = random_.OneIn(3);
      if (random_.OneIn(3)) step.limit = 1 + random_.Below(4);
    }
    return step;
  }

  Registers* workload_;
  Random random_;
  Random endings_;  // for the ends of transactions
  RegisterTransaction transaction_;
};

Registers::Registers(const ScenarioOptions& drawn, Control* control)
    : JudgedWorkload(drawn, control),
      keys_(drawn.keys),
      row_words_(drawn.row_words),
      ordered_(*index::IndexKindOf(drawn.ordered_index)) {}

std::vector<txn::TableOptions> Registers::Tables() const {
  std::vector<txn::TableOptions> tables;
  for (uint32_t t = 0; t < kNumTables; ++t) {
    tables.push_back({.name = kRegisterTableNames[t],
                      .key_kind = t == kBytes ? index::KeyKind::kBytes : index::KeyKind::kInteger,
                      .max_key_bytes = t == kBytes ? size_t{48} : index::kIntegerKeyBytes,
                      .index = t == kHash ? txn::IndexKind::kHash : ordered_,
                      .payload_bytes = t == kLengths ? row_words_ * sizeof(uint64_t) : sizeof(RegisterRow),
                      .variable_length = t == kLengths,
                      .expected_rows = 64,
                      .placement = placement_});
  }
  return tables;
}

// Every other key is there from the beginning; with many keys, all those that the first waves will remove.
Status Registers::Load(txn::Session& session) {
  const bool many = keys_ >= kManyKeys;
  const uint64_t at_once = many ? 16 : 1;
  RegisterClient loader(this, session, kRegisterLoader);
  for (uint64_t key = 0; key < keys_;) {
    loader.steps().clear();
    for (uint64_t i = 0; i < at_once && key < keys_; ++i, key += many ? 1 : 2) {
      for (uint32_t t = many ? kOrdered : kHash; t < kNumFixed; ++t) {
        loader.steps().push_back({RegisterStepKind::kPut, t, key});
      }
      if (key % 16 == 0 || !many) loader.steps().push_back({RegisterStepKind::kResize, kLengths, key, 0});
    }
    GANNET_RETURN_IF_ERROR(loader.ExecuteNow());
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
        reader.steps() = {{t == kLengths ? RegisterStepKind::kReadLengths : RegisterStepKind::kGet, t, key, key}};
        const Status status = reader.ExecuteNow();
        if (!absl::IsUnavailable(status)) GANNET_RETURN_IF_ERROR(status);
      }
    }
    return absl::OkStatus();
  }
  reader.steps() = {{RegisterStepKind::kGetMany, kHash, 0, keys_ - 1},
                    {RegisterStepKind::kScan, kOrdered, 0, keys_ - 1},
                    {RegisterStepKind::kScan, kBytes, 0, keys_ - 1},
                    {RegisterStepKind::kReadLengths, kLengths, 0, keys_ - 1}};
  return reader.ExecuteNow();
}

bool Registers::CanGoOn(const std::function<bool(int node)>& lives) const {
  for (uint64_t key = 0; key < keys_; ++key) {
    const std::string text = TextOf(key);
    if (lives(placement_.OwnerOf(key, owners_)) || lives(placement_.OwnerOf(std::string_view(text), owners_)))
      return true;
  }
  return false;
}

}  // namespace gannet::scenario
