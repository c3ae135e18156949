// The log on a failing disk: nothing is acknowledged that is not durable, and work continues when the disk works again.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "log/format/segment_format.h"
#include "log/log.h"
#include "tests/log/log_test_helpers.h"

namespace gannet::log {
namespace log_failure_test {

using testing::HasSubstr;

// Waits for `done`, up to a minute for busy machines.
template <class Done>
bool Eventually(Done done) {
  for (int i = 0; i < 60'000; ++i) {
    if (done()) return true;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return false;
}

struct Fault {
  const char* name;
  DiskOperation operation;
  bool short_write;
};

class LogFailureTest : public testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    MakeLogDirectory(&disk_);
    log_ = StartLog(&disk_, {}, SmallLog());
    writer_ = log_->OpenWriter().value();
    ASSERT_TRUE(log_->WaitDurable(Commit(writer_.get(), {1, 0}, 100).value(), kLongEnough).ok());
  }

  void FailNext(uint64_t times) {
    const Fault& fault = GetParam();
    disk_.Schedule({.operation = fault.operation, .times = times, .short_write = fault.short_write});
  }

  FaultyFileSystem disk_{11};
  std::unique_ptr<Log> log_;
  std::unique_ptr<LogWriter> writer_;
};

TEST_P(LogFailureTest, OneErrorCostsASegmentAndNothingElse) {
  FailNext(1);
  const uint64_t epoch = Commit(writer_.get(), {1, 1}, 100).value();
  ASSERT_TRUE(log_->WaitDurable(epoch, kLongEnough).ok());
  EXPECT_EQ(log_->statistics().failures, 1u);
  EXPECT_EQ(log_->statistics().segments, 2u);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Recovered recovered = Recover(*disk_.CrashedCopy(seed));
    EXPECT_TRUE(recovered.Has({1, 0}));
    EXPECT_TRUE(recovered.Has({1, 1}));
  }
}

TEST_P(LogFailureTest, WhileTheDiskFailsNothingIsAcknowledged) {
  FailNext(UINT64_MAX);
  const uint64_t epoch = Commit(writer_.get(), {1, 1}, 100).value();
  ASSERT_TRUE(Eventually([&] { return !log_->health().ok(); }));
  EXPECT_TRUE(absl::IsDataLoss(log_->health())) << log_->health();
  EXPECT_THAT(std::string(log_->health().message()), HasSubstr(kLogDirectory));
  bool wait = true;
  EXPECT_TRUE(absl::IsDataLoss(writer_->Reserve(100, &wait)));
  EXPECT_FALSE(wait);
  EXPECT_TRUE(absl::IsDataLoss(log_->BeginSegment().status()));
  const Status late = log_->WaitDurable(epoch, absl::Milliseconds(10));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late));
  EXPECT_THAT(std::string(late.message()), HasSubstr(kLogDirectory));
  EXPECT_LT(log_->durable_epoch(), epoch);
  for (uint64_t seed = 0; seed < 20; ++seed) EXPECT_TRUE(Recover(*disk_.CrashedCopy(seed)).Has({1, 0}));

  disk_.Heal();
  EXPECT_TRUE(log_->WaitDurable(epoch, kLongEnough).ok());
  ASSERT_TRUE(Eventually([&] { return log_->health().ok(); }));
  const uint64_t next = Commit(writer_.get(), {1, 2}, 100).value();
  ASSERT_TRUE(log_->WaitDurable(next, kLongEnough).ok());
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Recovered recovered = Recover(*disk_.CrashedCopy(seed));
    for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(recovered.Has({1, i}));
    EXPECT_EQ(recovered.epochs.size(), 3u);
  }
}

// A segment is created under another name than its final one.
TEST_P(LogFailureTest, ErrorsNameTheSegmentAsItIsCalled) {
  const std::string segments = std::string(kLogDirectory) + "/log-";
  const Fault& fault = GetParam();
  disk_.Schedule(
      {.operation = fault.operation, .times = UINT64_MAX, .path_contains = segments, .short_write = fault.short_write});
  ASSERT_TRUE(Commit(writer_.get(), {1, 1}, 100).ok());
  ASSERT_TRUE(Eventually([&] { return !log_->health().ok(); }));
  EXPECT_THAT(std::string(log_->health().message()), HasSubstr(segments));
}

