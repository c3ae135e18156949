// Round trips of a transaction like TPC-C's NewOrder, all of whose rows are at another node: inserts by verbs take no
// more of them than inserts by calls, whether leaves have room or are split on the way.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "index/registry.h"
#include "tests/txn/cluster.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"
#include "txn/bulk_loader.h"

namespace gannet::txn {
namespace insert_rounds_test {

constexpr uint64_t kDistricts = 4;
constexpr uint64_t kLines = 10;
constexpr uint64_t kLoaded = 40;  // orders of each district
constexpr std::array kOrderTables = {"order", "new_order", "order_by_customer"};

struct Setup {
  IndexKind kind;
  bool logged = false;
};

uint64_t OrderKey(uint64_t district, uint64_t order) {
  return district << 32 | order;
}
uint64_t LineKey(uint64_t district, uint64_t order, uint64_t line) {
  return OrderKey(district, order) << 4 | line;
}

// Node 0 has the rows; node 1 works.
class Machines {
 public:
  Machines(const Setup& setup, ReadPathPolicy policy) {
    std::vector<TableOptions> tables{
        {.name = "warehouse", .payload_bytes = sizeof(uint64_t), .placement = Placement::OnFirstNode()},
        {.name = "district", .payload_bytes = sizeof(uint64_t), .placement = Placement::OnFirstNode()}};
    for (const char* const name : {"order_line", "order", "new_order", "order_by_customer"}) {
      tables.push_back({.name = name,
                        .index = setup.kind,
                        .payload_bytes = sizeof(uint64_t),
                        .expected_rows = 10'000,
                        .placement = Placement::OnFirstNode()});
    }
    if (setup.logged) {
      auto opened = DurableCluster::Open(
          NewDisk(), tables, {.nodes = 2, .database = {.read_path = policy, .durability = DurabilityMode::kAsync}});
      EXPECT_TRUE(opened.ok()) << opened.status();
      durable_ = *std::move(opened);
      for (const int node : {0, 1}) own_sessions_.push_back(*durable_->database(node).OpenSession());
    } else {
      plain_ = std::make_unique<Cluster>(ClusterOptions{.nodes = 2, .read_path = policy}, tables);
      for (const int node : {0, 1}) sessions_.push_back(&plain_->NewSession(node));
    }
    for (const auto& session : own_sessions_) sessions_.push_back(session.get());
    Load();
    // Changes of what was loaded are not logged before.
    if (durable_ != nullptr) {
      EXPECT_TRUE(durable_->database(0).Checkpoint().ok());
    }
  }

  Session& session(int node) { return *sessions_[static_cast<size_t>(node)]; }
  const Table& table(const std::string& name, int node) {
    return durable_ != nullptr ? durable_->table(name, node) : plain_->table(node, name);
  }

  // What the commit of one order takes.
  struct Taken {
    rdma::VerbCounters verbs;
    bool by_verbs = false;  // its inserts
  };
  Taken NewOrder(uint64_t district, uint64_t order) {
    Session& client = session(1);
    Step step(client);
    uint64_t tax = 0;
    uint64_t next = 0;
    EXPECT_TRUE(step->Get(table("warehouse", 1), uint64_t{0}, &tax).ok());  // makes a validation necessary
    const StatusOr<RecordHandle> handle = step->GetForUpdate(table("district", 1), district, &next);
    EXPECT_TRUE(handle.ok()) << handle.status();
    EXPECT_EQ(next, order);
    EXPECT_TRUE(step->Update(*handle, next + 1).ok());
    for (uint64_t line = 0; line < kLines; ++line) {
      EXPECT_TRUE(step->Insert(table("order_line", 1), LineKey(district, order, line), order).ok());
    }
    for (const char* const name : kOrderTables) {
      EXPECT_TRUE(step->Insert(table(name, 1), OrderKey(district, order), order).ok());
    }
    const uint64_t called = InsertsByCalls();
    const rdma::VerbCounters before = client.channel().counters();
    const Status committed = step.Commit();
    EXPECT_TRUE(committed.ok()) << committed;
    return {client.channel().counters() - before, InsertsByCalls() == called};
  }

  uint64_t LeavesOfLines() { return table("order_line", 0).local_index().statistics().nodes; }

  void ExpectRows(uint64_t orders) {
    for (const char* const name : {"order_line", "order", "new_order", "order_by_customer"}) {
      index::LocalIndex& index = table(name, 0).local_index();
      const uint64_t each = name == std::string("order_line") ? kLines : 1;
      EXPECT_EQ(index.statistics().keys, kDistricts * orders * each) << name;
      const Status structure = index.CheckStructure();
      EXPECT_TRUE(structure.ok()) << name << ": " << structure;
    }
  }

