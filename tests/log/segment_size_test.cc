// The space that a log takes: small at first, in proportion to what was written, and given back when less is written.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/format/segment_format.h"
#include "tests/log/log_test_helpers.h"

namespace gannet::log {
namespace segment_size_test {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr size_t kPayload = 20'000;

uint64_t SizeOf(FileSystem& files, const std::string& name) {
  const auto file = files.Open(absl::StrCat(kLogDirectory, "/", name), OpenMode::kRead);
  return file.ok() ? (*file)->Size().value_or(0) : 0;  // renamed or removed just now
}

uint64_t DirectoryBytes(FileSystem& files) {
  uint64_t bytes = 0;
  const std::vector<std::string> names = *files.List(kLogDirectory);
  for (const std::string& name : names) bytes += SizeOf(files, name);
  return bytes;
}

std::vector<uint64_t> SegmentSizes(FileSystem& files) {
  std::vector<uint64_t> sizes;
  const std::vector<std::string> names = *files.List(kLogDirectory);
  for (const std::string& name : names) {
    if (SegmentOfName(name).has_value()) sizes.push_back(SizeOf(files, name));
  }
  return sizes;
}

class SegmentSizeTest : public testing::Test {
 protected:
  void SetUp() override { MakeLogDirectory(&disk_); }

  // Commits about this many bytes, and waits until they are durable.
  void Write(Log* log, LogWriter* writer, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes; done += kPayload) {
      const StatusOr<uint64_t> epoch = Commit(writer, {1, ++transactions_}, kPayload);
      ASSERT_TRUE(epoch.ok()) << epoch.status();
    }
    ASSERT_TRUE(log->WaitDurable(log->last_dirty_epoch(), kLongEnough).ok());
  }

  static LogOptions MediumLog() {
    return {.group_commit = absl::Microseconds(100),
            .segment_bytes = 4 * kMiB,
            .buffer_bytes = 64 << 10,
            .large_buffer_bytes = 0};
  }

  FaultyFileSystem disk_{1};
  uint64_t transactions_ = 0;
};

TEST_F(SegmentSizeTest, ANewLogTakesLessThanAMebibyte) {
  auto log = StartLog(&disk_, {}, LogOptions{});
  EXPECT_LT(DirectoryBytes(disk_), kMiB / 2);
  auto writer = log->OpenWriter().value();
  EXPECT_LT(DirectoryBytes(disk_), kMiB);
  EXPECT_EQ(disk_.List(kLogDirectory)->size(), 3u) << "LOG-END, the segment, and one spare that was made longer";
  writer.reset();
  ASSERT_TRUE(log->Stop().ok());
  log.reset();
  EXPECT_LT(DirectoryBytes(disk_), kMiB / 8);
}

TEST_F(SegmentSizeTest, SegmentsGrowWithTheLog) {
  auto log = StartLog(&disk_, {}, MediumLog());
  auto writer = log->OpenWriter().value();
  for (int i = 0; i < 30; ++i) {
    Write(log.get(), writer.get(), kMiB);
    EXPECT_LE(DirectoryBytes(disk_), 5 * log->statistics().disk_bytes / 2 + kMiB) << "after " << i;
  }
  const std::vector<uint64_t> sizes = SegmentSizes(disk_);
  EXPECT_EQ(sizes.front(), uint64_t{64} << 10);
  EXPECT_EQ(sizes.back(), 4 * kMiB);
  EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end()));
  EXPECT_LT(sizes.size(), 20u) << "many small segments cost a sync each";
  writer.reset();
  ASSERT_TRUE(log->Stop().ok());
  EXPECT_EQ(Recover(disk_).epochs.size(), transactions_);
}

// Checkpoints at a distance that stays the same: the log keeps to the files that it has. When the distance gets small,
// it gives them back.
TEST_F(SegmentSizeTest, WhatCheckpointsFreeIsReusedOrGivenBack) {
  auto log = StartLog(&disk_, {}, MediumLog());
  auto writer = log->OpenWriter().value();
  uint64_t before = 0;
  const auto write_interval = [&](uint64_t bytes) {
    Write(log.get(), writer.get(), bytes);
    const StatusOr<uint64_t> segment = log->BeginSegment();
    ASSERT_TRUE(segment.ok()) << segment.status();
    ASSERT_TRUE(log->RemoveSegmentsBelow(before).ok());  // two checkpoints are kept
    before = *segment;
  };
  constexpr uint64_t kInterval = 8 * kMiB;
  for (int i = 0; i < 4; ++i) write_interval(kInterval);
  const uint64_t made = disk_.operations(DiskOperation::kAllocate);
  for (int i = 0; i < 10; ++i) {
    write_interval(kInterval);
    EXPECT_LE(DirectoryBytes(disk_), 7 * kInterval / 2) << i;
  }
  EXPECT_LE(disk_.operations(DiskOperation::kAllocate) - made, 20u) << "of about 50 segments";
  for (int i = 0; i < 10; ++i) write_interval(kPayload);
  EXPECT_LE(DirectoryBytes(disk_), 2 * kMiB);
  writer.reset();
  ASSERT_TRUE(log->Stop().ok());
}

// The room that the log has made ahead is for the writers that there were. With another one it may not be enough, and
// then that is known before the writer commits anything.
TEST_F(SegmentSizeTest, AWriterHasRoomOrTheLogSaysThatThereIsNone) {
  disk_.SetCapacity(400 << 10);
  auto log = StartLog(&disk_, {}, LogOptions{});
  ASSERT_TRUE(log->health().ok()) << log->health();
  auto writer = log->OpenWriter().value();
  EXPECT_TRUE(absl::IsResourceExhausted(log->health())) << log->health();
  EXPECT_TRUE(absl::IsResourceExhausted(Commit(writer.get(), {1, 1}, 100).status()));
  disk_.SetCapacity(kMiB);
  auto other = log->OpenWriter().value();  // two have no room
  EXPECT_TRUE(absl::IsResourceExhausted(log->health())) << log->health();
  disk_.SetCapacity(2 * kMiB);
  while (!log->health().ok()) absl::SleepFor(absl::Microseconds(100));
  EXPECT_TRUE(log->WaitDurable(Commit(writer.get(), {1, 1}, 100).value(), kLongEnough).ok());
}

TEST_F(SegmentSizeTest, TheAlarmRingsOnceWhenTheLogHasTheSize) {
  auto log = StartLog(&disk_, {}, MediumLog());
  auto writer = log->OpenWriter().value();
  std::atomic<int> rung{0};
  log->SetAlarm(kMiB, [&] { ++rung; });
  Write(log.get(), writer.get(), kMiB / 2);
  EXPECT_EQ(rung, 0);
  Write(log.get(), writer.get(), kMiB);
  EXPECT_EQ(rung, 1);
  log->SetAlarm(kMiB, [&] { rung += 10; });
  EXPECT_EQ(rung, 11) << "the log is that large already";
  log->SetAlarm(2 * kMiB, [&] { rung += 100; });
  log->SetAlarm(0, nullptr);
  Write(log.get(), writer.get(), 2 * kMiB);
  EXPECT_EQ(rung, 11);
}

}  // namespace segment_size_test
}  // namespace gannet::log
