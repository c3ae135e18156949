// Concurrent runs of the mix leave the database consistent.
#include "tpcc/driver.h"

#include <memory>
#include <set>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "index/registry.h"
#include "log/file/simulated/faulty_file_system.h"
#include "tests/tpcc/small_tpcc.h"

namespace gannet::tpcc {
namespace driver_test {

RunOptions ShortRun() {
  RunOptions options;
  options.threads = 2;
  options.warmup = absl::Milliseconds(100);
  options.duration = absl::Milliseconds(400);
  options.interval = absl::Milliseconds(100);
  return options;
}

// On a busy machine the workers may not run for seconds: the run is repeated, longer, until `enough` is true.
template <class Enough>
StatusOr<RunReport> RunUntil(std::span<txn::Database* const> nodes, std::span<const Tables> tables, RunOptions options,
                             const RunProgress& progress, const Enough& enough) {
  constexpr int kDoublings = 5;
  for (int i = 0;; ++i) {
    StatusOr<RunReport> report = RunBenchmark(nodes, tables, options, progress);
    if (!report.ok() || enough(*report) || i == kDoublings) return report;
    options.duration *= 2;
  }
}

uint64_t TotalOrders(SmallTpcc& small, uint32_t warehouses) {
  uint64_t orders = 0;
  for (uint32_t w = 1; w <= warehouses; ++w) {
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      orders += small.Read<District>(small.table().district, DistrictKey(w, d))->next_o_id - 1;
    }
  }
  return orders;
}

struct Setup {
  int nodes;
  int coroutines;
  bool adversarial;
  txn::IndexKind ordered = txn::IndexKind::kXStore;
  std::optional<txn::IndexRights> rights = {};
};

class DriverTest : public ::testing::TestWithParam<Setup> {};
INSTANTIATE_TEST_SUITE_P(
    Setups, DriverTest,
    ::testing::Values(Setup{1, 1, false}, Setup{1, 4, false}, Setup{2, 1, false}, Setup{2, 4, false}, Setup{2, 2, true},
                      Setup{2, 2, true, txn::IndexKind::kBlink}, Setup{1, 4, false, txn::IndexKind::kRolex},
                      Setup{2, 2, true, txn::IndexKind::kRolex}, Setup{1, 4, false, txn::IndexKind::kDex},
                      Setup{2, 2, true, txn::IndexKind::kDex}, Setup{1, 4, false, txn::IndexKind::kDolphin},
                      Setup{2, 2, true, txn::IndexKind::kDolphin},
                      Setup{2, 2, true, txn::IndexKind::kBlink, txn::IndexRights::kOwnerOnly},
                      Setup{2, 4, false, txn::IndexKind::kRolex, txn::IndexRights::kOwnerOnly}),
    [](const auto& instance) {
      return std::to_string(instance.param.nodes) + "Nodes" + std::to_string(instance.param.coroutines) + "Coroutines" +
             (instance.param.adversarial ? "Adversarial_" : "_") + index::EntryOf(instance.param.ordered).name +
             (instance.param.rights == txn::IndexRights::kOwnerOnly ? "_of_owner" : "");
    });

TEST(DriverClientTest, NodesWithoutWarehousesWorkOnThoseOfOthers) {
  auto small = SmallTpcc::Make(
      {.nodes = 3, .data_nodes = 1, .warehouses = 2, .scale = {.items = 1000, .customers_per_district = 100}});
  ASSERT_NE(small, nullptr);
  const uint64_t orders_before = TotalOrders(*small, 2);
  RunOptions options = ShortRun();
  options.threads = 5;
  options.coroutines = 2;
  const StatusOr<RunReport> report = RunUntil(small->nodes().subspan(1), small->tables().subspan(1), options, nullptr,
                                              [&](const RunReport&) { return TotalOrders(*small, 2) > orders_before; });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(TotalOrders(*small, 2), orders_before);
  EXPECT_EQ(small->FailingConditions(), std::set<int>{});
  EXPECT_TRUE(absl::IsInvalidArgument(RunBenchmark(small->nodes(), small->tables(), options, nullptr).status()));
}

TEST_P(DriverTest, MixKeepsTheDatabaseConsistent) {
  auto small = SmallTpcc::Make({.nodes = GetParam().nodes,
                                .warehouses = 2,
                                .scale = {.items = 1000, .customers_per_district = 100},
                                .ordered_index = GetParam().ordered,
                                .index_rights = GetParam().rights,
                                .adversarial = GetParam().adversarial});
  ASSERT_NE(small, nullptr);
  const uint64_t orders_before = TotalOrders(*small, 2);
  RunOptions options = ShortRun();
  options.coroutines = GetParam().coroutines;
  int intervals = 0;
  const StatusOr<RunReport> report = RunUntil(
      small->nodes(), small->tables(), options, [&](const IntervalReport&) { ++intervals; },
      [](const RunReport& run) {
        return run.of(Procedure::kNewOrder).committed > 0 && run.of(Procedure::kNewOrder).verb_samples > 0 &&
               run.of(Procedure::kPayment).committed > 0;
      });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GE(intervals, 2);
  EXPECT_EQ(report->coroutines, GetParam().coroutines);
  for (const ProcedureReport& procedure : report->procedures) {
    EXPECT_EQ(procedure.p50_us > 0, procedure.committed + procedure.rolled_back > 0);
    EXPECT_LE(procedure.p50_us, procedure.p99_us);
    EXPECT_LE(procedure.p99_us, procedure.max_us);
  }
  double seconds = 0;
  for (const IntervalReport& interval : report->timeline) {
    EXPECT_FALSE(interval.warming_up);
    ASSERT_EQ(interval.kinds.size(), static_cast<size_t>(kProcedures));
    EXPECT_GE(interval.all.operations, interval.kinds[0].operations);
    for (const bench::KindInterval& kind : interval.kinds) {
      EXPECT_EQ(kind.p50_us > 0, kind.operations > 0);
      EXPECT_LE(kind.p50_us, kind.p95_us);
      EXPECT_LE(kind.p95_us, kind.p99_us);
    }
    seconds += interval.seconds;
  }
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds, report->seconds);
  EXPECT_GT(report->of(Procedure::kNewOrder).committed, 0u);
  EXPECT_GT(report->of(Procedure::kPayment).committed, 0u);
  EXPECT_GE(TotalOrders(*small, 2), orders_before + report->of(Procedure::kNewOrder).committed);
  EXPECT_EQ(report->verbs.round_trips > 0, GetParam().nodes > 1) << "verbs are for other nodes only";
  EXPECT_GT(report->of(Procedure::kNewOrder).verb_samples, 0u);
  EXPECT_EQ(small->FailingConditions(), std::set<int>{});
}

