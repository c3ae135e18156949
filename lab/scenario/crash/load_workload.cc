// Bulk loads while transactions run, each followed by a checkpoint, at once or later, besides periodic checkpoints.
#include "lab/scenario/crash/load.h"

#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "lab/scenario/crash/acknowledgements.h"
#include "lab/scenario/crash/counters.h"
#include "lab/scenario/crash/workload.h"
#include "txn/bulk_loader.h"

namespace gannet::scenario::crash {
namespace {

constexpr uint64_t kPauseNanos = 40'000'000;  // the longest pause between two loads
constexpr uint64_t kRefusedNanos = 500'000;   // until a worker tries again
constexpr int kMostNodes = 16;

std::string NameOf(uint64_t table) {
  return absl::StrCat("load ", table);
}

class LoadWorkload final : public Workload {
 public:
  LoadWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe)
      : options_(options), cycle_(cycle), pipe_(pipe), counters_(options, pipe) {}

  Status CreateTables(txn::Database& database) override {
    txn::Placement placement = txn::Placement::ByHash();
    placement.owner = [](const index::Key& key, int nodes) {
      return static_cast<rdma::NodeId>(NodeOfLoadRow(key.integer(), nodes));
    };
    for (uint64_t table = 0; table < kLoadTables; ++table) {
      GANNET_RETURN_IF_ERROR(database
                                 .CreateTable({.name = NameOf(table),
                                               .index = table % 2 == 0 ? txn::IndexKind::kHash : options_.ordered_index,
                                               .payload_bytes = sizeof(LoadRow),
                                               .expected_rows = kLoadRows,
                                               .placement = placement})
                                 .status());
    }
    return counters_.CreateTable(database);
  }

  Status Prepare(std::span<txn::Database* const>) override { return absl::OkStatus(); }

  Status TellState(std::span<txn::Database* const> databases) override {
    StatusOr<uint64_t> rows = counters_.Tell(*databases[0]);
    if (!rows.ok()) return rows.status();
    for (uint64_t table = 0; table < kLoadTables; ++table) {
      const StatusOr<uint64_t> told = TellTable(*databases[0], table);
      if (!told.ok()) return told.status();
      *rows += *told;
    }
    pipe_->Send({.kind = MessageKind::kStateEnd, .number = KeysIn(databases), .a = *rows});
    return absl::OkStatus();
  }

  // An operation changes a row of a table that is loaded, if it finds one. It is refused while a load is not durable.
  coro::Task<Status> Work(txn::Session* session, uint32_t worker) override {
    Random random(Mix64(options_.seed + cycle_) ^ worker);
    Acknowledgements acknowledgements(&session->database(), options_.mode, pipe_);
    for (uint64_t number = counters_.last(worker) + 1;;) {
      const Target target = Draw(random, worker);
      const std::array<Message, 2> begin = {Message{.kind = MessageKind::kBegun, .worker = worker, .number = number},
                                            Message{.kind = MessageKind::kTouches,
                                                    .worker = worker,
                                                    .number = number,
                                                    .a = target.table,
                                                    .b = target.key,
                                                    .c = target.load}};
      pipe_->SendAll(begin);
      const auto apply = [this, worker, number, &target](txn::Transaction& t) {
        return Apply(t, worker, number, &target);
      };
      const Status status = co_await session->Run(apply);
      if (absl::IsFailedPrecondition(status)) {
        co_await session->worker().SleepUntil(NowNanos() + kRefusedNanos);
        continue;
      }
      if (!status.ok()) co_return status;
      acknowledgements.Add(worker, number++);
      co_await session->worker().Yield();
    }
  }

  coro::Task<Status> Observe(txn::Session* session, uint64_t seed) override { return counters_.Observe(session, seed); }

  // Makes the loads of this cycle.
  Status WorkBeside(std::span<txn::Database* const> databases) override {
    Random random(Mix64(options_.seed + cycle_) + 1);
    std::vector<Message> unsaved;
    for (uint64_t table = 0; table < kLoadTables; ++table) {
      const auto load = static_cast<uint32_t>(cycle_ * kLoadTables + table + 1);
      for (txn::Database* database : databases) {
        const uint64_t node = database->node_id();
        if (loads_[table][node].load() != 0) continue;
        SleepForNanos(random.Below(kPauseNanos));
        GANNET_RETURN_IF_ERROR(Load(*database, table, load));
        unsaved.push_back({.kind = MessageKind::kLoadSaved, .number = load, .a = table, .b = node});
      }
      if (random.OneIn(3)) continue;  // one checkpoint for several loads, or a periodic one in between
      GANNET_RETURN_IF_ERROR(Save(databases, &unsaved));
    }
    return Save(databases, &unsaved);
  }

