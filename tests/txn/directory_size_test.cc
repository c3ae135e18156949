// How much a data directory takes: little when it is empty, and a bounded multiple of the rows when they are
// overwritten for long, because checkpoints come by themselves.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"

namespace gannet::txn {
namespace directory_size_test {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class EmptyDirectoryTest : public testing::TestWithParam<LogMedium> {
 protected:
  void TearDown() override { std::filesystem::remove_all(directory_); }

  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      if (entry.is_regular_file()) bytes += entry.file_size();
    }
    return bytes;
  }

  const std::string directory_ = absl::StrCat(testing::TempDir(), "gannet_directory_size_test.", getpid());
};

TEST_P(EmptyDirectoryTest, TakesLessThanAMebibyte) {
  constexpr int kRuns = 5;
  for (int run = 1; run <= kRuns; ++run) {
    auto database =
        Database::Open(directory_, {.create_if_missing = true, .medium = GetParam(), .memory_bytes = 256 * kMiB});
    ASSERT_TRUE(database.ok()) << database.status();
    const auto table = (*database)->CreateTable({.name = "words", .payload_bytes = 8});
    ASSERT_TRUE(table.ok()) << table.status();
    ASSERT_TRUE((*database)->Start().ok());
    const Status written = (*database)->Run(
        [&](BlockingTransaction& t) { return t.Insert(**table, static_cast<uint64_t>(run), uint64_t{7}); });
    ASSERT_TRUE(written.ok()) << written;
    EXPECT_LT(Bytes(), kMiB + static_cast<uint64_t>(run - 1) * kMiB / 8) << "open, with a session";
    ASSERT_TRUE((*database)->Close().ok());
    EXPECT_LT(Bytes(), static_cast<uint64_t>(run) * kMiB / 8);
  }
}

INSTANTIATE_TEST_SUITE_P(Media, EmptyDirectoryTest, testing::Values(LogMedium::kFile, LogMedium::kPmem),
                         [](const auto& medium) {
                           return std::string(medium.param == LogMedium::kFile ? "File" : "Pmem");
                         });

constexpr size_t kRowBytes = 1000;