// All workers in one warehouse: many conflicts, but the database stays consistent, and rolled-back orders leave no gap.
TEST(DriverContentionTest, FourWorkersOneWarehouse) {
  auto small = SmallTpcc::Make({.warehouses = 1, .scale = {.items = 100, .customers_per_district = 20}});
  ASSERT_NE(small, nullptr);
  RunOptions options = ShortRun();
  options.threads = 4;
  const StatusOr<RunReport> report =
      RunUntil(small->nodes(), small->tables(), options, nullptr,
               [](const RunReport& run) { return run.of(Procedure::kNewOrder).committed > 0; });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->of(Procedure::kNewOrder).committed, 0u);
  EXPECT_EQ(small->FailingConditions(), std::set<int>{});
}

// Hundreds of results wait for the disk while their workers continue; none is counted before it is durable.
TEST(DriverDurableTest, WhatWasCountedSurvivesAPowerCut) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(1);
  SmallTpcc::Options options;
  options.database.directory = "/data";
  options.database.create_if_missing = true;
  options.database.files = disk;
  options.database.log_segment_bytes = uint64_t{4} << 20;
  auto small = SmallTpcc::Make(options);
  ASSERT_NE(small, nullptr);
  const uint64_t orders_before = TotalOrders(*small, 2);
  RunOptions run = ShortRun();
  run.interval = absl::Milliseconds(300);
  run.in_flight = 400;
  struct Cut {
    uint64_t counted;
    std::shared_ptr<log::FaultyFileSystem> disk;
  };
  std::vector<Cut> cuts;
  uint64_t counted = 0;
  const auto cut = [&](const IntervalReport& interval) {
    counted += interval.new_orders;
    cuts.push_back({counted, disk->CrashedCopy(cuts.size() + 1)});
  };
  const StatusOr<RunReport> report = RunUntil(small->nodes(), small->tables(), run, cut, [](const RunReport& done) {
    return done.of(Procedure::kNewOrder).committed > 0;
  });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->of(Procedure::kNewOrder).committed, 0u);
  EXPECT_EQ(report->in_flight, 400);
  small.reset();
  for (const Cut& each : cuts) {
    options.database.files = each.disk;
    options.load = false;
    small = SmallTpcc::Make(options);
    ASSERT_NE(small, nullptr);
    EXPECT_GE(TotalOrders(*small, 2), orders_before + each.counted);
    EXPECT_EQ(small->FailingConditions(), std::set<int>{});
  }
}

