// Transfers between accounts that all workers share. Each also writes a line of its worker's journal, which keeps the
// last few lines.
#include <vector>

#include "lab/scenario/crash/acknowledgements.h"
#include "lab/scenario/crash/counters.h"
#include "lab/scenario/crash/operation.h"
#include "lab/scenario/crash/tables.h"
#include "lab/scenario/crash/workload.h"

namespace gannet::scenario::crash {
namespace {

struct Account {
  int64_t balance = 0;
  uint64_t moves = 0;
};

uint64_t JournalKey(uint32_t worker, uint64_t number) {
  return uint64_t{worker} << 48 | number;
}

class BankWorkload final : public Workload {
 public:
  BankWorkload(const CrashOptions& options, const MessagePipe* pipe)
      : options_(options), pipe_(pipe), counters_(options, pipe) {}

  Status CreateTables(txn::Database& database) override {
    GANNET_RETURN_IF_ERROR(database
                               .CreateTable({.name = "account",
                                             .payload_bytes = sizeof(Account),
                                             .expected_rows = kAccounts,
                                             .placement = txn::Placement::ByHash()})
                               .status());
    GANNET_RETURN_IF_ERROR(database
                               .CreateTable({.name = "journal",
                                             .index = options_.ordered_index,
                                             .payload_bytes = sizeof(uint64_t),
                                             .placement = txn::Placement::ByHash()})
                               .status());
    return counters_.CreateTable(database);
  }

  // Makes all accounts or none.
  Status Prepare(std::span<txn::Database* const> databases) override {
    if (opened_) return absl::OkStatus();
    const txn::Table& accounts = *databases[0]->FindTable("account");
    return databases[0]->Run([&](txn::BlockingTransaction& t) -> Status {
      for (uint64_t a = 0; a < kAccounts; ++a) {
        GANNET_RETURN_IF_ERROR(t.Insert(accounts, a, Account{.balance = kOpeningBalance}));
      }
      return absl::OkStatus();
    });
  }

  Status TellState(std::span<txn::Database* const> databases) override {
    StatusOr<uint64_t> rows = counters_.Tell(*databases[0]);
    if (!rows.ok()) return rows.status();
    const StatusOr<uint64_t> accounts = TellAccounts(*databases[0]);
    if (!accounts.ok()) return accounts.status();
    opened_ = *accounts != 0;
    const StatusOr<uint64_t> entries = TellJournal(*databases[0]);
    if (!entries.ok()) return entries.status();
    pipe_->Send({.kind = MessageKind::kStateEnd, .number = KeysIn(databases), .a = *rows + *accounts + *entries});
    return absl::OkStatus();
  }

  coro::Task<Status> Work(txn::Session* session, uint32_t worker) override {
    Acknowledgements acknowledgements(&session->database(), options_.mode, pipe_);
    for (uint64_t number = counters_.last(worker) + 1;; ++number) {
      pipe_->Send({.kind = MessageKind::kBegun, .worker = worker, .number = number});
      const auto apply = [this, worker, number](txn::Transaction& t) { return Apply(t, worker, number); };
      const Status status = co_await session->Run(apply);
      if (!status.ok()) co_return status;
      acknowledgements.Add(worker, number);
      co_await session->worker().Yield();
    }
  }

  coro::Task<Status> Observe(txn::Session* session, uint64_t seed) override { return counters_.Observe(session, seed); }

 private:
  StatusOr<uint64_t> TellAccounts(txn::Database& database) const {
    const txn::Table& accounts = *database.FindTable("account");
    std::vector<Account> rows(kAccounts);
    std::vector<txn::GetRequest> requests;
    GANNET_RETURN_IF_ERROR(database.Run([&](txn::BlockingTransaction& t) {
      requests.clear();
      for (uint64_t a = 0; a < kAccounts; ++a) requests.push_back(txn::GetRequest::Of(accounts, a, &rows[a]));
      return t.GetMany(requests);
    }));
    uint64_t found = 0;
    for (uint64_t a = 0; a < kAccounts; ++a) {
      if (absl::IsNotFound(requests[a].status)) continue;
      GANNET_RETURN_IF_ERROR(requests[a].status);
      pipe_->Send({.kind = MessageKind::kRow, .a = kBalances, .b = a, .c = static_cast<uint64_t>(rows[a].balance)});
      pipe_->Send({.kind = MessageKind::kRow, .a = kMoves, .b = a, .c = rows[a].moves});
      ++found;
    }
    return found;
  }

  StatusOr<uint64_t> TellJournal(txn::Database& database) const {
    const txn::Table& journal = *database.FindTable("journal");
    txn::ScanRows rows;
    GANNET_RETURN_IF_ERROR(database.Run(
        [&](txn::BlockingTransaction& t) { return t.Scan(journal, {.from = uint64_t{0}, .to = UINT64_MAX}, &rows); }));
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint64_t key = rows.key(i).integer();
      pipe_->Send({.kind = MessageKind::kRow,
                   .worker = static_cast<uint32_t>(key >> 48),
                   .a = kJournal,
                   .b = key & ((uint64_t{1} << 48) - 1),
                   .c = rows.As<uint64_t>(i)});
    }
    return rows.size();
  }

  coro::Task<Status> Apply(txn::Transaction& t, uint32_t worker, uint64_t number) const {
    const Transfer transfer = BankOperation(options_.seed, worker, number);
    Status status = co_await Move(t, transfer.from, -transfer.amount);
    if (!status.ok()) co_return status;
    status = co_await Move(t, transfer.to, transfer.amount);
    if (!status.ok()) co_return status;
    const txn::Table& journal = *t.session().database().FindTable("journal");
    status = t.Insert(journal, JournalKey(worker, number), ContentOf(transfer));
    if (!status.ok()) co_return status;
    if (number > kJournalEntries) {
      status = co_await t.Remove(journal, JournalKey(worker, number - kJournalEntries));
      if (!status.ok()) co_return status;
    }
    co_return co_await counters_.Set(t, worker, number);
  }

  static coro::Task<Status> Move(txn::Transaction& t, uint64_t key, int64_t amount) {
    const txn::Table& accounts = *t.session().database().FindTable("account");
    Account account;
    const StatusOr<txn::RecordHandle> handle = co_await t.GetForUpdate(accounts, key, &account);
    if (!handle.ok()) co_return handle.status();
    account.balance += amount;
    ++account.moves;
    co_return t.Update(*handle, account);
  }

  const CrashOptions options_;
  const MessagePipe* pipe_;
  Counters counters_;
  bool opened_ = false;
};

}  // namespace

std::unique_ptr<Workload> MakeBankWorkload(const CrashOptions& options, const MessagePipe* pipe) {
  return std::make_unique<BankWorkload>(options, pipe);
}

}  // namespace gannet::scenario::crash
