// What FaultyFileSystem may lose at a power cut, and what it must keep: the contract of log/file/file_system.h.
#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/file/aligned_buffer.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/manifest/whole_file.h"
#include "tests/log/sectors.h"

namespace gannet::log {
namespace faulty_crash_test {

using testing::ElementsAre;

TEST(FaultyCrash, WhatWasSyncedSurvivesEveryCrash) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFileSystem disk(seed);
    const auto file = Create(disk, "/a");
    ASSERT_TRUE(disk.SyncDirectory("/").ok());
    ASSERT_TRUE(file->WriteDurably(0, Tagged(2, 'a').span()).ok());
    ASSERT_TRUE(file->Write(kDiskBlockBytes, Tagged(1, 'b').span()).ok());
    ASSERT_TRUE(file->Sync().ok());
    disk.Crash();
    EXPECT_EQ(Sectors(disk, "/a"), "aaaaaaaabbbbbbbb") << seed;
  }
}

TEST(FaultyCrash, UnsyncedWritesSurviveInAnyCombinationOfSectors) {
  FaultyFileSystem disk(1);
  const auto file = Create(disk, "/a");
  ASSERT_TRUE(disk.SyncDirectory("/").ok());
  ASSERT_TRUE(file->WriteDurably(0, Tagged(2, 'a').span()).ok());
  ASSERT_TRUE(file->Write(0, Tagged(1, 'b').span()).ok());
  ASSERT_TRUE(file->Write(kDiskBlockBytes, Tagged(1, 'c').span()).ok());
  ASSERT_TRUE(file->Write(kDiskBlockBytes, Tagged(1, 'd').span()).ok());
  EXPECT_EQ(Sectors(*file), "bbbbbbbbdddddddd");

  std::set<std::string> seen;
  bool later_without_earlier = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string after = Sectors(*disk.CrashedCopy(seed), "/a");
    ASSERT_EQ(after.size(), 16u);
    EXPECT_EQ(after.substr(0, 8).find_first_not_of("ab"), std::string::npos) << after;
    EXPECT_EQ(after.substr(8).find_first_not_of("acd"), std::string::npos) << after;
    seen.insert(after);
    later_without_earlier |= after.find('b') == std::string::npos && after.find('d') != std::string::npos;
  }
  EXPECT_TRUE(seen.contains("aaaaaaaaaaaaaaaa")) << "nothing of it";
  EXPECT_TRUE(std::ranges::any_of(seen, [](const std::string& s) { return s.find('a') == std::string::npos; }))
      << "all";
  EXPECT_GT(seen.size(), kSeeds / 4) << "torn in many ways";
  EXPECT_TRUE(later_without_earlier) << "reordered";
  EXPECT_EQ(Sectors(*file), "bbbbbbbbdddddddd") << "a copy changes nothing";
}

TEST(FaultyCrash, EachCombinationOfUnsyncedSectorsComesOnce) {
  FaultyFileSystem disk(1);
  const auto file = Create(disk, "/a");
  ASSERT_TRUE(disk.SyncDirectory("/").ok());
  ASSERT_TRUE(file->WriteDurably(0, Tagged(1, 'a').span()).ok());
  AlignedBuffer block = Tagged(1, 'a');
  for (const size_t sector : {1, 2, 6}) std::fill_n(block.data() + sector * kSector, kSector, std::byte{'b'});
  ASSERT_TRUE(file->Write(0, block.span()).ok());
  std::fill_n(block.data() + 2 * kSector, kSector, std::byte{'c'});
  ASSERT_TRUE(file->Write(0, block.span()).ok());
  std::multiset<std::string> seen;
  for (const auto& copy : disk.CrashedCopies(100, 1)) seen.insert(Sectors(*copy, "/a"));
  EXPECT_EQ(seen.size(), 12u) << "two sectors that are written or not, and one with three versions";
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 12u);
  EXPECT_TRUE(seen.contains("aaaaaaaa"));
  EXPECT_TRUE(seen.contains("aabaaaba"));
  EXPECT_TRUE(seen.contains("abcaaaba"));
  EXPECT_EQ(disk.CrashedCopies(12, 1).size(), 12u);
  EXPECT_EQ(disk.CrashedCopies(11, 1).size(), 11u) << "drawn at random";
}

