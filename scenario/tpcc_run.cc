// TPC-C in a scenario, with a small population.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma/base/random.h"
#include "rdma/base/thread.h"
#include "scenario/cluster.h"
#include "scenario/run.h"
#include "tpcc/consistency.h"
#include "tpcc/driver.h"
#include "tpcc/loader.h"
#include "tpcc/schema.h"

namespace gannet::scenario {
namespace {

constexpr tpcc::Scale kScale = {.items = 100, .customers_per_district = 30};

class TpccRun {
 public:
  TpccRun(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn, ScenarioReport* report)
      : simulation_(simulation),
        drawn_(drawn),
        report_(report),
        schema_{.warehouses = static_cast<uint32_t>(drawn.nodes), .scale = kScale},
        cluster_(simulation, &drawn,
                 [this](txn::Database& database) { return tpcc::Tables::Create(database, schema_).status(); }) {}

  Status Execute() {
    GANNET_RETURN_IF_ERROR(Start());
    GANNET_RETURN_IF_ERROR(tpcc::Load(nodes_, tables_, {.threads = 1, .seed = drawn_.seed}, nullptr));
    if (drawn_.durability != "none") {
      GANNET_RETURN_IF_ERROR(
          cluster_.OnEachNode("checkpoint", [this](int node) { return cluster_.database(node).Checkpoint(); }));
    }
    const auto pieces = static_cast<uint64_t>(drawn_.power_cuts) + 1;
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      simulation_->SetFaults(*drawn_.faults);
      if (piece + 1 < pieces) {
        RunUntilPowerCut(drawn_.faulty_nanos / pieces);
        simulation_->SetFaults({});
        GANNET_RETURN_IF_ERROR(Start());
        GANNET_RETURN_IF_ERROR(CheckConditions());
      } else {
        GANNET_RETURN_IF_ERROR(RunFor(drawn_.faulty_nanos / pieces).status());
      }
    }
    simulation_->SetFaults({});
    cluster_.fabric().MendAll();
    StatusOr<uint64_t> committed = RunFor(drawn_.settle_nanos / 4);
    GANNET_RETURN_IF_ERROR(committed.status());
    if (*committed == 0) return absl::DeadlineExceededError("no progress: nothing committed after the faults stopped");
    GANNET_RETURN_IF_ERROR(CheckConditions());
    GANNET_RETURN_IF_ERROR(cluster_.CheckStructures());
    GANNET_RETURN_IF_ERROR(cluster_.Close());
    report_->passed = true;
    report_->verdict = "the twelve conditions hold";
    return absl::OkStatus();
  }

 private:
  Status Start() {
    GANNET_RETURN_IF_ERROR(cluster_.Start());
    nodes_.clear();
    tables_.clear();
    for (int node = 0; node < drawn_.nodes; ++node) {
      nodes_.push_back(&cluster_.database(node));
      StatusOr<tpcc::Tables> tables = tpcc::Tables::Find(*nodes_.back(), schema_);
      if (!tables.ok()) return tables.status();
      tables_.push_back(*tables);
    }
    return absl::OkStatus();
  }

  // Transactions that committed.
  StatusOr<uint64_t> RunFor(uint64_t nanos) {
    tpcc::RunOptions options;
    options.threads = drawn_.nodes * drawn_.workers_per_node;
    options.coroutines = drawn_.coroutines;
    options.warmup = absl::ZeroDuration();
    options.duration = absl::Nanoseconds(static_cast<int64_t>(nanos));
    options.seed = Mix64(drawn_.seed + ++runs_) >> 1;
    options.load_seed = drawn_.seed;
    StatusOr<tpcc::RunReport> run = tpcc::RunBenchmark(nodes_, tables_, options, nullptr);
    if (!run.ok()) return run.status();
    uint64_t committed = 0;
    for (const tpcc::ProcedureReport& procedure : run->procedures) {
      committed += procedure.committed;
      report_->aborts += procedure.aborted;
    }
    report_->committed += committed;
    return committed;
  }

  void RunUntilPowerCut(uint64_t nanos) {
    // Dies with node 0; what it holds is leaked.
    simulation_->StartOn(0, "driver", [this] { RunFor(UINT32_MAX).status().IgnoreError(); });
    SleepForNanos(nanos / 2 + simulation_->random().Below(nanos));
    cluster_.CutPower();
    ++report_->power_cuts;
  }

  Status CheckConditions() {
    StatusOr<std::vector<tpcc::ConditionResult>> results = tpcc::CheckConsistency(nodes_, tables_);
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
  tpcc::SchemaOptions schema_;
  Cluster cluster_;
  std::vector<txn::Database*> nodes_;
  std::vector<tpcc::Tables> tables_;
  uint64_t runs_ = 0;
};

}  // namespace

Status RunTpcc(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn, ScenarioReport* report) {
  auto run = std::make_unique<TpccRun>(simulation, drawn, report);
  Status status = run->Execute();
  if (!status.ok()) static_cast<void>(run.release());
  return status;
}

}  // namespace gannet::scenario
