// Every injectable fault occurs as requested.
#include "log/file/simulated/faulty_file_system.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/file/aligned_buffer.h"
#include "log/manifest/whole_file.h"
#include "tests/log/sectors.h"

namespace gannet::log {
namespace faulty_file_system_test {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FaultyFileSystem, ReplacingAFileFailsAtAnyOperationWithoutHarm) {
  for (const DiskOperation operation : {DiskOperation::kOpen, DiskOperation::kWrite, DiskOperation::kSync,
                                        DiskOperation::kRename, DiskOperation::kSyncDirectory}) {
    FaultyFileSystem disk(1);
    ASSERT_TRUE(ReplaceWholeFile(disk, "/M", std::as_bytes(std::span("old", 3))).ok());
    disk.Schedule({.operation = operation});
    EXPECT_TRUE(absl::IsDataLoss(ReplaceWholeFile(disk, "/M", std::as_bytes(std::span("new", 3)))));
    EXPECT_THAT(*ReadWholeFile(disk, "/M"), testing::AnyOf("old", "new"));
    ASSERT_TRUE(ReplaceWholeFile(disk, "/M", std::as_bytes(std::span("newer", 5))).ok());
    EXPECT_EQ(*ReadWholeFile(disk, "/M"), "newer");
    EXPECT_THAT(*disk.List("/"), ElementsAre("M"));
  }
  FaultyFileSystem full(1, {.capacity_bytes = 2 * kDiskBlockBytes});
  ASSERT_TRUE(ReplaceWholeFile(full, "/M", std::as_bytes(std::span("old", 3))).ok());
  const std::string large(kDiskBlockBytes, 'x');
  EXPECT_TRUE(absl::IsResourceExhausted(ReplaceWholeFile(full, "/M", std::as_bytes(std::span(large)))));
  EXPECT_EQ(*ReadWholeFile(full, "/M"), "old");
  EXPECT_EQ(*full.FreeBytes("/"), kDiskBlockBytes) << "the temporary file is gone";
}

TEST(FaultyFileSystem, AFailedWriteLeavesNothingAndAShortOnePartOfIt) {
  std::set<size_t> parts;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FaultyFileSystem disk(seed);
    const auto file = Create(disk, "/a");
    ASSERT_TRUE(file->Allocate(2 * kDiskBlockBytes).ok());
    disk.Schedule({.operation = DiskOperation::kWrite});
    EXPECT_TRUE(absl::IsDataLoss(file->Write(0, Tagged(2, 'a').span())));
    EXPECT_EQ(Sectors(*file), std::string(16, '0'));
    disk.Schedule({.operation = DiskOperation::kWrite, .short_write = true});
    const Status status = file->Write(0, Tagged(2, 'a').span());
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("/a"));
    const std::string after = Sectors(*file);
    const size_t part = std::min(after.find('0'), after.size());
    EXPECT_EQ(after, std::string(part, 'a') + std::string(16 - part, '0'));
    parts.insert(part);
    EXPECT_EQ(disk.faults(), 2u);
  }
  EXPECT_GT(parts.size(), 8u);
}

TEST(FaultyFileSystem, AfterAFailedSyncTheNextSucceedsAndTheDataIsGone) {
  std::set<std::string> survived;
  bool lie_was_seen = false;   // a read returned what no crash leaves
  bool loss_was_seen = false;  // a read returned the old content at once
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFileSystem disk(seed);
    const auto file = Create(disk, "/a");
    ASSERT_TRUE(disk.SyncDirectory("/").ok());
    ASSERT_TRUE(file->WriteDurably(0, Tagged(1, 'a').span()).ok());
    disk.Schedule({.operation = DiskOperation::kSync});
    EXPECT_TRUE(absl::IsDataLoss(file->WriteDurably(0, Tagged(1, 'b').span())));
    EXPECT_TRUE(file->Sync().ok());
    const std::string before = Sectors(*file);
    const std::string after = Sectors(*disk.CrashedCopy(seed), "/a");
    EXPECT_EQ(after, Sectors(*disk.CrashedCopy(seed + 1), "/a")) << "decided at the sync, not at the crash";
    lie_was_seen |= before == "bbbbbbbb" && after != before;
    loss_was_seen |= before == "aaaaaaaa";
    survived.insert(after);
    ASSERT_TRUE(file->WriteDurably(0, Tagged(1, 'c').span()).ok());
    disk.Crash();
    EXPECT_EQ(Sectors(disk, "/a"), "cccccccc") << "what is written anew is safe";
  }
  EXPECT_TRUE(lie_was_seen);
  EXPECT_TRUE(loss_was_seen);
  EXPECT_TRUE(survived.contains("aaaaaaaa"));
  EXPECT_TRUE(survived.contains("bbbbbbbb"));
  EXPECT_GT(survived.size(), 10u) << "mixtures";
}

TEST(FaultyFileSystem, AfterAFailedDirectorySyncNamesMayBeLostForGood) {
  size_t lost = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFileSystem disk(seed);
    Create(disk, "/a");
    disk.Schedule({.operation = DiskOperation::kSyncDirectory});
    EXPECT_TRUE(absl::IsDataLoss(disk.SyncDirectory("/")));
    EXPECT_TRUE(disk.SyncDirectory("/").ok());
    EXPECT_THAT(*disk.List("/"), ElementsAre("a"));
    disk.Crash();
    lost += disk.List("/")->empty() ? 1 : 0;
  }
  EXPECT_GT(lost, kSeeds / 5);
  EXPECT_LT(lost, kSeeds);
}