 private:
  uint64_t InsertsByCalls() {
    uint64_t calls = 0;
    for (const TablePaths& paths : session(1).path_statistics()) {
      if (paths.kind == AccessKind::kInsert) calls += paths.paths.calls;
    }
    return calls;
  }
  void Load() {
    BulkLoader warehouses(&session(0), &table("warehouse", 0));
    ASSERT_TRUE(warehouses.Add(uint64_t{0}, uint64_t{7}).ok());
    ASSERT_TRUE(warehouses.Finish().ok());
    BulkLoader districts(&session(0), &table("district", 0));
    for (uint64_t district = 0; district < kDistricts; ++district) ASSERT_TRUE(districts.Add(district, kLoaded).ok());
    ASSERT_TRUE(districts.Finish().ok());
    for (const char* const name : {"order_line", "order", "new_order", "order_by_customer"}) {
      BulkLoader loader(&session(0), &table(name, 0));
      const bool lines = name == std::string("order_line");
      for (uint64_t district = 0; district < kDistricts; ++district) {
        for (uint64_t order = 0; order < kLoaded; ++order) {
          for (uint64_t line = 0; line < (lines ? kLines : 1); ++line) {
            const uint64_t key = lines ? LineKey(district, order, line) : OrderKey(district, order);
            ASSERT_TRUE(loader.Add(key, order).ok());
          }
        }
      }
      ASSERT_TRUE(loader.Finish().ok());
    }
  }

  std::unique_ptr<DurableCluster> durable_;
  std::unique_ptr<Cluster> plain_;
  std::vector<std::unique_ptr<Session>> own_sessions_;
  std::vector<Session*> sessions_;
};

class InsertRoundsTest : public testing::TestWithParam<Setup> {};
INSTANTIATE_TEST_SUITE_P(Kinds, InsertRoundsTest,
                         testing::Values(Setup{IndexKind::kBlink}, Setup{IndexKind::kRolex}, Setup{IndexKind::kDex},
                                         Setup{IndexKind::kDolphin}, Setup{IndexKind::kBlink, true},
                                         Setup{IndexKind::kRolex, true}, Setup{IndexKind::kDex, true},
                                         Setup{IndexKind::kDolphin, true}),
                         [](const auto& instance) {
                           return index::EntryOf(instance.param.kind).name + (instance.param.logged ? "_logged" : "");
                         });

// A leaf of order lines is full at about every second order.
TEST_P(InsertRoundsTest, VerbsTakeNoMoreThanCalls) {
  constexpr uint64_t kOrders = 48;  // of each district
  std::vector<Machines::Taken> by_call;
  std::vector<Machines::Taken> by_verbs;
  uint64_t new_leaves = 0;
  for (const ReadPathPolicy policy : {ReadPathPolicy::kCall, ReadPathPolicy::kOneSided}) {
    Machines machines(GetParam(), policy);
    const uint64_t leaves = machines.LeavesOfLines();
    for (uint64_t order = kLoaded; order < kLoaded + kOrders; ++order) {
      for (uint64_t district = 0; district < kDistricts; ++district) {
        const Machines::Taken taken = machines.NewOrder(district, order);
        // The first ones connect, and find the caches empty.
        if (order > kLoaded) (policy == ReadPathPolicy::kCall ? by_call : by_verbs).push_back(taken);
      }
    }
    machines.ExpectRows(kLoaded + kOrders);
    new_leaves = machines.LeavesOfLines() - leaves;
  }
  const rdma::VerbCounters& call = by_call[0].verbs;
  uint64_t borrowed = 0;
  uint64_t called = 0;
  uint64_t dearer = 0;
  for (size_t i = 0; i < by_verbs.size(); ++i) {
    EXPECT_FALSE(by_call[i].by_verbs);
    EXPECT_EQ(by_call[i].verbs.round_trips, call.round_trips);
    called += by_verbs[i].by_verbs ? 0 : 1;
    // Blocks are borrowed by the hundred, before the transaction locks anything.
    const uint64_t calls = by_verbs[i].verbs.calls - (by_verbs[i].by_verbs ? call.calls - 1 : call.calls);
    borrowed += calls;
    dearer += by_verbs[i].verbs.round_trips - calls > call.round_trips ? 1 : 0;
  }
  EXPECT_LE(borrowed, by_verbs.size() / 6);
  EXPECT_GT(new_leaves, by_verbs.size() / 4);
  if (GetParam().kind == IndexKind::kRolex) {
    EXPECT_EQ(called, 0u);
    EXPECT_EQ(dearer, 0u);
  } else {
    // Where an inner node is full, the owner splits it, and the client READs it again.
    EXPECT_LE(called, by_verbs.size() / 10);
    // A radix tree needs a new inner node more often than a B-link tree; it goes out behind the change.
    EXPECT_LE(dearer, by_verbs.size() / (GetParam().kind == IndexKind::kDolphin ? 5 : 8));
  }
  RecordProperty("called", static_cast<int>(called));
  RecordProperty("dearer", static_cast<int>(dearer));
}

}  // namespace insert_rounds_test
}  // namespace gannet::txn