std::vector<TableOptions> WideTable() {
  return {{.name = "wide", .payload_bytes = kRowBytes, .expected_rows = 10'000}};
}

uint64_t DirectoryBytes(log::FileSystem& files, const std::string& directory = "/data") {
  uint64_t bytes = 0;
  const auto names = files.List(directory);
  if (!names.ok()) return 0;
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(directory, "/", name);
    const auto file = files.Open(path, log::OpenMode::kRead);
    bytes += file.ok() ? (*file)->Size().value_or(0) : DirectoryBytes(files, path);
  }
  return bytes;
}

// Writes the rows [0, rows), each with `value`, and waits until that is durable.
void WriteRows(Database& database, uint64_t rows, uint8_t value) {
  const Table& table = *database.FindTable("wide");
  constexpr uint64_t kAtOnce = 50;
  for (uint64_t from = 0; from < rows; from += kAtOnce) {
    const Status status = database.Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t key = from; key < std::min(from + kAtOnce, rows); ++key) {
        const std::vector<std::byte> row(kRowBytes, std::byte{value});
        std::vector<std::byte> old(kRowBytes);
        const Status found = t.Get(table, key, std::span(old));
        if (!found.ok() && !absl::IsNotFound(found)) return found;
        GANNET_RETURN_IF_ERROR(found.ok() ? t.Update(table, key, std::span<const std::byte>(row))
                                          : t.Insert(table, key, std::span<const std::byte>(row)));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
  }
}

void ExpectRows(Database& database, uint64_t rows, uint8_t value) {
  const Table& table = *database.FindTable("wide");
  for (uint64_t key = 0; key < rows; ++key) {
    std::vector<std::byte> row(kRowBytes);
    const Status found = database.Run([&](BlockingTransaction& t) { return t.Get(table, key, std::span(row)); });
    ASSERT_TRUE(found.ok()) << found;
    ASSERT_EQ(row, std::vector<std::byte>(kRowBytes, std::byte{value})) << key;
  }
}

// Waits for what another thread does. The test's own time limit ends a wait for nothing.
void Await(const std::function<bool()>& condition) {
  while (!condition()) absl::SleepFor(absl::Milliseconds(1));
}

TEST(DirectorySizeTest, OverwritingForLongTakesABoundedMultipleOfTheRows) {
  const Disk disk = NewDisk();
  constexpr uint64_t kRows = 300;
  constexpr uint64_t kLimit = kMiB;  // more than twice the rows
  auto cluster = DurableCluster::Open(disk, WideTable(), {.database = {.checkpoint_log_least_bytes = kLimit}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  uint8_t round = 0;
  for (uint64_t checkpoints = 1; checkpoints <= 15; ++checkpoints) {
    const auto taken = [&] { return database.checkpoint_statistics().taken; };
    while (taken() < checkpoints && database.checkpoint_statistics().log_bytes < kLimit) {
      WriteRows(database, kRows, ++round);
    }
    Await([&] { return taken() >= checkpoints; });
    EXPECT_LT(DirectoryBytes(*disk), 6 * kMiB) << checkpoints;
  }
  EXPECT_GT(database.log_statistics().disk_bytes, 10 * kMiB);
  EXPECT_EQ(database.checkpoint_statistics().automatic, database.checkpoint_statistics().taken);
  EXPECT_EQ(database.checkpoint_statistics().failed, 0u);
  ASSERT_TRUE((*cluster)->Close().ok());
  cluster = DurableCluster::Open(disk, WideTable());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  ExpectRows((*cluster)->database(), kRows, round);
}

// The multiple is one of the rows' bytes: with many rows the log may be larger.
TEST(DirectorySizeTest, TheLogMayGrowWithTheRows) {
  const Disk disk = NewDisk();
  constexpr uint64_t kRows = 4000;  // 4 MB
  auto cluster = DurableCluster::Open(
      disk, WideTable(), {.database = {.checkpoint_log_multiple = 3, .checkpoint_log_least_bytes = 6 * kMiB}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  WriteRows(database, kRows, 1);
  WriteRows(database, kRows, 2);
  EXPECT_GT(database.checkpoint_statistics().log_bytes, 7 * kMiB);
  EXPECT_EQ(database.checkpoint_statistics().automatic, 0u) << "the rows have been written twice, the limit is thrice";
  WriteRows(database, kRows, 3);
  WriteRows(database, kRows, 4);
  Await([&] { return database.checkpoint_statistics().taken > 0; });
}

TEST(DirectorySizeTest, ALogOfEarlierRunsCounts) {
  const Disk disk = NewDisk();
  {
    auto cluster = DurableCluster::Open(disk, WideTable(), {.database = {.checkpoint_log_multiple = 0}});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (uint8_t round = 1; round <= 10; ++round) WriteRows((*cluster)->database(), 300, round);
    EXPECT_GT((*cluster)->database().checkpoint_statistics().log_bytes, 2 * kMiB);
    EXPECT_EQ((*cluster)->database().checkpoint_statistics().taken, 0u) << "they are off";
  }
  auto cluster = DurableCluster::Open(disk, WideTable(), {.database = {.checkpoint_log_least_bytes = 2 * kMiB}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Await([&] { return (*cluster)->database().checkpoint_statistics().taken > 0; });
  EXPECT_LT((*cluster)->database().checkpoint_statistics().log_bytes, kMiB / 8);
  ExpectRows((*cluster)->database(), 300, 10);
}

// Without room for a checkpoint, the reason is there to be read, and the checkpoint is taken when there is room.
TEST(DirectorySizeTest, AFullDiskIsReportedAndTriedAgain) {
  const Disk disk = NewDisk();
  constexpr uint64_t kRows = 3000;
  {
    auto cluster = DurableCluster::Open(disk, WideTable(), {.database = {.checkpoint_log_multiple = 0}});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (uint8_t round = 1; round <= 3; ++round) WriteRows((*cluster)->database(), kRows, round);
  }
  constexpr uint64_t kMuch = uint64_t{1} << 40;
  disk->SetCapacity(kMuch);
  disk->SetCapacity(kMuch - *disk->FreeBytes("/") + kMiB);
  auto cluster = DurableCluster::Open(disk, WideTable(), {.database = {.checkpoint_log_least_bytes = kMiB}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  const auto statistics = [&] { return database.checkpoint_statistics(); };
  Await([&] { return statistics().failed > 0; });
  EXPECT_EQ(statistics().taken, 0u);
  EXPECT_TRUE(absl::IsResourceExhausted(statistics().last_status)) << statistics().last_status;
  EXPECT_NE(statistics().last_status.message().find("no room for a checkpoint"), std::string::npos);
  ExpectRows(database, kRows, 3);
  disk->SetCapacity(UINT64_MAX);
  Await([&] { return statistics().taken > 0; });
  EXPECT_TRUE(statistics().last_status.ok()) << statistics().last_status;
  EXPECT_LE(statistics().failed, 5u) << "a second from the first to the second, then two: it does not spin";
  WriteRows(database, kRows, 4);
  auto survivor = DurableCluster::Open(disk->CrashedCopy(5), WideTable());
  ASSERT_TRUE(survivor.ok()) << survivor.status();
  ExpectRows((*survivor)->database(), kRows, 4);
}

}  // namespace directory_size_test
}  // namespace gannet::txn