 private:
  struct Target {
    uint64_t table = 0;
    uint64_t key = 0;
    uint32_t load = 0;  // 0: no row
  };

  const txn::Table& TableOf(txn::Database& database, uint64_t table) const {
    return *database.FindTable(NameOf(table));
  }

  Status Load(txn::Database& database, uint64_t table, uint32_t load) {
    const uint64_t node = database.node_id();
    pipe_->Send({.kind = MessageKind::kLoadBegun, .number = load, .a = table, .b = node});
    StatusOr<std::unique_ptr<txn::Session>> session = database.OpenSession();
    if (!session.ok()) return session.status();
    txn::BulkLoader loader(session->get(), &TableOf(database, table));
    for (uint64_t key = 0; key < kLoadRows; ++key) {
      if (NodeOfLoadRow(key, options_.nodes) != node) continue;
      GANNET_RETURN_IF_ERROR(loader.Add(key, LoadRow{.load = load}));
    }
    GANNET_RETURN_IF_ERROR(loader.Finish());
    loads_[table][node].store(load);
    return absl::OkStatus();
  }

  Status Save(std::span<txn::Database* const> databases, std::vector<Message>* unsaved) const {
    if (unsaved->empty()) return absl::OkStatus();
    for (txn::Database* database : databases) GANNET_RETURN_IF_ERROR(database->Checkpoint());
    pipe_->SendAll(*unsaved);
    unsaved->clear();
    return absl::OkStatus();
  }

  StatusOr<uint64_t> TellTable(txn::Database& database, uint64_t table) {
    std::vector<LoadRow> rows(kLoadRows);
    std::vector<txn::GetRequest> requests;
    GANNET_RETURN_IF_ERROR(database.Run([&](txn::BlockingTransaction& t) {
      requests.clear();
      for (uint64_t key = 0; key < kLoadRows; ++key) {
        requests.push_back(txn::GetRequest::Of(TableOf(database, table), key, &rows[key]));
      }
      return t.GetMany(requests);
    }));
    std::vector<Message> messages;
    for (uint64_t key = 0; key < kLoadRows; ++key) {
      if (absl::IsNotFound(requests[key].status)) continue;
      GANNET_RETURN_IF_ERROR(requests[key].status);
      loads_[table][NodeOfLoadRow(key, options_.nodes)].store(rows[key].load);
      messages.push_back({.kind = MessageKind::kRow,
                          .worker = WorkerOfLoadRow(key, options_.workers()),
                          .a = table,
                          .b = key,
                          .c = rows[key].content()});
    }
    pipe_->SendAll(messages);
    return messages.size();
  }

  Target Draw(Random& random, uint32_t worker) const {
    for (int tries = 0; tries < 50; ++tries) {
      const Target target{.table = random.Below(kLoadTables), .key = random.Below(kLoadRows)};
      const uint32_t load = loads_[target.table][NodeOfLoadRow(target.key, options_.nodes)].load();
      if (load == 0 || WorkerOfLoadRow(target.key, options_.workers()) != worker) continue;
      return {.table = target.table, .key = target.key, .load = load};
    }
    return {};
  }

  coro::Task<Status> Apply(txn::Transaction& t, uint32_t worker, uint64_t number, const Target* target) const {
    if (target->load != 0) {
      LoadRow row;
      const txn::Table& table = TableOf(t.session().database(), target->table);
      const StatusOr<txn::RecordHandle> handle = co_await t.GetForUpdate(table, target->key, &row);
      if (!handle.ok()) co_return handle.status();
      row.number = static_cast<uint32_t>(number);
      const Status updated = t.Update(*handle, row);
      if (!updated.ok()) co_return updated;
    }
    co_return co_await counters_.Set(t, worker, number);
  }

  const CrashOptions options_;
  const uint64_t cycle_;
  const MessagePipe* pipe_;
  Counters counters_;
  // The load that is there, by table and node; 0 if none.
  std::array<std::array<std::atomic<uint32_t>, kMostNodes>, kLoadTables> loads_{};
};

}  // namespace

std::unique_ptr<Workload> MakeLoadWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe) {
  return std::make_unique<LoadWorkload>(options, cycle, pipe);
}

}  // namespace gannet::scenario::crash
