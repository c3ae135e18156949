// Transactions that append unique numbers to lists and read whole lists, all of them reported to the parent: the
// workload that Elle judges (lab/scenario/workload/append_transaction.h has the transactions, append_judge.h the
// history).
#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "lab/scenario/crash/append_judge.h"
#include "lab/scenario/crash/workload.h"
#include "lab/scenario/workload/append_transaction.h"

namespace gannet::scenario::crash {
namespace {

constexpr size_t kListsPerRead = 16;  // of a transaction that reads back what was recovered

// Children alternately continue the last lists, which the one before may have changed, and begin new ones. Otherwise a
// run of short cycles would make one list longer and longer.
uint64_t FirstGeneration(const CrashOptions& options, uint64_t cycle) {
  const uint64_t generations = options.lists.to / kListSlots;
  return generations == 0 || cycle % 2 == 0 ? generations : generations - 1;
}

class AppendWorkload final : public Workload {
 public:
  AppendWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe)
      : options_(options),
        cycle_(cycle),
        pipe_(pipe),
        planner_(kListSlots, FirstGeneration(options, cycle), (cycle + 1) << 32) {}

  Status CreateTables(txn::Database& database) override {
    for (const txn::TableOptions& table : ListTableOptions(txn::Placement::ByHash(), options_.ordered_index)) {
      GANNET_RETURN_IF_ERROR(database.CreateTable(table).status());
    }
    return absl::OkStatus();
  }

  Status Prepare(std::span<txn::Database* const>) override { return absl::OkStatus(); }

  Status TellState(std::span<txn::Database* const> databases) override {
    StatusOr<std::unique_ptr<txn::Session>> session = databases[0]->OpenSession();
    if (!session.ok()) return session.status();
    AppendTransaction reader(*databases[0]);
    const auto client = static_cast<uint32_t>(options_.workers());
    uint64_t found = 0;
    for (uint64_t from = options_.lists.from; from < options_.lists.to; from += kListsPerRead) {
      std::vector<MicroOp> reads;
      for (uint64_t key = from; key < std::min(from + kListsPerRead, options_.lists.to); ++key) {
        reads.push_back(MicroOp::Read(key));
      }
      GANNET_RETURN_IF_ERROR((*session)->worker().BlockOn(Execute(session->get(), &reader, client, std::move(reads))));
      for (const List& list : reader.lists()) found += list.empty() ? 0 : 1;
    }
    const bool all = options_.lists.from == 0;
    pipe_->Send({.kind = MessageKind::kStateEnd, .number = all ? KeysIn(databases) : found, .a = found});
    return absl::OkStatus();
  }

  coro::Task<Status> Work(txn::Session* session, uint32_t worker) override {
    Random random(Mix64(options_.seed + cycle_) ^ worker);
    AppendTransaction transaction(session->database());
    Status status;
    while (status.ok()) {
      std::vector<MicroOp> micro_ops = planner_.Draw(random);
      status = co_await Execute(session, &transaction, worker, std::move(micro_ops));
      co_await session->worker().Yield();
    }
    co_return status;
  }

  coro::Task<Status> Observe(txn::Session*, uint64_t) override { co_return absl::OkStatus(); }

 private:
  // Ok also if the outcome is unknown, which is reported, too.
  coro::Task<Status> Execute(txn::Session* session, AppendTransaction* transaction, uint32_t client,
                             std::vector<MicroOp> micro_ops) const {
    TellBegin(client, micro_ops);
    Status status = co_await transaction->Run(*session, micro_ops, /*outcome=*/nullptr);
    if (!status.ok() && !absl::IsUnknown(status)) co_return status;
    TellEnd(client, micro_ops, status.ok() ? &transaction->lists() : nullptr);
    co_return absl::OkStatus();
  }

  void TellBegin(uint32_t client, const std::vector<MicroOp>& micro_ops) const {
    std::vector<Message> messages;
    messages.push_back({.kind = MessageKind::kAppendBegun, .worker = client, .number = micro_ops.size()});
    for (const MicroOp& op : micro_ops) {
      messages.push_back({.kind = MessageKind::kMicroOp,
                          .worker = client,
                          .number = op.append ? uint64_t{1} : uint64_t{0},
                          .a = op.key,
                          .b = op.value});
    }
    pipe_->SendAll(messages);
  }

  // `lists`: null if the outcome is unknown.
  void TellEnd(uint32_t client, const std::vector<MicroOp>& micro_ops, const std::vector<List>* lists) const {
    std::vector<Message> messages;
    for (size_t i = 0; lists != nullptr && i < micro_ops.size(); ++i) {
      if (!micro_ops[i].append) AddList(client, (*lists)[i], &messages);
    }
    messages.push_back(
        {.kind = MessageKind::kAppendOver, .worker = client, .number = lists != nullptr ? uint64_t{1} : uint64_t{0}});
    pipe_->SendAll(messages);
  }

  static void AddList(uint32_t client, const List& list, std::vector<Message>* messages) {
    const auto value = [&list](size_t i) { return i < list.size() ? list[i] : 0; };
    for (size_t i = 0; i == 0 || i < list.size(); i += 3) {
      messages->push_back({.kind = i == 0 ? MessageKind::kList : MessageKind::kListMore,
                           .worker = client,
                           .number = list.size(),
                           .a = value(i),
                           .b = value(i + 1),
                           .c = value(i + 2)});
    }
  }

  const CrashOptions options_;
  const uint64_t cycle_;
  const MessagePipe* pipe_;
  AppendPlanner planner_;
};

}  // namespace

std::unique_ptr<Workload> MakeAppendWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe) {
  return std::make_unique<AppendWorkload>(options, cycle, pipe);
}

}  // namespace gannet::scenario::crash
