// Tests when the log thread flushes: at once for a thread that is blocked alone, together for several, and rarely for
// nobody. Time is virtual, and a durable write takes 1 ms of it.
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "log/commit/blocked_threads.h"
#include "log/commit/group_pace.h"
#include "log/file/simulated/timed_disk.h"
#include "rdma/sim/simulation.h"
#include "tests/log/log_test_helpers.h"

namespace gannet::log {
namespace group_commit_test {

constexpr uint64_t kMilli = 1'000'000;
constexpr DiskProfile kDisk = {
    .name = "test", .durable_nanos = kMilli, .bytes_per_second = uint64_t{1} << 40, .source = "none"};
constexpr uint64_t kProcessorNanos = kMilli / 10;  // enough for what the threads compute from one flush to the next

class GroupCommitTest : public testing::Test {
 protected:
  void SetUp() override {
    MakeLogDirectory(&disk_);
    LogOptions options = SmallLog();
    options.group_commit = absl::Milliseconds(50);
    options.segment_bytes = options.preallocate_bytes = 8 << 20;  // no segment is begun meanwhile
    log_ = StartLog(&disk_, {}, options);
  }
  void TearDown() override { EXPECT_TRUE(log_->Stop().ok()); }

  // Commits `count` times, one after the other, each time until it is durable. Returns the longest time.
  uint64_t CommitDurably(uint64_t thread, uint64_t count, uint64_t think_nanos = 0) {
    auto writer = log_->OpenWriter().value();
    uint64_t longest = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t begun = NowNanos();
      EXPECT_TRUE(log_->WaitDurable(Commit(writer.get(), {thread, i}, 100).value(), kLongEnough).ok());
      longest = std::max(longest, NowNanos() - begun);
      if (think_nanos != 0) SleepForNanos(think_nanos);
    }
    return longest;
  }
  uint64_t batches() const { return log_->statistics().batches; }

  rdma::sim::Simulation simulation_{{.seed = 1}};
  TimedDisk disk_{std::make_unique<FaultyFileSystem>(1), kDisk};
  std::unique_ptr<Log> log_;
};

TEST_F(GroupCommitTest, ALoneWriterWaitsForTheDiskOnly) {
  const uint64_t before = batches();
  EXPECT_LT(CommitDurably(1, 20), kMilli + kProcessorNanos);
  EXPECT_EQ(batches() - before, 20u);
  SleepForNanos(1000 * kMilli);
  EXPECT_LT(CommitDurably(2, 1), kMilli + kProcessorNanos) << "after a pause";
  EXPECT_LT(CommitDurably(3, 20, 3 * kMilli), kMilli + kProcessorNanos) << "with pauses";
}

TEST_F(GroupCommitTest, WritersThatWaitShareFlushes) {
  constexpr uint64_t kWriters = 8;
  constexpr uint64_t kCommits = 30;
  const uint64_t before = batches();
  std::vector<uint64_t> longest(kWriters);
  std::vector<Thread> threads;
  for (uint64_t t = 0; t < kWriters; ++t)
    threads.emplace_back("writer", [&, t] { longest[t] = CommitDurably(t, kCommits); });
  for (Thread& thread : threads) thread.join();
  EXPECT_LE(batches() - before, kCommits + 5);
  for (const uint64_t each : longest) EXPECT_LE(each, 3 * kMilli);
}

// The others wait for a writer that has left, without result: once or twice, and at most as long as a flush takes.
TEST_F(GroupCommitTest, AWriterThatLeavesHoldsUpNobody) {
  for (uint64_t round = 0; round < 5; ++round) {
    Thread other("other", [&] { CommitDurably(10 + round, 3); });
    EXPECT_LE(CommitDurably(round, 10), 3 * kMilli);
    other.join();
    EXPECT_LT(CommitDurably(20 + round, 5), kMilli + kProcessorNanos);
  }
}

TEST_F(GroupCommitTest, ResultsThatNobodyIsBlockedForShareFlushes) {
  const uint64_t before = batches();
  auto writer = log_->OpenWriter().value();
  for (uint64_t i = 0; i < 1000; ++i) {
    writer->Want(Commit(writer.get(), {1, i}, 4).value());
    SleepForNanos(kMilli / 2);
  }
  EXPECT_LE(batches() - before, 11u) << "500 ms, a flush each 50 ms";
  EXPECT_LT(CommitDurably(2, 5), 2 * kMilli + kProcessorNanos) << "of a thread that is blocked, while others commit";
}

constexpr uint64_t kLongest = 300;

TEST(GroupPaceTest, AllThatWereAtWorkAreExpected) {
  GroupPace pace(kLongest);
  EXPECT_EQ(pace.expected(), 1u);
  pace.Flushed(1, 2, 100, 1000);
  EXPECT_EQ(pace.expected(), 3u);
  EXPECT_EQ(pace.patient_until(), 1100u);
  pace.Flushed(3, 0, 1000, 3000);
  EXPECT_EQ(pace.expected(), 3u);
  EXPECT_EQ(pace.patient_until(), 3000u + kLongest);
}

// Eight threads of which one commits at each flush, and the others while it runs: after waits without result the
// flushes do not wait, more and more of them, until all are there without a wait.
TEST(GroupPaceTest, WaitsInVainBecomeRare) {
  GroupPace pace(kLongest);
  pace.Flushed(1, 7, 100, 0);
  int waits = 0;
  for (int i = 0; i < 1000; ++i) {
    waits += pace.expected() > 1;
    pace.Flushed(1, 7, 100, 0);
  }
  EXPECT_GE(waits, 10) << "it tries again";
  EXPECT_LE(waits, 30);
  pace.Flushed(8, 0, 100, 0);
  EXPECT_EQ(pace.expected(), 8u);
}

TEST(BlockedThreadsTest, CountsThoseThatTheNextBatchServes) {
  BlockedThreads blocked;
  EXPECT_EQ(blocked.Take(9), 0u);
  blocked.SetFlushAt(2);
  EXPECT_FALSE(blocked.Add(10));
  EXPECT_TRUE(blocked.Add(11));
  EXPECT_EQ(blocked.Take(10), 1u);
  EXPECT_EQ(blocked.number(), 1u);
  EXPECT_FALSE(blocked.Add(10)) << "the batch has it";
  EXPECT_EQ(blocked.number(), 1u);
  EXPECT_EQ(blocked.Take(10), 0u);
  EXPECT_EQ(blocked.Take(100), 1u);
  EXPECT_EQ(blocked.number(), 0u);
}

}  // namespace group_commit_test
}  // namespace gannet::log