TEST_P(LogFailureTest, StopSaysWhatIsNotDurable) {
  FailNext(UINT64_MAX);
  ASSERT_TRUE(Commit(writer_.get(), {1, 1}, 100).ok());
  EXPECT_TRUE(absl::IsDataLoss(log_->Stop()));
}

TEST_P(LogFailureTest, StopWritesWhatFailedBeforeIfTheDiskIsWell) {
  FailNext(UINT64_MAX);
  ASSERT_TRUE(Commit(writer_.get(), {1, 1}, 100).ok());
  ASSERT_TRUE(Eventually([&] { return !log_->health().ok(); }));
  disk_.Heal();
  EXPECT_TRUE(log_->Stop().ok());
  EXPECT_TRUE(Recover(*disk_.CrashedCopy(3)).Has({1, 1}));
}

// Workers commit while operations fail at random and crashes are taken at random moments.
TEST_P(LogFailureTest, ErrorsNowAndThenLoseNothingThatWasAcknowledged) {
  constexpr uint64_t kThreads = 2;
  constexpr uint64_t kCommits = 1000;
  FaultOptions faults;
  switch (GetParam().operation) {
    case DiskOperation::kSync:
      faults.sync_error_one_in = 5;
      break;
    default:
      (GetParam().short_write ? faults.short_write_one_in : faults.write_error_one_in) = 5;
  }
  disk_.SetOptions(faults);
  FailNext(1);  // at least one fault
  std::map<Name, uint64_t> epochs[kThreads];
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto writer = log_->OpenWriter().value();
      for (uint64_t i = 0; i < kCommits;) {
        const StatusOr<uint64_t> epoch = Commit(writer.get(), {10 + t, i}, i % 500);
        if (epoch.ok()) {
          epochs[t][{10 + t, i++}] = *epoch;
        } else {
          absl::SleepFor(absl::Microseconds(100));
        }
      }
      --running;
    });
  }
  std::vector<std::pair<uint64_t, Recovered>> crashes;
  for (uint64_t seed = 1; running != 0; ++seed) {
    const uint64_t durable = log_->durable_epoch();
    if (crashes.size() < 30) crashes.emplace_back(durable, Recover(*disk_.CrashedCopy(seed)));
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  disk_.Heal();
  ASSERT_TRUE(log_->WaitDurable(log_->last_dirty_epoch(), kLongEnough).ok());
  crashes.emplace_back(log_->durable_epoch(), Recover(*disk_.CrashedCopy(999)));
  for (const auto& [durable, recovered] : crashes) {
    EXPECT_GE(recovered.end.recovered_epoch, durable);
    for (const auto& committed : epochs) {
      for (const auto& [name, epoch] : committed)
        EXPECT_EQ(recovered.Has(name), epoch <= recovered.end.recovered_epoch) << name.first << " " << name.second;
    }
  }
  EXPECT_GT(log_->statistics().failures, 0u);
}

INSTANTIATE_TEST_SUITE_P(Faults, LogFailureTest,
                         testing::Values(Fault{"Sync", DiskOperation::kSync, false},
                                         Fault{"Write", DiskOperation::kWrite, false},
                                         Fault{"ShortWrite", DiskOperation::kWrite, true}),
                         [](const auto& param) { return std::string(param.param.name); });

class FullDiskTest : public testing::Test {
 protected:
  void SetUp() override { MakeLogDirectory(&disk_); }

  // Commits until the log refuses; returns why.
  Status Fill(LogWriter* writer, uint64_t thread, std::atomic<uint64_t>* last) {
    for (uint64_t i = 0;; ++i) {
      const StatusOr<uint64_t> epoch = Commit(writer, {thread, i}, 1000);
      if (!epoch.ok()) return epoch.status();
      RaiseTo(last, *epoch);
      ++committed_;
    }
  }

  FaultyFileSystem disk_{12, {.capacity_bytes = 2 << 20}};
  std::atomic<uint64_t> committed_{0};
};

