// TPC-C in a scenario, with a small population.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/stop.h"
#include "base/thread.h"
#include "index/registry.h"
#include "lab/scenario/abandon.h"
#include "lab/scenario/cluster.h"
#include "lab/scenario/run.h"
#include "tpcc/consistency.h"
#include "tpcc/driver.h"
#include "tpcc/loader.h"
#include "tpcc/schema/schema.h"

namespace gannet::scenario {
namespace {

constexpr tpcc::Scale kScale = {.items = 100, .customers_per_district = 30};
constexpr uint64_t kUntilKilled = UINT32_MAX;
constexpr uint64_t kSoundNanos = 2'000'000;  // after the faults; repeated until something has been committed
// Worker numbers (driver.h) used by one set of terminals. The owners use the first set; a client that takes the place
// of a dead one uses another set.
constexpr uint32_t kWorkerNumbers = 16;
constexpr uint32_t kSetsOfNumbers = tpcc::kLastWorker / kWorkerNumbers;

// The terminals of a node, for some time. Their driver is a thread of that node: if the node dies, they are not
// destroyed.
struct Terminals {
  txn::Database* node = nullptr;
  tpcc::Tables tables;
  tpcc::RunOptions options;
  Runtime::Thread* thread = nullptr;
  Status status;
  uint64_t committed = 0;
  uint64_t aborts = 0;

  void Run() {
    const StatusOr<tpcc::RunReport> run = tpcc::RunBenchmark({&node, 1}, {&tables, 1}, options, nullptr);
    status = run.status();
    if (!run.ok()) return;
    for (const tpcc::ProcedureReport& procedure : run->procedures) {
      committed += procedure.committed;
      aborts += procedure.aborted;
    }
  }
};

class TpccRun {
 public:
  TpccRun(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn, ScenarioReport* report)
      : simulation_(simulation),
        drawn_(drawn),
        report_(report),
        owners_(drawn.nodes - (*drawn.client ? 1 : 0)),
        schema_{.warehouses = static_cast<uint32_t>(owners_),
                .scale = kScale,
                .ordered_index = *index::IndexKindOf(drawn.ordered_index),
                .index_rights = *index::IndexRightsOf(drawn.index_rights)},
        cluster_(simulation, &drawn,
                 [this](txn::Database& database) { return tpcc::Tables::Create(database, schema_).status(); }) {}

  Status Execute() {
    GANNET_RETURN_IF_ERROR(Start());
    GANNET_RETURN_IF_ERROR(tpcc::Load(nodes_, tables_, {.threads = 1, .seed = drawn_.seed}, nullptr));
    if (drawn_.durability != "none") {
      GANNET_RETURN_IF_ERROR(
          cluster_.OnEachNode("checkpoint", [this](int node) { return cluster_.database(node).Checkpoint(); }));
    }
    GANNET_RETURN_IF_ERROR(RunFaultyPhase());
    cluster_.StopFaults();
    GANNET_RETURN_IF_ERROR(RunSoundPhase());
    GANNET_RETURN_IF_ERROR(Check());
    GANNET_RETURN_IF_ERROR(cluster_.Close());
    report_->passed = true;
    report_->verdict = "the twelve conditions hold";
    return absl::OkStatus();
  }

 private:
  Status RunFaultyPhase() {
    const std::vector<Interruption> interruptions = InterruptionsOf(drawn_);
    const uint64_t nanos = drawn_.faulty_nanos / (interruptions.size() + 1);
    simulation_->SetFaults(*drawn_.faults);
    for (const Interruption interruption : interruptions) {
      switch (interruption) {
        case Interruption::kPowerCut:
          GANNET_RETURN_IF_ERROR(RunUntilPowerCut(nanos));
          ++report_->power_cuts;
          break;
        case Interruption::kDeath:
          GANNET_RETURN_IF_ERROR(*drawn_.client ? RunWithDeathOfClient(nanos) : RunUntilDeath(nanos));
          ++report_->deaths;
          break;
        case Interruption::kCheck:
          GANNET_RETURN_IF_ERROR(RunFor(nanos).status());
          cluster_.StopFaults();
          GANNET_RETURN_IF_ERROR(Check());
          ++report_->checks;
          break;
      }
      simulation_->SetFaults(*drawn_.faults);
    }
    return RunFor(nanos).status();
  }