TEST(FaultyCrash, EachCombinationOfNamesAndLengthsComesOnce) {
  FaultyFileSystem disk(1);
  const auto file = Create(disk, "/a");
  ASSERT_TRUE(file->WriteDurably(0, Tagged(1, 'a').span()).ok());
  ASSERT_TRUE(disk.SyncDirectory("/").ok());
  ASSERT_TRUE(disk.Rename("/a", "/b").ok());
  ASSERT_TRUE(file->Allocate(2 * kDiskBlockBytes).ok());
  std::multiset<std::string> seen;
  for (const auto& copy : disk.CrashedCopies(100, 1)) seen.insert(Sectors(*copy, "/a") + " " + Sectors(*copy, "/b"));
  const std::string gone = absl::StatusCodeToString(absl::StatusCode::kNotFound);
  const std::string one = "aaaaaaaa";
  const std::string two = "aaaaaaaa00000000";
  EXPECT_THAT(seen,
              testing::UnorderedElementsAre(one + " " + gone, two + " " + gone, gone + " " + one, gone + " " + two));
  ASSERT_TRUE(disk.SyncDirectory("/").ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(disk.CrashedCopies(100, 1).size(), 1u);
}

TEST(FaultyCrash, AnUnsyncedLengthMayOrMayNotSurvive) {
  FaultyFileSystem disk(1);
  const auto file = Create(disk, "/a");
  ASSERT_TRUE(disk.SyncDirectory("/").ok());
  ASSERT_TRUE(file->WriteDurably(0, Tagged(1, 'a').span()).ok());
  ASSERT_TRUE(file->Allocate(2 * kDiskBlockBytes).ok());
  ASSERT_TRUE(file->Write(2 * kDiskBlockBytes, Tagged(1, 'b').span()).ok());
  std::set<size_t> lengths;
  bool length_without_content = false;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string after = Sectors(*disk.CrashedCopy(seed), "/a");
    EXPECT_EQ(after.substr(0, 8), "aaaaaaaa");
    lengths.insert(after.size());
    length_without_content |= after.size() == 24 && after.find('b') == std::string::npos;
  }
  EXPECT_THAT(lengths, ElementsAre(8u, 16u, 24u));
  EXPECT_TRUE(length_without_content);
}

TEST(FaultyCrash, UnsyncedNamesMayVanishAndSyncedOnesStay) {
  FaultyFileSystem disk(1);
  ASSERT_TRUE(disk.MakeDirectory("/d").ok());
  ASSERT_TRUE(disk.SyncDirectory("/").ok());
  Create(disk, "/d/synced");
  Create(disk, "/d/removed");
  ASSERT_TRUE(disk.SyncDirectory("/d").ok());
  const auto content_only = Create(disk, "/d/new");
  ASSERT_TRUE(content_only->WriteDurably(0, Tagged(1, 'n').span()).ok());
  ASSERT_TRUE(disk.Remove("/d/removed").ok());
  std::set<std::vector<std::string>> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto after = disk.CrashedCopy(seed);
    const std::vector<std::string> names = *after->List("/d");
    EXPECT_THAT(names, testing::Contains("synced"));
    const bool there = std::ranges::find(names, "new") != names.end();
    EXPECT_EQ(Sectors(*after, "/d/new"), there ? "nnnnnnnn" : "NOT_FOUND");
    seen.insert(names);
  }
  EXPECT_EQ(seen.size(), 4u) << "with and without the new one, with and without the removed one";
}

TEST(FaultyCrash, ARenameHappensOrNotButNeverByHalf) {
  FaultyFileSystem disk(1);
  ASSERT_TRUE(Create(disk, "/a")->WriteDurably(0, Tagged(1, 'a').span()).ok());
  ASSERT_TRUE(Create(disk, "/b")->WriteDurably(0, Tagged(1, 'b').span()).ok());
  ASSERT_TRUE(disk.SyncDirectory("/").ok());
  ASSERT_TRUE(disk.Rename("/b", "/a").ok());
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto after = disk.CrashedCopy(seed);
    seen.insert(Sectors(*after, "/a").substr(0, 1) + " " + Sectors(*after, "/b").substr(0, 1));
  }
  EXPECT_THAT(seen, ElementsAre("a b", "b N"));  // N: NOT_FOUND
}

