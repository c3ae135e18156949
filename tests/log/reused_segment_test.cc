// Segments in the files of former segments: the writer reuses the files, and their old content does not mislead the
// reader.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/format/segment_format.h"
#include "log/segment/log_reader.h"
#include "tests/log/log_test_helpers.h"

namespace gannet::log {
namespace reused_segment_test {

constexpr uint64_t kSegment = uint64_t{512} << 10;  // more than twice the size of the buffers

LogOptions SmallSegments(uint64_t preallocate = 0) {
  LogOptions options = SmallLog();
  options.segment_bytes = kSegment;
  options.preallocate_bytes = preallocate;
  return options;
}

std::vector<std::string> NamesWith(FileSystem& files, const std::string& prefix) {
  std::vector<std::string> names = *files.List(kLogDirectory);
  std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

bool IsReused(FileSystem& files, const std::string& name) {
  auto file = files.Open(std::string(kLogDirectory) + "/" + name, OpenMode::kRead);
  std::vector<std::byte> block(kSegmentHeaderBytes);
  EXPECT_TRUE((*file)->Read(0, block).ok());
  const StatusOr<SegmentHeader> header =
      SegmentHeader::Decode(std::span<const std::byte, kSegmentHeaderBytes>(block.data(), kSegmentHeaderBytes));
  EXPECT_TRUE(header.ok()) << header.status();
  return header.ok() && header->reused;
}

// A log that reuses the files of older segments.
struct ReusingLog {
  ReusingLog(FaultyFileSystem* disk, int rounds, const LogEnd& end = {}, uint64_t preallocate = 0)
      : log(StartLog(disk, end, SmallSegments(preallocate))), writer(*log->OpenWriter()) {
    GiveAway(rounds);
  }
  // Appends, begins segments, and removes the older ones, as checkpoints do.
  void GiveAway(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < 600; ++i) EXPECT_TRUE(CommitNext().ok());
      const StatusOr<uint64_t> begun = log->BeginSegment();
      EXPECT_TRUE(begun.ok()) << begun.status();
      segment = *begun;
      first_needed = next;
      EXPECT_TRUE(log->RemoveSegmentsBelow(segment).ok());
    }
  }
  StatusOr<uint64_t> CommitNext() { return Commit(writer.get(), {1, next++}, 1000); }
  void Stop() {
    writer.reset();
    EXPECT_TRUE(log->Stop().ok());
  }

  std::unique_ptr<Log> log;
  std::unique_ptr<LogWriter> writer;
  uint64_t next = 1;          // transaction
  uint64_t segment = 0;       // the log is needed from here on
  uint64_t first_needed = 1;  // first transaction in it
};

TEST(ReusedSegments, AreReadAsIfTheyWereNew) {
  FaultyFileSystem disk(1);
  MakeLogDirectory(&disk);
  ReusingLog reusing(&disk, 5);
  // How much goes into a batch, and so into a segment, depends on how busy the machine is.
  size_t reused = 0;
  for (int more = 0; reused == 0 && more < 20; ++more) {
    if (more > 0) reusing.GiveAway(1);
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(reusing.CommitNext().ok());
    for (const std::string& name : NamesWith(disk, "log-")) reused += IsReused(disk, name) ? 1 : 0;
  }
  reusing.Stop();
  EXPECT_GT(reused, 0u);
  const Recovered recovered = Recover(disk, reusing.segment);
  EXPECT_EQ(recovered.epochs.size(), reusing.next - reusing.first_needed);
  for (uint64_t n = reusing.first_needed; n < reusing.next; ++n) EXPECT_TRUE(recovered.Has({1, n})) << n;
  reusing.log.reset();
  EXPECT_TRUE(NamesWith(disk, "new-segment-").empty()) << "nobody asked for them to be kept";
}

TEST(ReusedSegments, KeepWhatWasDurableThroughPowerCuts) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    FaultyFileSystem disk(seed);
    MakeLogDirectory(&disk);
    ReusingLog reusing(&disk, 3);
    uint64_t durable = 0;  // transactions below this are durable
    for (uint64_t i = 0; i < 20 * seed; ++i) {
      const StatusOr<uint64_t> epoch = reusing.CommitNext();
      ASSERT_TRUE(epoch.ok());
      if (i % 50 == 20) {
        ASSERT_TRUE(reusing.log->WaitDurable(*epoch, kLongEnough).ok());
        durable = reusing.next;
      }
    }
    const auto copy = disk.CrashedCopy(seed * 7);
    const Recovered recovered = Recover(*copy, reusing.segment);
    for (uint64_t n = reusing.first_needed; n < durable; ++n)
      ASSERT_TRUE(recovered.Has({1, n})) << "seed " << seed << ": " << n;