TEST(FaultyFileSystem, TheDiskIsFullUntilThereIsRoom) {
  FaultyFileSystem disk(1, {.capacity_bytes = 4 * kDiskBlockBytes});
  const auto a = Create(disk, "/a");
  ASSERT_TRUE(a->Allocate(3 * kDiskBlockBytes).ok());
  const auto b = Create(disk, "/b");
  EXPECT_TRUE(absl::IsResourceExhausted(b->Allocate(2 * kDiskBlockBytes)));
  EXPECT_TRUE(absl::IsResourceExhausted(b->Write(0, Tagged(2, 'b').span())));
  EXPECT_EQ(*b->Size(), 0u);
  EXPECT_EQ(*disk.FreeBytes("/"), kDiskBlockBytes);
  EXPECT_TRUE(a->WriteDurably(0, Tagged(3, 'a').span()).ok()) << "that space was taken";
  ASSERT_TRUE(disk.Remove("/a").ok());
  EXPECT_TRUE(b->Write(0, Tagged(2, 'b').span()).ok());
  disk.SetCapacity(kDiskBlockBytes);
  EXPECT_EQ(*disk.FreeBytes("/"), 0u);
}

TEST(FaultyFileSystem, ScheduledFaultsCountTheOperationsOfTheirFile) {
  FaultyFileSystem disk(1);
  const auto a = Create(disk, "/a");
  const auto b = Create(disk, "/b");
  const AlignedBuffer data = Tagged(1, 'x');
  disk.Schedule({.operation = DiskOperation::kWrite, .after = 1, .times = 2, .path_contains = "b"});
  std::string told;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(a->Write(0, data.span()).ok());
    told += b->Write(0, data.span()).ok() ? '.' : 'E';
  }
  EXPECT_EQ(told, ".EE..");
  EXPECT_EQ(disk.operations(DiskOperation::kWrite), 10u);
  disk.Schedule({.operation = DiskOperation::kRead, .times = 1000});
  EXPECT_TRUE(absl::IsDataLoss(a->Read(0, AlignedBuffer(1).span()).status()));
  disk.Heal();
  EXPECT_EQ(Sectors(*a), "xxxxxxxx");
}

TEST(FaultyFileSystem, RandomFaultsHappenAboutAsOftenAsAskedAndRepeatWithTheSeed) {
  const auto run = [](uint64_t seed) {
    FaultyFileSystem disk(seed, {.write_error_one_in = 4, .read_error_one_in = 2, .sync_error_one_in = 8});
    const auto file = Create(disk, "/a");
    const AlignedBuffer data = Tagged(1, 'x');
    std::string told;
    for (int i = 0; i < 400; ++i) {
      told += file->Write(0, data.span()).ok() ? '.' : 'W';
      told += file->Sync().ok() ? '.' : 'S';
      told += file->Read(0, AlignedBuffer(1).span()).ok() ? '.' : 'R';
    }
    return told;
  };
  const std::string told = run(1);
  EXPECT_EQ(told, run(1));
  EXPECT_NE(told, run(2));
  EXPECT_NEAR(static_cast<double>(std::ranges::count(told, 'W')), 100, 50);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(told, 'S')), 50, 35);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(told, 'R')), 200, 60);
}

TEST(FaultyFileSystem, BitsFlipOnTheMediumOrOnTheWay) {
  FaultyFileSystem disk(1);
  const auto file = Create(disk, "/a");
  ASSERT_TRUE(disk.SyncDirectory("/").ok());
  ASSERT_TRUE(file->WriteDurably(0, Tagged(1, 'a').span()).ok());
  ASSERT_TRUE(disk.FlipBit("/a", 600, 1).ok());
  std::byte one{};
  ASSERT_TRUE(file->Read(600, {&one, 1}).ok());
  EXPECT_EQ(one, std::byte{'a' ^ 2});
  EXPECT_EQ(Sectors(*disk.CrashedCopy(1), "/a"), "aXaaaaaa");
  EXPECT_TRUE(absl::IsNotFound(disk.FlipBit("/b", 0, 0)));
  EXPECT_TRUE(absl::IsOutOfRange(disk.FlipBit("/a", kDiskBlockBytes, 0)));
  ASSERT_TRUE(disk.FlipBit("/a", 600, 1).ok());
  const StatusOr<uint64_t> where = disk.FlipRandomBit("/a", 1024, 1536);
  ASSERT_TRUE(where.ok());
  EXPECT_TRUE(*where >= 1024 && *where < 1536) << *where;
  EXPECT_EQ(Sectors(*file), "aaXaaaaa");

  disk.SetOptions({.read_bit_flip_one_in = 1});
  const auto sound = Create(disk, "/sound");
  ASSERT_TRUE(sound->WriteDurably(0, Tagged(1, 's').span()).ok());
  EXPECT_EQ(std::ranges::count(Sectors(*sound), 'X'), 1);
  disk.Heal();
  EXPECT_EQ(Sectors(*sound), "ssssssss");
}

TEST(FaultyFileSystem, ASlowOperationDelaysOnlyItsOwnThread) {
  std::atomic<bool> waiting = false;
  std::atomic<bool> go_on = false;
  FaultOptions options;
  options.before = [&](DiskOperation operation, const std::string& path) {
    if (operation != DiskOperation::kSync || path != "/slow") return;
    waiting = true;
    waiting.notify_all();
    go_on.wait(false);
  };
  FaultyFileSystem disk(1, options);
  const auto slow = Create(disk, "/slow");
  const auto fast = Create(disk, "/fast");
  std::thread other([&] { EXPECT_TRUE(slow->Sync().ok()); });
  waiting.wait(false);
  EXPECT_TRUE(fast->WriteDurably(0, Tagged(1, 'f').span()).ok());
  go_on = true;
  go_on.notify_all();
  other.join();
}

}  // namespace faulty_file_system_test
}  // namespace gannet::log
