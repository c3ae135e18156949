// gannet backup --salvage: what a damaged directory still has becomes a new database.
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/log.h"
#include "rdma/shm/shm_fabric.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "txn/durable/backup.h"
#include "txn/durable/catalog.h"
#include "txn/durable/data_directory.h"
#include "txn/durable/recovery.h"
#include "txn/durable/verify.h"
#include "txn/offline.h"

namespace gannet::txn {
namespace salvage_test {

using ::testing::HasSubstr;
using Disk = std::shared_ptr<log::FaultyFileSystem>;

constexpr uint64_t kRows = 30;

std::vector<TableOptions> Tables() {
  return {HashTable("rows", Placement::ByHash()), OrderedTable("ordered", Placement::ByHash())};
}

Status Insert(DurableCluster& cluster, uint64_t key) {
  return cluster.database().Run([&](BlockingTransaction& t) -> Status {
    GANNET_RETURN_IF_ERROR(t.Insert(cluster.table("rows"), key, key));
    return t.Insert(cluster.table("ordered"), key, key);
  });
}

std::set<uint64_t> KeysOf(DurableCluster& cluster, const std::string& table) {
  std::set<uint64_t> keys;
  for (uint64_t key = 1; key <= kRows + 2; ++key) {
    uint64_t value = 0;
    const Status got =
        cluster.database().Run([&](BlockingTransaction& t) { return t.Get(cluster.table(table), key, &value); });
    EXPECT_TRUE(got.ok() || absl::IsNotFound(got)) << got;
    if (got.ok()) keys.insert(value);
  }
  return keys;
}

// Salvages as the program does. *damages gets what is left out.
StatusOr<Verification> Salvage(const Disk& disk, std::vector<std::string>* damages) {
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(*disk, "/data");
  if (!nodes.ok()) return nodes.status();
  auto fabric = *rdma::ShmFabric::InProcess(
      {.num_nodes = static_cast<int>(nodes->size()), .bytes_per_node = uint64_t{256} << 20});
  const auto recover = [&](const std::function<Status(const LocalNode&)>& visit) -> Status {
    for (const NodeData& node : *nodes) {
      auto database = Database::Open(fabric.get(), node.manifest.node, {.salvage = true});
      if (!database.ok()) return database.status();
      GANNET_RETURN_IF_ERROR(AdoptTables(**database, *disk, "/data"));
      log::LogEnd end;
      RecoveryReport report;
      GANNET_RETURN_IF_ERROR(RecoverInto(**database, *disk, "/data", &end, &report));
      damages->insert(damages->end(), report.damages.begin(), report.damages.end());
      GANNET_RETURN_IF_ERROR(visit(LocalNodeOf(**database)));
    }
    return absl::OkStatus();
  };
  return BackUpSalvaged(*disk, "/data", "/saved", recover);
}

TEST(SalvageTest, WhatIsLeftBecomesADatabase) {
  for (const int nodes : {1, 2}) {
    for (const bool checkpoint : {false, true}) {
      const auto disk = std::make_shared<log::FaultyFileSystem>(1);
      {
        auto cluster = DurableCluster::Open(disk, Tables(), {.nodes = nodes});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        for (uint64_t key = 1; key <= kRows; ++key) {
          ASSERT_TRUE(Insert(**cluster, key).ok());
          for (int node = 0; checkpoint && key == kRows / 2 && node < nodes; ++node) {
            ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
          }
        }
        ASSERT_TRUE((*cluster)->Close().ok());
      }
      // The newest segment of node 0 loses a transaction.
      DiskImage image = ImageOf(*disk);
      std::string last;
      for (const auto& [path, content] : image) {
        if (path.starts_with(NodeDirectory("/data", 0, nodes) + "/log-")) last = path;
      }
      ASSERT_TRUE(disk->FlipBit(last, 2 * 4096 + 64 + 40, 0).ok());
      image = ImageOf(*disk);
      EXPECT_TRUE(absl::IsDataLoss(DurableCluster::Open(disk, Tables(), {.nodes = nodes}).status()));

      std::vector<std::string> damages;
      const auto saved = Salvage(disk, &damages);
      ASSERT_TRUE(saved.ok()) << saved.status();
      EXPECT_TRUE(saved->problems.empty());
      ASSERT_FALSE(damages.empty());
      EXPECT_THAT(damages.front(), HasSubstr(last));
      EXPECT_TRUE(ImageOf(*disk) == image) << "the damaged directory is as it was";

      const Disk copy = DiskOf(WithPartOf({}, "/data", ImageOf(*disk, "/saved"), "/saved"));
      EXPECT_NE(log::ReadManifest(*copy, NodeDirectory("/data", 0, nodes))->database,
                log::ReadManifest(*disk, NodeDirectory("/data", 0, nodes))->database);
      std::set<uint64_t> rows;
      for (int run = 0; run < 3; ++run) {
        auto cluster = DurableCluster::Open(copy, Tables(), {.nodes = nodes, .create = false});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        if (run == 0) {
          rows = KeysOf(**cluster, "rows");
          EXPECT_GE(rows.size(), kRows - 1);
        }
        EXPECT_EQ(KeysOf(**cluster, "rows"), rows);
        if (run == 2) break;
        const uint64_t key = kRows + 1 + static_cast<uint64_t>(run);
        ASSERT_TRUE(Insert(**cluster, key).ok());
        rows.insert(key);
        for (int node = 0; run == 1 && node < nodes; ++node) {
          ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
        }
        ASSERT_TRUE((*cluster)->Close().ok());
        const auto verified = VerifyDataDirectory(*copy, "/data", 1);
        ASSERT_TRUE(verified.ok()) << verified.status();
        for (const Problem& problem : verified->problems) ADD_FAILURE() << ToText(problem);
      }
    }
  }
}

// A copy that cannot be completed leaves nothing.
TEST(SalvageTest, AnErrorLeavesNothing) {
  const auto disk = std::make_shared<log::FaultyFileSystem>(1);
  {
    auto cluster = DurableCluster::Open(disk, Tables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    ASSERT_TRUE(Insert(**cluster, 1).ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  std::vector<std::string> damages;
  disk->Schedule({.operation = log::DiskOperation::kWrite, .path_contains = "/saved/checkpoint-"});
  EXPECT_TRUE(absl::IsDataLoss(Salvage(disk, &damages).status()));
  EXPECT_TRUE(ImageOf(*disk, "/saved").empty());
  EXPECT_TRUE(Salvage(disk, &damages).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Salvage(disk, &damages).status())) << "it is not empty";
  EXPECT_TRUE(damages.empty());
}

}  // namespace salvage_test
}  // namespace gannet::txn