// The method for small files: after a crash at any moment there is the old content or the new one, if there was an old
// one.
TEST(FaultyCrash, AReplacedFileIsOldOrNewAfterACrashAtAnyMoment) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FaultyFileSystem disk(seed);
    ASSERT_TRUE(ReplaceWholeFile(disk, "/M", std::as_bytes(std::span("old", 3))).ok());
    std::vector<std::unique_ptr<FaultyFileSystem>> crashed;
    std::set<std::string> seen;
    FaultOptions options;
    options.before = [&](DiskOperation, const std::string&) { crashed.push_back(disk.CrashedCopy(seed)); };
    disk.SetOptions(options);
    ASSERT_TRUE(ReplaceWholeFile(disk, "/M", std::as_bytes(std::span("new", 3))).ok());
    EXPECT_GE(crashed.size(), 6u);
    for (const auto& each : crashed) {
      const StatusOr<std::string> content = ReadWholeFile(*each, "/M");
      ASSERT_TRUE(content.ok()) << content.status();
      EXPECT_THAT(*content, testing::AnyOf("old", "new"));
    }
    disk.SetOptions({});
    disk.Crash();
    EXPECT_EQ(*ReadWholeFile(disk, "/M"), "new") << seed;
  }
}

TEST(FaultyCrash, FilesAndLocksOfBeforeThePowerCutAreDead) {
  FaultyFileSystem disk(1);
  const auto file = Create(disk, "/a");
  ASSERT_TRUE(disk.SyncDirectory("/").ok());
  StatusOr<std::shared_ptr<void>> lock = disk.Lock("/");
  ASSERT_TRUE(lock.ok());
  disk.PowerOff();
  const AlignedBuffer data = Tagged(1, 'a');
  EXPECT_TRUE(absl::IsUnavailable(file->Write(0, data.span())));
  EXPECT_TRUE(absl::IsUnavailable(disk.Open("/b", OpenMode::kCreate).status()));
  EXPECT_TRUE(absl::IsUnavailable(disk.Lock("/").status()));
  disk.PowerOn();
  EXPECT_TRUE(absl::IsUnavailable(file->Write(0, data.span())));
  EXPECT_TRUE(absl::IsUnavailable(file->Sync()));
  EXPECT_TRUE(absl::IsUnavailable(file->Size().status()));
  const StatusOr<std::shared_ptr<void>> again = disk.Lock("/");
  EXPECT_TRUE(again.ok()) << again.status();
  lock->reset();
  EXPECT_TRUE(absl::IsFailedPrecondition(disk.Lock("/").status())) << "a dead lock releases nothing";
  EXPECT_EQ(Sectors(disk, "/a"), "");
}

TEST(FaultyCrash, SeveralThreadsUseTheirFilesWhileThePowerGoes) {
  constexpr size_t kThreads = 4;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FaultyFileSystem disk(seed);
    std::vector<std::atomic<int>> acknowledged(kThreads);
    std::vector<std::thread> threads;
    std::vector<std::unique_ptr<File>> files;
    for (size_t i = 0; i < kThreads; ++i) files.push_back(Create(disk, "/log" + std::to_string(i)));
    ASSERT_TRUE(disk.SyncDirectory("/").ok());
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int n = 0; n < 20; ++n) {
          const AlignedBuffer data = Tagged(1, static_cast<unsigned char>('a' + n));
          if (!files[i]->WriteDurably(static_cast<uint64_t>(n) * kDiskBlockBytes, data.span()).ok()) return;
          acknowledged[i] = n + 1;
        }
      });
    }
    while (acknowledged[0] < 5) std::this_thread::yield();
    disk.PowerOff();
    for (std::thread& each : threads) each.join();
    disk.PowerOn();
    for (size_t i = 0; i < kThreads; ++i) {
      std::string promised;
      for (int n = 0; n < acknowledged[i]; ++n) promised += std::string(8, static_cast<char>('a' + n));
      EXPECT_EQ(Sectors(disk, "/log" + std::to_string(i)).substr(0, promised.size()), promised) << seed;
    }
  }
}

}  // namespace faulty_crash_test
}  // namespace gannet::log