TEST_F(FullDiskTest, WhatIsUnderWayBecomesDurableAndWorkGoesOnWhenThereIsRoom) {
  constexpr uint64_t kThreads = 3;
  auto log = StartLog(&disk_, {}, SmallLog());
  std::atomic<uint64_t> last{0};
  std::vector<std::unique_ptr<LogWriter>> writers;
  std::vector<Status> reasons(kThreads);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) writers.push_back(log->OpenWriter().value());
  for (uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] { reasons[t] = Fill(writers[t].get(), t, &last); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& reason : reasons) {
    EXPECT_TRUE(absl::IsResourceExhausted(reason)) << reason;
    EXPECT_THAT(std::string(reason.message()), testing::AllOf(HasSubstr(kLogDirectory), HasSubstr("free")));
  }
  EXPECT_GT(committed_, 300u);  // a batch may hold only one commit, in a block of 4 KiB
  ASSERT_TRUE(log->WaitDurable(last, kLongEnough).ok());
  EXPECT_EQ(Recover(*disk_.CrashedCopy(5)).epochs.size(), committed_);
  EXPECT_EQ(log->statistics().failures, 0u);

  disk_.SetCapacity(64 << 20);
  ASSERT_TRUE(Eventually([&] { return log->health().ok(); }));
  ASSERT_TRUE(log->WaitDurable(Commit(writers[0].get(), {50, 0}, 1000).value(), kLongEnough).ok());
  const Recovered recovered = Recover(*disk_.CrashedCopy(6));
  EXPECT_TRUE(recovered.Has({50, 0}));
  EXPECT_EQ(recovered.epochs.size(), committed_ + 1);
}

// Changes without room on the disk are refused before anything is installed, and other commits are not.
TEST_F(FullDiskTest, ALargeTransactionWithoutRoomIsRefusedAlone) {
  LogOptions options = SmallLog();
  options.large_buffer_bytes = 8 << 20;
  auto log = StartLog(&disk_, {}, options);
  auto writer = log->OpenWriter().value();
  const Status refused = Commit(writer.get(), {1, 0}, 3 << 20).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(kLogDirectory));
  for (uint64_t i = 0; i < 20; ++i) {
    const StatusOr<uint64_t> epoch = Commit(writer.get(), {2, i}, 1000);
    ASSERT_TRUE(epoch.ok()) << epoch.status();
    ASSERT_TRUE(log->WaitDurable(*epoch, kLongEnough).ok());
  }
  disk_.SetCapacity(64 << 20);
  StatusOr<uint64_t> epoch;
  ASSERT_TRUE(Eventually([&] { return (epoch = Commit(writer.get(), {1, 1}, 3 << 20)).ok(); }));
  ASSERT_TRUE(log->WaitDurable(*epoch, kLongEnough).ok());
  const Recovered recovered = Recover(*disk_.CrashedCopy(6));
  EXPECT_TRUE(recovered.Has({1, 1}));
  EXPECT_EQ(recovered.epochs.size(), 21u);
  EXPECT_EQ(log->statistics().failures, 0u);
}

TEST_F(FullDiskTest, StopIsFineIfAllIsDurable) {
  auto log = StartLog(&disk_, {}, SmallLog());
  auto writer = log->OpenWriter().value();
  std::atomic<uint64_t> last{0};
  ASSERT_TRUE(absl::IsResourceExhausted(Fill(writer.get(), 1, &last)));
  EXPECT_TRUE(log->Stop().ok());
  EXPECT_EQ(Recover(*disk_.CrashedCopy(5)).epochs.size(), committed_);
}

TEST_F(FullDiskTest, RemovingSegmentsMakesRoom) {
  auto log = StartLog(&disk_, {}, SmallLog());
  auto writer = log->OpenWriter().value();
  std::atomic<uint64_t> last{0};
  ASSERT_TRUE(absl::IsResourceExhausted(Fill(writer.get(), 1, &last)));
  ASSERT_TRUE(log->RemoveSegmentsBelow(log->statistics().segments).ok());
  ASSERT_TRUE(Eventually([&] { return log->health().ok(); }));
  EXPECT_TRUE(log->WaitDurable(Commit(writer.get(), {2, 0}, 1000).value(), kLongEnough).ok());
}
// A disk that is smaller than what is to be preallocated: segments have the sizes that they have without that.
TEST_F(FullDiskTest, ADiskWithoutRoomForPreallocationIsUsedToItsEnd) {
  LogOptions options = SmallLog();
  options.segment_bytes = 4 << 20;  // the disk has 2 MiB
  options.preallocate_bytes = 2 * options.segment_bytes;
  auto log = StartLog(&disk_, {}, options);
  EXPECT_TRUE(log->health().ok()) << log->health();
  auto writer = log->OpenWriter().value();
  std::atomic<uint64_t> last{0};
  EXPECT_TRUE(absl::IsResourceExhausted(Fill(writer.get(), 1, &last)));
  EXPECT_GT(committed_, 300u);
  ASSERT_TRUE(log->WaitDurable(last, kLongEnough).ok());
}

