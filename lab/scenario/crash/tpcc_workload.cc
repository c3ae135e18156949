// NewOrder, Payment and Delivery on small tables. An acknowledged NewOrder must be there, in a sequence without gaps,
// and the twelve conditions must hold.
#include <vector>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "lab/scenario/crash/acknowledgements.h"
#include "lab/scenario/crash/tables.h"
#include "lab/scenario/crash/workload.h"
#include "tpcc/consistency.h"
#include "tpcc/loader.h"
#include "tpcc/terminal.h"

namespace gannet::scenario::crash {
namespace {

constexpr tpcc::SchemaOptions kSchema = {.warehouses = kTpccWarehouses,
                                         .scale = {.items = 300, .customers_per_district = 30}};
constexpr uint32_t kPaymentsPerCycle = 100'000;

uint32_t WorkerOf(uint32_t w, uint32_t d) {
  return (w - 1) * tpcc::kDistricts + d - 1;
}

class TpccWorkload final : public Workload {
 public:
  TpccWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe)
      : options_(options),
        cycle_(cycle),
        pipe_(pipe),
        non_uniform_(tpcc::NonUniform::ForRun(options.seed, tpcc::NonUniform::ForLoad(options.seed))) {}

  Status CreateTables(txn::Database& database) override {
    tpcc::SchemaOptions schema = kSchema;
    schema.ordered_index = options_.ordered_index;
    const StatusOr<tpcc::Tables> tables = tpcc::Tables::Create(database, schema);
    if (tables.ok()) tables_.push_back(*tables);
    return tables.status();
  }

  Status Prepare(std::span<txn::Database* const> databases) override {
    if (loaded_) return absl::OkStatus();
    GANNET_RETURN_IF_ERROR(tpcc::Load(databases, tables_, {.threads = 1, .seed = options_.seed, .date = 1}, nullptr));
    for (txn::Database* database : databases) GANNET_RETURN_IF_ERROR(database->Checkpoint());
    loaded_ = true;
    return absl::OkStatus();
  }

  Status TellState(std::span<txn::Database* const> databases) override {
    loaded_ = databases[0]->recovery().checkpoint_id != 0;
    if (loaded_) {
      GANNET_RETURN_IF_ERROR(CheckConditions(databases));
      for (uint32_t w = 1; w <= kTpccWarehouses; ++w) {
        for (uint32_t d = 1; d <= tpcc::kDistricts; ++d) GANNET_RETURN_IF_ERROR(TellDistrict(*databases[0], w, d));
      }
    }
    pipe_->Send({.kind = MessageKind::kStateEnd});
    return absl::OkStatus();
  }

  coro::Task<Status> Work(txn::Session* session, uint32_t worker) override {
    const tpcc::Tables& tables = tables_[session->database().node_id()];
    tpcc::InputSource source{.random = Random(Mix64(options_.seed + cycle_) ^ worker),
                             .non_uniform = non_uniform_,
                             .scale = kSchema.scale,
                             .warehouses = kTpccWarehouses,
                             .now = 1};
    tpcc::Office office(source.warehouses);
    office.numbers = {.worker = tpcc::kFirstWorker + worker,
                      .next = static_cast<uint32_t>(cycle_) * kPaymentsPerCycle + 1};
    const auto terminal = std::make_unique<tpcc::Terminal>(session, &tables, source, &office);
    const auto order = std::make_unique<Order>();
    Acknowledgements acknowledgements(&session->database(), options_.mode, pipe_);
    Status status;
    while (status.ok() || tpcc::IsRolledBack(status)) {
      const auto w = static_cast<uint32_t>(source.random.Between(1, kTpccWarehouses));
      const uint64_t draw = source.random.Below(10);
      if (draw < 5) {
        order->input = tpcc::MakeNewOrderInput(source, w);
        status = co_await RunOrder(session, &tables, order.get(), &acknowledgements);
      } else {
        txn::RunOutcome outcome;
        const auto procedure = draw < 9 ? tpcc::Procedure::kPayment : tpcc::Procedure::kDelivery;
        terminal->Draw(procedure, w, 1);
        status = co_await terminal->Run(procedure, &outcome);
      }
      co_await session->worker().Yield();
    }
    co_return status;
  }

  coro::Task<Status> Observe(txn::Session*, uint64_t) override { co_return absl::OkStatus(); }

 private:
  struct Order {
    tpcc::NewOrderInput input;
    tpcc::NewOrderScratch scratch;
    tpcc::NewOrderOutput output;
  };

  static coro::Task<Status> RunOrder(txn::Session* session, const tpcc::Tables* tables, Order* order,
                                     Acknowledgements* acknowledgements) {
    const auto body = [tables, order](txn::Transaction& t) {
      return tpcc::NewOrder(t, *tables, order->input, order->scratch, &order->output);
    };
    const Status status = co_await session->Run(body);
    if (status.ok()) acknowledgements->Add(WorkerOf(order->input.w, order->input.d), order->output.o_id);
    co_return status;
  }

  Status CheckConditions(std::span<txn::Database* const> databases) const {
    const auto conditions = tpcc::CheckConsistency(databases, tables_);
    if (!conditions.ok()) return conditions.status();
    for (const tpcc::ConditionResult& condition : *conditions) {
      if (condition.holds) continue;
      return absl::DataLossError(
          absl::StrFormat("TPC-C condition %d does not hold: %s", condition.condition, condition.detail));
    }
    return absl::OkStatus();
  }

  Status TellDistrict(txn::Database& database, uint32_t w, uint32_t d) const {
    tpcc::District district;
    txn::ScanRows rows;
    const auto read = [&](txn::BlockingTransaction& t) -> Status {
      GANNET_RETURN_IF_ERROR(t.Get(*tables_[0].district, tpcc::DistrictKey(w, d), &district));
      return t.Scan(*tables_[0].order, {.from = tpcc::OrderKey(w, d, 0), .to = tpcc::OrderKey(w, d, tpcc::kMaxOrderId)},
                    &rows, {.keys_only = true});
    };
    GANNET_RETURN_IF_ERROR(database.Run(read));
    const uint32_t orders = district.next_o_id - 1;
    if (rows.size() != orders) {
      return absl::DataLossError(
          absl::StrFormat("district %d of warehouse %d has given out %d order numbers, but has %d "
                          "orders",
                          d, w, orders, rows.size()));
    }
    pipe_->Send({.kind = MessageKind::kCounter, .worker = WorkerOf(w, d), .number = orders});
    return absl::OkStatus();
  }

  const CrashOptions options_;
  const uint64_t cycle_;
  const MessagePipe* pipe_;
  const tpcc::NonUniform non_uniform_;
  std::vector<tpcc::Tables> tables_;  // by node
  bool loaded_ = false;
};

}  // namespace

std::unique_ptr<Workload> MakeTpccWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe) {
  return std::make_unique<TpccWorkload>(options, cycle, pipe);
}

}  // namespace gannet::scenario::crash