    // Transactions appended after that are found, too.
    auto again = StartLog(copy.get(), recovered.end, SmallSegments());
    auto other = *again->OpenWriter();
    for (uint64_t n = 0; n < 300; ++n) ASSERT_TRUE(Commit(other.get(), {2, n}, 1000).ok());
    other.reset();
    ASSERT_TRUE(again->Stop().ok());
    const Recovered all = Recover(*copy, reusing.segment);
    for (uint64_t n = reusing.first_needed; n < durable; ++n)
      ASSERT_TRUE(all.Has({1, n})) << "seed " << seed << ": " << n;
    for (uint64_t n = 0; n < 300; ++n) ASSERT_TRUE(all.Has({2, n})) << "seed " << seed << ": " << n;
  }
}

// The last segment has old batches after its end. A torn batch is dropped; a damaged batch with another one after it is
// refused.
TEST(ReusedSegments, TornOrDamaged) {
  FaultyFileSystem disk(3);
  MakeLogDirectory(&disk);
  ReusingLog reusing(&disk, 3);
  const auto read = [&](FileSystem& files) {
    return ReadLog(files, kLogDirectory, {.from_segment = reusing.segment}, TransactionVisitor());
  };
  // The log thread may not have had the time to prepare a file for this segment.
  for (int more = 0; more < 100 && !IsReused(disk, SegmentName(reusing.segment)); ++more) reusing.GiveAway(1);
  // The epoch of transactions in older segments may be closed in this one. After that each commit is a batch of one
  // block.
  ASSERT_TRUE(reusing.log->WaitDurable(reusing.log->last_dirty_epoch(), kLongEnough).ok());
  const auto before = read(*disk.CrashedCopy(1));
  ASSERT_TRUE(before.ok()) << before.status();
  for (int i = 0; i < 3; ++i) {
    const StatusOr<uint64_t> epoch = reusing.CommitNext();
    ASSERT_TRUE(reusing.log->WaitDurable(*epoch, kLongEnough).ok());
  }
  const uint64_t end = before->end.offset + 3 * kDiskBlockBytes;
  const std::string path = std::string(kLogDirectory) + "/" + SegmentName(reusing.segment);
  ASSERT_TRUE(IsReused(disk, SegmentName(reusing.segment)));
  const auto whole = disk.CrashedCopy(1);
  const auto summary = read(*whole);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->end.offset, end);

  const auto torn = disk.CrashedCopy(1);
  ASSERT_TRUE(torn->FlipBit(path, end - kDiskBlockBytes + 512, 3).ok());
  const auto without = read(*torn);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->end.offset, end - kDiskBlockBytes);
  EXPECT_TRUE(without->torn_tail);

  for (const uint64_t offset : {end - 2 * kDiskBlockBytes + 512, end - 2 * kDiskBlockBytes + 20}) {
    const auto damaged = disk.CrashedCopy(1);
    ASSERT_TRUE(damaged->FlipBit(path, offset, 3).ok());
    EXPECT_TRUE(absl::IsDataLoss(read(*damaged).status())) << read(*damaged).status();
  }
}

TEST(PreallocatedLog, IsMadeOnce) {
  FaultyFileSystem disk(1);
  MakeLogDirectory(&disk);
  LogEnd end;
  const uint64_t bytes = 8 * kSegment;
  uint64_t allocations = 0;
  for (int run = 0; run < 3; ++run) {
    ReusingLog reusing(&disk, 0, end, bytes);
    EXPECT_GE((NamesWith(disk, "new-segment-").size() + 1) * kSegment, bytes);
    const uint64_t before = disk.operations(DiskOperation::kAllocate);
    if (run > 0) {
      EXPECT_LE(before - allocations, 6u) << "but for those that became segments";
    }
    reusing.GiveAway(4);
    EXPECT_EQ(disk.operations(DiskOperation::kAllocate), before) << "there is enough for all that";
    allocations = before;
    reusing.Stop();
    end.segment += 100;  // a later run
    ++end.run;
    end.next_batch += 10000;
  }
  // Files of another size cannot be used.
  LogOptions larger = SmallSegments(0);
  auto log = StartLog(&disk, end, larger);
  EXPECT_LE(NamesWith(disk, "new-segment-").size(), 1u)
      << "what nobody asks for is removed; one is for the next commits";
}

}  // namespace reused_segment_test
}  // namespace gannet::log