// While a checkpoint is written, the log does not take the room that the checkpoint needs, but what is free beyond it.
TEST_F(FullDiskTest, RoomBeyondWhatACheckpointNeedsIsUsedAtOnce) {
  constexpr uint64_t kKept = 8 << 20;
  LogOptions options = SmallLog();
  options.large_buffer_bytes = 1 << 20;
  auto log = StartLog(&disk_, {}, options);
  auto writer = log->OpenWriter().value();
  std::atomic<uint64_t> last{0};
  ASSERT_TRUE(absl::IsResourceExhausted(Fill(writer.get(), 1, &last)));
  ASSERT_TRUE(log->BeginSegment(/*give_back=*/true, kKept).ok());
  disk_.SetCapacity(kKept);  // less than that is free
  for (int i = 0; i < 20; ++i) {
    const Status refused = Commit(writer.get(), {2, 0}, i % 2 == 0 ? 100 : 500'000).status();
    ASSERT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    absl::SleepFor(absl::Milliseconds(2));  // retry_every is 1 ms
  }
  EXPECT_THAT(std::string(log->health().message()), HasSubstr("kept for the checkpoint"));
  disk_.SetCapacity(kKept + (16 << 20));
  const absl::Time by = absl::Now() + absl::Seconds(30);
  while (!log->health().ok() && absl::Now() < by) absl::SleepFor(absl::Milliseconds(1));
  for (const size_t bytes : {100, 500'000}) {
    const StatusOr<uint64_t> epoch = Commit(writer.get(), {3, bytes}, bytes);
    ASSERT_TRUE(epoch.ok()) << epoch.status();
    EXPECT_TRUE(log->WaitDurable(*epoch, kLongEnough).ok());
  }
}

// A large transaction that finds no room while it is kept is told so, and does not wait for the checkpoint.
TEST_F(FullDiskTest, ALargeTransactionDoesNotWaitForKeptRoom) {
  LogOptions options = SmallLog();
  options.large_buffer_bytes = 4 << 20;
  disk_.SetCapacity(3 << 20);
  auto log = StartLog(&disk_, {}, options);
  auto writer = log->OpenWriter().value();
  ASSERT_TRUE(log->BeginSegment(/*give_back=*/true, 3 << 20).ok());
  const Status refused = Commit(writer.get(), {1, 0}, 2 << 20).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("kept for the checkpoint"));
  disk_.SetCapacity(64 << 20);
  ASSERT_TRUE(log->RemoveSegmentsBelow(0).ok());
  StatusOr<uint64_t> epoch;
  ASSERT_TRUE(Eventually([&] { return (epoch = Commit(writer.get(), {1, 1}, 2 << 20)).ok(); }));
  EXPECT_TRUE(log->WaitDurable(*epoch, kLongEnough).ok());
}

// The disk goes from no free space to a little: the log opens, refuses commits with advice, and continues when there is
// space. Preallocation and an interrupted run make no difference.
TEST_F(FullDiskTest, AFullDiskAtTheBeginRefusesCommitsOnly) {
  LogEnd end;
  uint64_t run = 0;
  for (const uint64_t free : {0, 2, 5, 17, 40}) {
    SCOPED_TRACE(free);
    // What the run before has preallocated is not to be free space.
    const std::vector<std::string> names = *disk_.List(kLogDirectory);
    for (const std::string& name : names) {
      if (name.starts_with(kSpareSegmentPrefix)) {
        ASSERT_TRUE(disk_.Remove(absl::StrCat(kLogDirectory, "/", name)).ok());
      }
    }
    disk_.SetCapacity(uint64_t{1} << 30);
    const uint64_t used = (uint64_t{1} << 30) - *disk_.FreeBytes("/");
    disk_.SetCapacity(used + free * kDiskBlockBytes);
    LogOptions options = SmallLog();
    options.preallocate_bytes = run % 2 * 2 * options.segment_bytes;
    auto log = StartLog(&disk_, end, options);
    auto writer = log->OpenWriter().value();
    const Status refused = Commit(writer.get(), {run, 0}, 1000).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), testing::AllOf(HasSubstr(kLogDirectory), HasSubstr("checkpoint")));
    // A small segment, in addition to the run's own, takes up to 16 blocks.
    EXPECT_EQ(log->BeginSegment().ok(), free == 5 || free == 40);

    disk_.SetCapacity(uint64_t{1} << 30);
    ASSERT_TRUE(Eventually([&] { return log->health().ok(); }));
    ASSERT_TRUE(log->WaitDurable(Commit(writer.get(), {run, 1}, 1000).value(), kLongEnough).ok());
    writer.reset();
    if (free != 5) {
      EXPECT_TRUE(log->Stop().ok());
    } else {
      disk_.KillPrograms();
    }
    log.reset();
    const Recovered recovered = Recover(disk_);
    for (uint64_t each = 0; each <= run; ++each) EXPECT_TRUE(recovered.Has({each, 1}));
    EXPECT_EQ(recovered.epochs.size(), ++run);
    end = recovered.end;
  }
}