  Status RunSoundPhase() {
    const uint64_t until = simulation_->now() + drawn_.settle_nanos;
    while (true) {
      const StatusOr<uint64_t> committed = RunFor(kSoundNanos);
      if (!committed.ok()) return committed.status();
      if (*committed > 0) return absl::OkStatus();
      if (simulation_->now() >= until) {
        return absl::DeadlineExceededError("no progress: nothing committed after the faults stopped");
      }
    }
  }

  Status Start() {
    GANNET_RETURN_IF_ERROR(cluster_.Start());
    nodes_.assign(static_cast<size_t>(drawn_.nodes), nullptr);
    tables_.assign(static_cast<size_t>(drawn_.nodes), {});
    for (int node = 0; node < drawn_.nodes; ++node) GANNET_RETURN_IF_ERROR(Find(node));
    return absl::OkStatus();
  }

  Status Find(int node) {
    const auto n = static_cast<size_t>(node);
    nodes_[n] = &cluster_.database(node);
    StatusOr<tpcc::Tables> tables = tpcc::Tables::Find(*nodes_[n], schema_);
    if (tables.ok()) tables_[n] = *tables;
    return tables.status();
  }

  // Runs the terminals of `node` for `nanos`. They are leaked if the node dies.
  Terminals* StartTerminals(int node, uint64_t nanos) {
    auto* terminals = new Terminals;
    terminals->node = nodes_[static_cast<size_t>(node)];
    terminals->tables = tables_[static_cast<size_t>(node)];
    tpcc::RunOptions& options = terminals->options;
    options.threads = drawn_.workers_per_node;
    if (node >= owners_) {
      options.first_worker = tpcc::kFirstWorker + kWorkerNumbers * (1 + clients_++ % (kSetsOfNumbers - 1));
    }
    options.coroutines = drawn_.coroutines;
    options.warmup = absl::ZeroDuration();
    options.duration = absl::Nanoseconds(static_cast<int64_t>(nanos));
    options.seed = Mix64(drawn_.seed + ++runs_) >> 1;
    options.load_seed = drawn_.seed;
    options.stop = drawn_.stop;
    terminals->thread =
        simulation_->StartOn(static_cast<rdma::NodeId>(node), "driver", [terminals] { terminals->Run(); });
    return terminals;
  }

  // Starts the terminals of nodes [0, end).
  std::vector<Terminals*> StartFirst(int end, uint64_t nanos) {
    std::vector<Terminals*> result;
    for (int node = 0; node < end; ++node) result.push_back(StartTerminals(node, nanos));
    return result;
  }

  // Waits for their end; returns the number of committed transactions.
  StatusOr<uint64_t> Join(Terminals* terminals) {
    simulation_->Join(terminals->thread);
    const std::unique_ptr<Terminals> done(terminals);
    GANNET_RETURN_IF_ERROR(done->status);
    report_->committed += done->committed;
    report_->aborts += done->aborts;
    return done->committed;
  }

  StatusOr<uint64_t> JoinAll(const std::vector<Terminals*>& all) {
    uint64_t committed = 0;
    Status status;
    for (Terminals* const terminals : all) {
      const StatusOr<uint64_t> by_these = Join(terminals);
      if (by_these.ok()) committed += *by_these;
      status.Update(by_these.status());
    }
    status.Update(CheckStop(drawn_.stop, "terminals ran"));
    if (!status.ok()) return status;
    return committed;
  }

  StatusOr<uint64_t> RunFor(uint64_t nanos) { return JoinAll(StartFirst(drawn_.nodes, nanos)); }

  uint64_t MomentIn(uint64_t nanos) { return nanos / 2 + simulation_->random().Below(nanos); }

