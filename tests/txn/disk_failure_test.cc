// Disks that are full or fail: a refused change is not there, an acknowledged one is, and work continues afterwards.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "log/checkpoint/checkpoint.h"
#include "log/manifest/manifest.h"
#include "tests/log/full_disk.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"

namespace gannet::txn {
namespace disk_failure_test {

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

void FillTheDisk(log::FaultyFileSystem& disk, uint64_t free_bytes) {
  constexpr uint64_t kMuch = uint64_t{1} << 40;
  disk.SetCapacity(kMuch);
  disk.SetCapacity(kMuch - *disk.FreeBytes("/") + free_bytes);
}

// However the disk got full and however the program ended, the database opens, all of it can be read, and once there is
// room it accepts commits again by itself.
TEST(DiskFailureTest, AFullDiskOpensAndRefusesCommitsOnly) {
  for (const bool killed : {false, true}) {
    const Disk disk = NewDisk();
    uint64_t n = 0;
    // The next segment is larger than what is free.
    const DatabaseOptions large_segments = {.log_segment_bytes = uint64_t{1} << 20};
    {
      auto cluster = DurableCluster::Open(disk, HistoryTables(), {.database = large_segments});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      ASSERT_TRUE(RunStep((*cluster)->database(), 5, 0, ++n).ok());
      FillTheDisk(*disk, 0);
      Status refused;
      while (refused.ok()) refused = RunStep((*cluster)->database(), 5, 0, n + 1), n += refused.ok() ? 1 : 0;
      EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
      if (killed) disk->KillPrograms();
    }
    for (const uint64_t free_blocks : {0, 1, 20, 100, 0}) {
      SCOPED_TRACE(free_blocks);
      FillTheDisk(*disk, free_blocks * log::kDiskBlockBytes);
      DurableOptions options = {.database = large_segments};
      if (free_blocks != 100) options.database.log_preallocate_bytes = free_blocks * (uint64_t{1} << 20);
      auto cluster = DurableCluster::Open(disk, HistoryTables(), options);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      Database& database = (*cluster)->database();
      EXPECT_EQ(ExpectPrefix(ReadState(database, 0), 5, 0, n), n);
      const Status refused = RunStep(database, 5, 0, n + 1);
      EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
      EXPECT_NE(refused.message().find("Free some space"), std::string::npos) << refused;
      EXPECT_TRUE(absl::IsResourceExhausted(database.log_health())) << database.log_health();
      const Status checkpoint = database.Checkpoint();
      EXPECT_EQ(checkpoint.ok(), free_blocks == 100) << checkpoint;
      EXPECT_TRUE(checkpoint.ok() || absl::IsResourceExhausted(checkpoint)) << checkpoint;
      if (killed) disk->KillPrograms();
    }
    auto cluster = DurableCluster::Open(disk, HistoryTables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    EXPECT_TRUE(absl::IsResourceExhausted(RunStep(database, 5, 0, n + 1)));
    disk->SetCapacity(UINT64_MAX);
    Status accepted = absl::ResourceExhaustedError("");
    while (absl::IsResourceExhausted(accepted)) accepted = RunStep(database, 5, 0, n + 1);  // until the log notices
    ASSERT_TRUE(accepted.ok()) << accepted;
    ASSERT_TRUE(database.Checkpoint().ok());
    EXPECT_EQ(ExpectPrefix(ReadState(database, 0), 5, 0, n + 1), n + 1);
  }
}

// The kernel writes a part of a block before it refuses the rest.
TEST(DiskFailureTest, ALimitOfTheProcessWithinABlockIsAFullDisk) {
  std::string directory = testing::TempDir() + "gannet-limit-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  constexpr uint64_t kRows = 1000;
  constexpr uint64_t kLimit = 100'000;
  const std::string payload(512, 'x');
  const DatabaseOptions options{.create_if_missing = true};
  {
    const auto database = Database::Open(directory, options).value();
    const Table& rows =
        **database->CreateTable({.name = "rows", .index = IndexKind::kXStore, .payload_bytes = payload.size()});
    ASSERT_TRUE(database->Start().ok());
    const auto insert = [&](uint64_t key) {
      return database->Run([&](BlockingTransaction& t) { return t.Insert(rows, key, payload); });
    };
    for (uint64_t key = 0; key < kRows; ++key) ASSERT_TRUE(insert(key).ok());
    {
      const log::FullDisk full(kLimit);
      for (const Status& refused : {database->Checkpoint(), database->Backup(directory + "-copy")}) {
        EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
        EXPECT_NE(refused.message().find("100000 bytes; raise that limit (ulimit -f)"), std::string::npos) << refused;
      }
    }
    const Status taken = database->Checkpoint();
    EXPECT_TRUE(taken.ok()) << taken;
    EXPECT_TRUE(insert(kRows).ok());
    EXPECT_TRUE(database->Close().ok());
  }
  {
    const auto database = Database::Open(directory, options).value();
    ASSERT_TRUE(database->Start().ok());
    ScanRows all;
    const Status read = database->Run(
        [&](BlockingTransaction& t) { return t.Scan(*database->FindTable("rows"), {.from = 0, .to = kRows}, &all); });
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_EQ(all.size(), kRows + 1);
  }
  std::filesystem::remove_all(directory);
  std::filesystem::remove_all(directory + "-copy");
}

// The previous checkpoint, and the log that only it needs, make room for the next one; but the newest must be
// undamaged.
TEST(DiskFailureTest, ACheckpointMakesRoomForItself) {
  for (const bool damaged : {false, true}) {
    const Disk disk = NewDisk();
    auto cluster = DurableCluster::Open(disk, HistoryTables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    uint64_t n = 0;
    for (int checkpoint = 0; checkpoint < 2; ++checkpoint) {
      for (int i = 0; i < 50; ++i) ASSERT_TRUE(RunStep(database, 5, 0, ++n).ok());
      ASSERT_TRUE(database.Checkpoint().ok());
    }
    FillTheDisk(*disk, 0);
    Status refused;
    while (refused.ok()) refused = RunStep(database, 5, 0, n + 1), n += refused.ok() ? 1 : 0;
    ASSERT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    FillTheDisk(*disk, 0);
    const log::Manifest before = *log::ReadManifest(*disk, "/data");
    ASSERT_EQ(before.checkpoints.size(), 2u);
    if (damaged) {
      const log::CheckpointDescription& newest = before.checkpoints.front();
      const std::string path = log::CheckpointDirectory("/data", newest.id) + "/" + newest.files.front().name;
      ASSERT_TRUE(disk->FlipRandomBit(path, 4096, 4096 + 64).ok());
    }
    const Status status = database.Checkpoint();
    if (damaged) {
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      EXPECT_EQ(log::ReadManifest(*disk, "/data")->checkpoints.size(), 2u) << "the older one is the only good one";
      continue;
    }
    ASSERT_TRUE(status.ok()) << status;
    const log::Manifest after = *log::ReadManifest(*disk, "/data");
    ASSERT_EQ(after.checkpoints.size(), 2u);
    EXPECT_EQ(after.checkpoints.back().id, before.checkpoints.front().id);
    const Disk copy = disk->CrashedCopy(3);
    auto survivor = DurableCluster::Open(copy, HistoryTables());
    ASSERT_TRUE(survivor.ok()) << survivor.status();
    ExpectPrefix(ReadState((*survivor)->database(), 0), 5, 0, n);
  }
}

// A full disk, or a close in the middle, ends a checkpoint early. Its files must be removed, because they would only
// take room.
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

// A second after the first failure, then two: at most one more per second, whatever the interval and the load.
TEST(DiskFailureTest, AFailedCheckpointIsNotTriedAgainAtEveryInterval) {
  const Disk disk = NewDisk();
  auto cluster = DurableCluster::Open(disk, HistoryTables(), {.database = {.checkpoint_every = absl::Milliseconds(5)}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  ASSERT_TRUE(RunStep(database, 7, 0, 1).ok());
  disk->Schedule({.operation = log::DiskOperation::kWrite, .times = UINT64_MAX, .path_contains = "checkpoint-"});
  while (database.checkpoint_statistics().failed == 0) std::this_thread::yield();
  const absl::Time begun = absl::Now();
  absl::SleepFor(absl::Milliseconds(300));
  const uint64_t failed = database.checkpoint_statistics().failed;
  EXPECT_LE(static_cast<double>(failed), 2 + absl::ToDoubleSeconds(absl::Now() - begun));
  disk->Heal();
  const uint64_t taken = database.checkpoint_statistics().taken;
  while (database.checkpoint_statistics().taken < taken + 2) std::this_thread::yield();  // the interval counts again
}

// The disk dies when the checkpoint has begun its segment: the log cannot write the records that the checkpoint waits
// for.
TEST(DiskFailureTest, ACheckpointOnADeadDiskSaysWhatTheDiskSays) {
  const Disk disk = NewDisk();
  auto cluster = DurableCluster::Open(disk, HistoryTables());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  ASSERT_TRUE(RunStep(database, 7, 0, 1).ok());
  Status status = absl::UnknownError("not tried");
  for (uint64_t last = 0; !status.ok(); ++last) {  // until the log needs fewer writes for a checkpoint
    SCOPED_TRACE(last);
    disk->SetOptions({.before = [&disk, last, written = std::make_shared<std::atomic<uint64_t>>(0)](
                                    log::DiskOperation operation, const std::string& path) {
      if (operation != log::DiskOperation::kWrite || path.find("/log-") == std::string::npos) return;
      if (written->fetch_add(1) == last) disk->SetOptions({.write_error_one_in = 1});
    }});
    status = database.Checkpoint();
    EXPECT_FALSE(absl::IsDeadlineExceeded(status)) << status;
    disk->Heal();
    while (!database.log_health().ok()) std::this_thread::yield();
    ASSERT_LT(last, 50u) << status;
  }
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
        do {  // refused until the log is sound again: nothing happened
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

}  // namespace disk_failure_test
}  // namespace gannet::txn
