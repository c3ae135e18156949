// Nodes that own no rows: the fabrics they run on, which rows they see, and that no other node waits for them.
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/cluster.h"
#include "txn/bulk_loader.h"

namespace gannet::txn {
namespace data_nodes_test {

const std::vector<TableOptions> kTables = {
    {.name = "spread", .payload_bytes = sizeof(Account), .placement = Placement::ByHash()},
    {.name = "first", .index = IndexKind::kXStore, .payload_bytes = sizeof(Account)},
    {.name = "copied", .payload_bytes = sizeof(Account), .placement = Placement::Replicated()}};

std::unique_ptr<Database> OpenNode(rdma::Fabric* fabric, int node, int data_nodes) {
  auto database = Database::Open(fabric, static_cast<rdma::NodeId>(node), {.data_nodes = data_nodes});
  EXPECT_TRUE(database.ok()) << database.status();
  for (const TableOptions& table : kTables) EXPECT_TRUE((*database)->CreateTable(table).ok());
  return *std::move(database);
}

Status Put(Database& database, const std::string& table, uint64_t key, int64_t balance) {
  return database.Run(
      [&](BlockingTransaction& t) { return t.Insert(*database.FindTable(table), key, Account{.balance = balance}); });
}

StatusOr<int64_t> BalanceOf(Database& database, const std::string& table, uint64_t key) {
  Account account;
  Status status =
      database.Run([&](BlockingTransaction& t) { return t.Get(*database.FindTable(table), key, &account); });
  if (!status.ok()) return status;
  return account.balance;
}

TEST(DataNodesTest, ClientsOwnNothingAndComeAndGo) {
  auto fabric = *rdma::ShmFabric::InProcess({.num_nodes = 4, .bytes_per_node = uint64_t{64} << 20});
  for (const int data_nodes : {1, 2}) {
    SCOPED_TRACE(data_nodes);
    std::vector<std::unique_ptr<Database>> servers;
    for (int node = 0; node < data_nodes; ++node) servers.push_back(OpenNode(fabric.get(), node, data_nodes));
    // The start succeeds although nodes 2 and 3 are not there.
    for (auto& server : servers) ASSERT_TRUE(server->Start().ok());
    for (int round = 0; round < 2; ++round) {  // the second client takes the place of the first
      auto client = OpenNode(fabric.get(), 3, data_nodes);
      ASSERT_TRUE(client->Start().ok());
      EXPECT_FALSE(client->owns_rows());
      EXPECT_EQ(client->data_nodes(), data_nodes);
      for (uint64_t key = 0; key < 10; ++key) {
        const uint64_t mine = static_cast<uint64_t>(round) * 100 + key;
        ASSERT_TRUE(Put(*client, "spread", mine, 7).ok());
        ASSERT_TRUE(Put(*client, "first", mine, 8).ok());
      }
    }
    uint64_t spread = 0;
    for (auto& server : servers) {
      EXPECT_TRUE(server->owns_rows());
      for (const TableStatistics& table : server->table_statistics()) {
        if (table.table == "spread") spread += table.index.keys;
        const uint64_t of_first = server == servers.front() ? 20 : 0;
        if (table.table == "first") {
          EXPECT_EQ(table.index.keys, of_first);
        }
      }
      EXPECT_EQ(*BalanceOf(*server, "spread", 109), 7);
      EXPECT_EQ(*BalanceOf(*server, "first", 109), 8);
    }
    EXPECT_EQ(spread, 20u);
  }
}

TEST(DataNodesTest, TheServersAreWaitedFor) {
  auto fabric = *rdma::ShmFabric::InProcess({.num_nodes = 3, .bytes_per_node = uint64_t{64} << 20});
  auto server = OpenNode(fabric.get(), 0, 2);
  const Status status = server->Start(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.message().find("not there: 1"), absl::string_view::npos) << status;
}

TEST(DataNodesTest, ImpossibleNumbersAreRefused) {
  auto fabric = *rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{64} << 20});
  EXPECT_TRUE(absl::IsInvalidArgument(Database::Open(fabric.get(), 0, {.data_nodes = 3}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Database::Open(fabric.get(), 0, {.data_nodes = -1}).status()));
  DatabaseOptions durable{.data_nodes = 1};
  durable.directory = ::testing::TempDir() + "/not_made";
  EXPECT_TRUE(absl::IsUnimplemented(Database::Open(fabric.get(), 0, durable).status()));
}

TEST(DataNodesTest, OptionsThatMakeNoSenseAreNamed) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = 64 << 20});
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  const auto expect = [&](const DatabaseOptions& options, const std::string& name) {
    const Status status = Database::Open(fabric->get(), 0, options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ": " << status;
    EXPECT_NE(status.message().find("DatabaseOptions::" + name), std::string::npos) << status;
  };
  expect({.server_threads = -3}, "server_threads");
  expect({.call_timeout = absl::ZeroDuration()}, "call_timeout");
  expect({.page_cache_bytes = SIZE_MAX}, "page_cache_bytes");
  expect({.precedence_limit = absl::InfiniteDuration()}, "precedence_limit");
  expect({.precedence_after = -absl::Seconds(1)}, "precedence_after");
  expect({.durability = static_cast<DurabilityMode>(77)}, "durability");
  expect({.medium = static_cast<LogMedium>(77)}, "medium");
  expect({.group_commit = absl::Hours(1)}, "group_commit");
  expect({.durable_within = -absl::Seconds(1)}, "durable_within");
  expect({.checkpoint_every = -absl::Seconds(1)}, "checkpoint_every");
  expect({.checkpoint_log_multiple = -0.5}, "checkpoint_log_multiple");
  expect({.checkpoint_log_multiple = std::numeric_limits<double>::quiet_NaN()}, "checkpoint_log_multiple");
  expect({.log_segment_bytes = UINT64_MAX}, "log_segment_bytes");
  expect({.log_preallocate_bytes = UINT64_MAX}, "log_preallocate_bytes");
  expect({.log_large_buffer_bytes = kMaxLogLargeBuffer + 1}, "log_large_buffer_bytes");
  expect({.recovery_threads = 1'000'000}, "recovery_threads");
  expect({.read_path = static_cast<ReadPathPolicy>(77)}, "read_path");
  expect({.directory = std::string("here\0there", 10)}, "directory");
  expect({.checkpoint_bytes_per_second = 1}, "checkpoint_bytes_per_second");
  expect({.checkpoint_bytes_per_second = kLeastCheckpointRate - 1}, "checkpoint_bytes_per_second");
  expect({.log_buffer_bytes = 0}, "log_buffer_bytes");
  expect({.log_buffer_bytes = SIZE_MAX}, "log_buffer_bytes");
  expect({.log_large_buffer_bytes = SIZE_MAX}, "log_large_buffer_bytes");
  EXPECT_TRUE(absl::IsInvalidArgument(Database::Open(std::string("here\0there", 10), {}).status()));

  auto database = Database::Open(fabric->get(), 0, {});
  ASSERT_TRUE(database.ok()) << database.status();
  TableOptions table{.name = "table", .payload_bytes = 8};
  table.index = static_cast<IndexKind>(9);
  EXPECT_TRUE(absl::IsInvalidArgument((*database)->CreateTable(table).status()));
  table.index = IndexKind::kHash;
  table.key_kind = static_cast<index::KeyKind>(9);
  EXPECT_TRUE(absl::IsInvalidArgument((*database)->CreateTable(table).status()));
}

