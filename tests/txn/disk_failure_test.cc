// Disks that are full or fail: what is refused is not there, what was acknowledged is, and it goes on afterwards.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"

namespace gannet::txn {
namespace {

TEST(DiskFailureTest, AFullDiskRefusesWritesAndGoesOnWhenThereIsRoom) {
  const Disk disk = NewDisk();
  auto cluster = DurableCluster::Open(disk, HistoryTables());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  uint64_t n = 0;
  ASSERT_TRUE(RunStep(database, 5, 0, ++n).ok());
  disk->SetCapacity(0);
  Status refused;
  while (refused.ok()) refused = RunStep(database, 5, 0, n + 1), n += refused.ok() ? 1 : 0;
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(ExpectPrefix(ReadState(database, 0), 5, 0, n), n) << "reads go on, and what was refused is not there";
  disk->SetCapacity(UINT64_MAX);
  Status accepted = refused;
  while (absl::IsResourceExhausted(accepted)) accepted = RunStep(database, 5, 0, n + 1);  // until the log notices
  EXPECT_TRUE(accepted.ok()) << accepted;
  ++n;
  const Disk copy = disk->CrashedCopy(77);
  auto survivor = DurableCluster::Open(copy, HistoryTables());
  ASSERT_TRUE(survivor.ok()) << survivor.status();
  EXPECT_EQ(ExpectPrefix(ReadState((*survivor)->database(), 0), 5, 0, n), n);
}

// A full disk and a close in the middle end a checkpoint early, too: what there is of it would take room for nothing.
TEST(DiskFailureTest, ACheckpointThatFailsLeavesNothing) {
  const Disk disk = NewDisk();
  auto cluster = DurableCluster::Open(disk, HistoryTables());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  ASSERT_TRUE(RunStep(database, 7, 0, 1).ok());
  ASSERT_TRUE(database.Checkpoint().ok());
  const auto checkpoints = [&] {
    std::vector<std::string> names = *disk->List("/data");
    std::erase_if(names, [](const std::string& name) { return !name.starts_with("checkpoint-"); });
    return names;
  };
  const std::vector<std::string> before = checkpoints();
  ASSERT_FALSE(before.empty());
  disk->Schedule({.operation = log::DiskOperation::kWrite, .after = 1, .path_contains = "checkpoint-"});
  EXPECT_FALSE(database.Checkpoint().ok());
  EXPECT_EQ(checkpoints(), before);
  EXPECT_TRUE(database.Checkpoint().ok());
}

TEST(DiskFailureTest, AFailedSyncLosesNothingThatWasAcknowledged) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Disk disk = NewDisk(seed);
    auto cluster = DurableCluster::Open(disk, HistoryTables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    uint64_t n = 0;
    for (int round = 0; round < 5; ++round) {
      disk->Schedule({.operation = log::DiskOperation::kSync, .after = seed % 3, .path_contains = "log-"});
      disk->Schedule({.operation = log::DiskOperation::kWrite,
                      .after = 4 + seed % 5,
                      .path_contains = "log-",
                      .short_write = seed % 2 == 0});
      for (int i = 0; i < 10; ++i) {
        Status status;
        do {  // refused while the log is not on sound ground: nothing happened
          status = RunStep(database, seed, 0, n + 1);
        } while (absl::IsDataLoss(status) || absl::IsUnavailable(status));
        ASSERT_TRUE(status.ok()) << status;
        ++n;
      }
      const Disk copy = disk->CrashedCopy(seed * 10 + static_cast<uint64_t>(round));
      auto survivor = DurableCluster::Open(copy, HistoryTables());
      ASSERT_TRUE(survivor.ok()) << survivor.status();
      ExpectPrefix(ReadState((*survivor)->database(), 0), seed, 0, n);
    }
    EXPECT_GT(database.log_statistics().failures, 0u);
  }
}

}  // namespace
}  // namespace gannet::txn