TEST_F(FullDiskTest, ARunThatNeverBeganClosesAndOpens) {
  { auto log = StartLog(&disk_, {}, SmallLog()); }
  const LogEnd end = Recover(disk_).end;
  disk_.SetCapacity(0);
  for (int again = 0; again < 3; ++again) {
    auto log = StartLog(&disk_, end, SmallLog());
    EXPECT_TRUE(absl::IsResourceExhausted(log->health())) << log->health();
    EXPECT_TRUE(log->Stop().ok()) << "nothing was committed";
    EXPECT_EQ(Recover(disk_).end.run, end.run);
  }
}

// A disk error without room for another segment: the batch is kept until there is room.
TEST_F(FullDiskTest, AnErrorOnAFullDiskIsSurvived) {
  auto log = StartLog(&disk_, {}, SmallLog());
  auto writer = log->OpenWriter().value();
  ASSERT_TRUE(log->WaitDurable(Commit(writer.get(), {1, 0}, 100).value(), kLongEnough).ok());
  disk_.SetCapacity(0);
  disk_.Schedule({.operation = DiskOperation::kSync, .times = 2});  // also of the segment that was made ahead
  const uint64_t epoch = Commit(writer.get(), {1, 1}, 100).value();
  ASSERT_TRUE(Eventually([&] { return absl::IsResourceExhausted(log->health()); }));
  EXPECT_LT(log->durable_epoch(), epoch);
  disk_.SetCapacity(16 << 20);
  ASSERT_TRUE(log->WaitDurable(epoch, kLongEnough).ok());
  EXPECT_TRUE(Recover(*disk_.CrashedCopy(5)).Has({1, 1}));
}

// A batch whose sync failed may be readable and yet not durable, even after another sync. If the log continues from it
// after its writer died, a power cut must not lose it.
TEST(LogFailure, WhatIsGoneOnFromIsDurableThoughItsSyncFailed) {
  int found = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    FaultyFileSystem disk(seed);
    MakeLogDirectory(&disk);
    auto log = StartLog(&disk, {}, SmallLog());
    auto writer = log->OpenWriter().value();
    const uint64_t first = Commit(writer.get(), {1, 0}, 100).value();
    ASSERT_TRUE(log->WaitDurable(first, kLongEnough).ok());
    disk.Schedule({.operation = DiskOperation::kSync, .times = UINT64_MAX});
    ASSERT_TRUE(Commit(writer.get(), {1, 1}, 100).ok());
    ASSERT_TRUE(Eventually([&] { return !log->health().ok(); }));
    disk.KillPrograms();
    writer.reset();
    log.reset();
    disk.Heal();
    const auto before = ReadLog(disk, kLogDirectory, {.make_durable = true}, nullptr);
    ASSERT_TRUE(before.ok()) << before.status();
    if (before->end.recovered_epoch > first) ++found;
    for (uint64_t crash = 0; crash < 10; ++crash) {
      const auto after = ReadLog(*disk.CrashedCopy(crash), kLogDirectory, {}, nullptr);
      ASSERT_TRUE(after.ok()) << after.status();
      EXPECT_EQ(after->end.recovered_epoch, before->end.recovered_epoch) << seed;
      EXPECT_EQ(after->end.next_batch, before->end.next_batch) << seed;
    }
  }
  EXPECT_GT(found, 0);
}

}  // namespace log_failure_test
}  // namespace gannet::log