// If the CPU's atomics are not the NIC's, a client reads its own copy by verbs. It is not one of the data nodes.
TEST(DataNodesTest, AClientScansItsCopy) {
  rdma::sim::Simulation simulation({.seed = 3});
  rdma::sim::SimFabricOptions options{.num_nodes = 2, .bytes_per_node = uint64_t{64} << 20};
  options.nic.cpu_coherent_atomics = false;
  const auto fabric = rdma::sim::SimFabric::Create(&simulation, options).value();
  for (const ReadPathPolicy path : {ReadPathPolicy::kOneSided, ReadPathPolicy::kCall}) {
    Cluster cluster(fabric.get(), {.data_nodes = 1, .read_path = path},
                    {{.name = "copied",
                      .index = IndexKind::kXStore,
                      .payload_bytes = sizeof(uint64_t),
                      .placement = Placement::Replicated()}});
    Session& client = cluster.NewSession(1);
    const Table& copied = cluster.table(1, "copied");
    BulkLoader loader(&client, &copied);
    for (uint64_t key = 0; key < 30; ++key) ASSERT_TRUE(loader.Add(key, key).ok());
    ASSERT_TRUE(loader.Finish().ok());
    ScanRows rows;
    const Status scanned = RunBlockingBody(
        client, [&](BlockingTransaction& t) { return t.Scan(copied, {.from = 0, .to = UINT64_MAX}, &rows); });
    EXPECT_TRUE(scanned.ok()) << scanned;
    EXPECT_EQ(rows.size(), 30u);
  }
}

}  // namespace data_nodes_test
}  // namespace gannet::txn