// Payments of the second run must not use the keys of the first run.
TEST(DriverRepeatTest, RunsFollowEachOther) {
  auto small = SmallTpcc::Make({});
  ASSERT_NE(small, nullptr);
  RunOptions options = ShortRun();
  options.duration = absl::Milliseconds(200);
  options.mix = {0, 100, 0, 0, 0};
  for (uint64_t run = 1; run <= 3; ++run) {
    options.seed = run;
    options.threads = run == 2 ? 1 : 2;
    const StatusOr<RunReport> report =
        RunUntil(small->nodes(), small->tables(), options, nullptr,
                 [](const RunReport& done) { return done.of(Procedure::kPayment).committed > 0; });
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_GT(report->of(Procedure::kPayment).committed, 0u);
    EXPECT_EQ(report->of(Procedure::kNewOrder).committed, 0u);
  }
  EXPECT_EQ(small->FailingConditions(), std::set<int>{});
}

// Nine orders wait in each of the ten districts of both warehouses.
TEST(DriverDeliveryTest, SkippedDistrictsAreCounted) {
  auto small = SmallTpcc::Make({});
  ASSERT_NE(small, nullptr);
  RunOptions options = ShortRun();
  options.mix = {0, 0, 0, 100, 0};
  const auto enough = [](const RunReport& report) { return report.of(Procedure::kDelivery).committed > 100; };
  const StatusOr<RunReport> report = RunUntil(small->nodes(), small->tables(), options, nullptr, enough);
  ASSERT_TRUE(report.ok()) << report.status();
  const uint64_t deliveries = report->of(Procedure::kDelivery).committed;
  EXPECT_GE(report->skipped_deliveries + 2 * 9, deliveries);
  EXPECT_LE(report->skipped_deliveries, deliveries);
  EXPECT_GE(report->skipped_districts + 2 * 9 * kDistricts, deliveries * kDistricts);
  EXPECT_TRUE(report->many_deliveries_skipped());
}

// Twenty terminals that key in for at least two seconds before each transaction: almost nothing is run, and stopping
// does not wait for terminals that think.
TEST(DriverThinkTimeTest, TerminalsKeyInFirst) {
  auto small = SmallTpcc::Make({});
  ASSERT_NE(small, nullptr);
  RunOptions options = ShortRun();
  options.think_time = true;
  options.duration = absl::Milliseconds(200);
  StatusOr<RunReport> report = RunBenchmark(small->nodes(), small->tables(), options, nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  for (const ProcedureReport& procedure : report->procedures) EXPECT_LE(procedure.committed, 20u);
}

TEST(DriverOptionsTest, BadOptionsAreNamed) {
  auto small = SmallTpcc::Make({.nodes = 2});
  ASSERT_NE(small, nullptr);
  auto run = [&](auto change) {
    RunOptions options = ShortRun();
    change(options);
    return RunBenchmark(small->nodes(), small->tables(), options, nullptr).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(run([](RunOptions& options) { options.threads = 1; })));
  EXPECT_TRUE(absl::IsInvalidArgument(run([](RunOptions& options) { options.threads = 10'000; })));
  EXPECT_TRUE(absl::IsInvalidArgument(run([](RunOptions& options) { options.mix = {50, 50, 1, 0, 0}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(run([](RunOptions& options) { options.mix = {110, -10, 0, 0, 0}; })));
  EXPECT_TRUE(absl::IsInvalidArgument(run([](RunOptions& options) { options.duration = absl::ZeroDuration(); })));
  EXPECT_TRUE(absl::IsInvalidArgument(run([](RunOptions& options) { options.coroutines = -1; })));
  EXPECT_TRUE(absl::IsInvalidArgument(run([](RunOptions& options) {
    options.coroutines = 4;
    options.in_flight = 3;
  })));
}

TEST(DriverOptionsTest, FewInFlightAreFewCoroutines) {
  auto small = SmallTpcc::Make({.nodes = 2, .warehouses = 8});
  ASSERT_NE(small, nullptr);
  RunOptions options = ShortRun();
  options.in_flight = 2;
  const StatusOr<RunReport> report = RunBenchmark(small->nodes(), small->tables(), options, nullptr);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->coroutines, 2);
}

// A transaction that fails ends the run with its error, also in the other workers.
TEST(DriverFailureTest, MissingRowEndsTheRun) {
  auto small = SmallTpcc::Make({.load = false});
  ASSERT_NE(small, nullptr);
  StatusOr<RunReport> report = RunBenchmark(small->nodes(), small->tables(), ShortRun(), nullptr);
  EXPECT_FALSE(report.ok());
}

}  // namespace driver_test
}  // namespace gannet::tpcc