  Status RunUntilPowerCut(uint64_t nanos) {
    StartFirst(owners_, kUntilKilled);
    SleepForNanos(MomentIn(nanos));
    cluster_.CutPower();
    return StartAgain();
  }

  // Kills a node of a cluster with a log; then all nodes are started again.
  Status RunUntilDeath(uint64_t nanos) {
    StartFirst(owners_, kUntilKilled);
    SleepForNanos(MomentIn(nanos));
    Kill(static_cast<int>(simulation_->random().Below(static_cast<uint64_t>(drawn_.nodes))));
    SleepForNanos(simulation_->random().Below(5'000'000));
    cluster_.KillAll();
    return StartAgain();
  }

  Status StartAgain() {
    GANNET_RETURN_IF_ERROR(CheckStop(drawn_.stop, "terminals ran"));
    simulation_->SetFaults({});
    GANNET_RETURN_IF_ERROR(Start());
    return CheckConditions();
  }

  // The client node dies in the middle of its transactions, and another takes its place; the owners of the rows
  // continue.
  Status RunWithDeathOfClient(uint64_t nanos) {
    GANNET_RETURN_IF_ERROR(cluster_.AwaitRepair());
    std::vector<Terminals*> all = StartFirst(owners_, 2 * nanos);
    StartTerminals(owners_, kUntilKilled);
    SleepForNanos(MomentIn(nanos));
    Kill(owners_);
    SleepForNanos(simulation_->random().Below(3'000'000));
    GANNET_RETURN_IF_ERROR(RestartClient());
    all.push_back(StartTerminals(owners_, nanos));
    return JoinAll(all).status();
  }

  void Kill(int node) {
    Random& random = simulation_->random();
    cluster_.Kill(node, random.OneIn(4) ? 0 : 1 + random.Below(200));
  }

  // Loads ITEM again, because each node has its own copy.
  Status RestartClient() {
    GANNET_RETURN_IF_ERROR(cluster_.Restart(owners_));
    GANNET_RETURN_IF_ERROR(Find(owners_));
    Status status;
    simulation_->Join(simulation_->StartOn(static_cast<rdma::NodeId>(owners_), "load", [&] {
      status = tpcc::Load(std::span(nodes_).last(1), std::span(tables_).last(1), {.threads = 1, .seed = drawn_.seed},
                          nullptr);
    }));
    return status;
  }

  // Called without faults, and while no transactions run.
  Status Check() {
    GANNET_RETURN_IF_ERROR(cluster_.AwaitRepair());
    GANNET_RETURN_IF_ERROR(CheckConditions());
    return cluster_.CheckStructures();
  }

  Status CheckConditions() {
    const auto owners = static_cast<size_t>(owners_);
    StatusOr<std::vector<tpcc::ConditionResult>> results =
        tpcc::CheckConsistency(std::span(nodes_).first(owners), std::span(tables_).first(owners));
    if (!results.ok()) return results.status();
    for (const tpcc::ConditionResult& result : *results) {
      if (!result.holds) {
        return absl::InternalError(
            absl::StrCat("TPC-C condition ", result.condition, " does not hold: ", result.detail));
      }
    }
    return absl::OkStatus();
  }

  rdma::sim::Simulation* simulation_;
  const ScenarioOptions& drawn_;
  ScenarioReport* report_;
  const int owners_;  // nodes with rows; in a scenario with a client, the node after them has none
  tpcc::SchemaOptions schema_;
  Cluster cluster_;
  std::vector<txn::Database*> nodes_;
  std::vector<tpcc::Tables> tables_;
  uint64_t runs_ = 0;
  uint32_t clients_ = 0;
};

}  // namespace

Status RunTpcc(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn, ScenarioReport* report) {
  auto run = std::make_unique<TpccRun>(simulation, drawn, report);
  Status status = run->Execute();
  if (!status.ok()) Abandon(std::move(run));  // its threads may still refer to it
  return status;
}

}  // namespace gannet::scenario
