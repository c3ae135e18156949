// The log on a working disk: what was acknowledged is there after a crash, and what is there is a prefix.
#include "log/log.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "base/coro/worker.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "tests/log/log_test_helpers.h"

namespace gannet::log {
namespace log_test {

class LogTest : public testing::Test {
 protected:
  void SetUp() override { MakeLogDirectory(&disk_); }

  std::unique_ptr<Log> Open(const LogEnd& end = {}, const LogOptions& options = SmallLog()) {
    return StartLog(&disk_, end, options);
  }

  FaultyFileSystem disk_{1};
};

TEST_F(LogTest, ACommitIsThereAfterTheCrash) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  const uint64_t epoch = Commit(writer.get(), {1, 1}, 100).value();
  ASSERT_TRUE(log->WaitDurable(epoch, kLongEnough).ok());
  const Recovered recovered = Recover(*disk_.CrashedCopy(7));
  EXPECT_TRUE(recovered.Has({1, 1}));
  EXPECT_EQ(recovered.epochs.size(), 1u);
  EXPECT_EQ(recovered.end.recovered_epoch, epoch);
}

TEST_F(LogTest, StopFlushesAndThenNothingIsTaken) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(Commit(writer.get(), {1, i}, 10).ok());
  ASSERT_TRUE(log->Stop().ok());
  EXPECT_EQ(Recover(*disk_.CrashedCopy(7)).epochs.size(), 10u);
  bool wait = true;
  EXPECT_EQ(writer->Reserve(10, &wait).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(wait);
  EXPECT_EQ(log->BeginSegment().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LogTest, WhatAClosedWriterAppendedIsWritten) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  const uint64_t epoch = Commit(writer.get(), {1, 1}, 100).value();
  writer.reset();
  ASSERT_TRUE(log->WaitDurable(epoch, kLongEnough).ok());
  EXPECT_TRUE(Recover(*disk_.CrashedCopy(7)).Has({1, 1}));
  EXPECT_EQ(log->statistics().transactions, 1u);
}

TEST_F(LogTest, AnIdleLogWritesNothing) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  ASSERT_TRUE(log->WaitDurable(Commit(writer.get(), {1, 1}, 100).value(), kLongEnough).ok());
  const uint64_t epoch = log->current_epoch();
  const uint64_t batches = log->statistics().batches;
  absl::SleepFor(absl::Milliseconds(5));  // time for many rounds, if there were any
  EXPECT_EQ(log->current_epoch(), epoch);
  EXPECT_EQ(log->statistics().batches, batches);
}

Status ReserveSoon(LogWriter* writer, size_t bytes) {
  bool wait = true;
  while (true) {
    Status reserved = writer->Reserve(bytes, &wait);
    if (reserved.ok() || !wait) return reserved;
    absl::SleepFor(absl::Microseconds(50));
  }
}

TEST_F(LogTest, TooLargeATransactionIsRefused) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  bool wait = true;
  const size_t largest = SmallLog().large_buffer_bytes;
  EXPECT_EQ(writer->Reserve(largest + 8, &wait).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(wait);
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(Commit(writer.get(), {1, i}, largest - 200).ok());
  ASSERT_TRUE(log->Stop().ok());
  EXPECT_EQ(Recover(disk_).epochs.size(), 100u);
}

// They use different buffers, and both are recovered.
TEST_F(LogTest, LargeAndSmallTransactionsMix) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  const size_t small = SmallLog().buffer_bytes / 2 - 100;
  const size_t large = SmallLog().buffer_bytes;
  uint64_t last = 0;
  for (uint64_t i = 0; i < 60; ++i)
    last = Commit(writer.get(), {1, i}, i % 3 == 0 ? large : i % 3 == 1 ? small : 40).value();
  ASSERT_TRUE(log->WaitDurable(last, kLongEnough).ok());
  const Recovered recovered = Recover(*disk_.CrashedCopy(3));
  for (uint64_t i = 0; i < 60; ++i) EXPECT_TRUE(recovered.Has({1, i})) << i;
}

// An abort of a transaction that needs the large buffer returns its reservation there.
TEST_F(LogTest, WhatALargeTransactionReservedComesBack) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  const size_t bytes = SmallLog().large_buffer_bytes;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(ReserveSoon(writer.get(), bytes).ok());
    writer->Release(bytes);
  }
  ASSERT_TRUE(Commit(writer.get(), {1, 1}, bytes - 200).ok());
}

// Together they take at most the configured memory; small transactions do not wait for them.
TEST_F(LogTest, LargeTransactionsOfAllWritersShareOneBudget) {
  auto log = Open();
  auto first = log->OpenWriter().value();
  auto second = log->OpenWriter().value();
  const size_t bytes = SmallLog().large_buffer_bytes / 2 + 8;
  ASSERT_TRUE(ReserveSoon(first.get(), bytes).ok());
  for (int i = 0; i < 20; ++i) {
    bool wait = false;
    EXPECT_TRUE(absl::IsResourceExhausted(second->Reserve(bytes, &wait)));
    EXPECT_TRUE(wait);
    ASSERT_TRUE(Commit(second.get(), {2, static_cast<uint64_t>(i)}, 100).ok());
  }
  first->Release(bytes);
  ASSERT_TRUE(Commit(second.get(), {2, 100}, bytes - 200).ok());
  ASSERT_TRUE(Commit(first.get(), {1, 100}, bytes - 200).ok());
  ASSERT_TRUE(log->Stop().ok());
  EXPECT_EQ(Recover(disk_).epochs.size(), 22u);
}

TEST_F(LogTest, ACommitInItsSlotKeepsItsEpochOpen) {
  auto log = Open();
  auto slow = log->OpenWriter().value();
  auto fast = log->OpenWriter().value();
  const uint64_t entered = slow->Enter();
  const uint64_t epoch = Commit(fast.get(), {1, 1}, 100).value();
  ASSERT_GE(epoch, entered);
  EXPECT_TRUE(absl::IsDeadlineExceeded(log->WaitDurable(epoch, absl::Milliseconds(20))));
  slow->Leave(entered);
  EXPECT_TRUE(log->WaitDurable(epoch, kLongEnough).ok());
}

// An epoch that cannot be closed yet must not stop the buffers from being emptied.
TEST_F(LogTest, BuffersAreEmptiedWhileAnEpochIsOpen) {
  auto log = Open();
  auto slow = log->OpenWriter().value();
  auto fast = log->OpenWriter().value();
  const uint64_t entered = slow->Enter();
  uint64_t last = 0;
  for (uint64_t i = 0; i < 100; ++i) last = Commit(fast.get(), {1, i}, 2000).value();
  EXPECT_LT(log->durable_epoch(), entered);
  slow->Leave(entered);
  ASSERT_TRUE(log->WaitDurable(last, kLongEnough).ok());
  const Recovered recovered = Recover(*disk_.CrashedCopy(7));
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(recovered.Has({1, i}));
}

TEST_F(LogTest, BeginSegmentDividesBeforeFromAfter) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(Commit(writer.get(), {1, i}, 100).ok());
  const uint64_t segment = log->BeginSegment().value();
  const uint64_t begin_epoch = log->current_epoch();
  for (uint64_t i = 50; i < 100; ++i) ASSERT_GE(Commit(writer.get(), {1, i}, 100).value(), begin_epoch);
  ASSERT_TRUE(log->Stop().ok());
  for (const auto& [name, epoch] : Recover(disk_).epochs) EXPECT_EQ(epoch < begin_epoch, name.second < 50);

  ASSERT_TRUE(log->RemoveSegmentsBelow(segment).ok());
  const Recovered rest = Recover(disk_, segment);
  EXPECT_EQ(rest.epochs.size(), 50u);
  for (uint64_t i = 50; i < 100; ++i) EXPECT_TRUE(rest.Has({1, i}));
}

// Stops the log then. Returns the number of the last transaction; *segment: the log is needed from there on.
uint64_t CommitInSixSegments(Log* log, uint64_t* segment) {
  auto writer = log->OpenWriter().value();
  uint64_t next = 0;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 10; ++j) EXPECT_TRUE(Commit(writer.get(), {1, next++}, 100).ok());
    *segment = log->BeginSegment().value();
  }
  EXPECT_TRUE(Commit(writer.get(), {1, next}, 100).ok());
  EXPECT_TRUE(log->Stop().ok());
  return next;
}

void ExpectRecovered(FaultyFileSystem* crashed, uint64_t last) {
  const StatusOr<LogBegin> begin = FindLogBegin(*crashed, kLogDirectory);
  ASSERT_TRUE(begin.ok()) << begin.status();
  EXPECT_TRUE(Recover(*crashed, begin->segment > 1 ? begin->segment : 0).Has({1, last}));
}

// A power cut may keep any of the names that changed since the last sync of the directory.
TEST_F(LogTest, APowerCutWhileSegmentsAreRemovedLeavesNoGap) {
  constexpr uint64_t kCrashes = 16;
  auto log = Open();
  uint64_t segment = 0;
  const uint64_t last = CommitInSixSegments(log.get(), &segment);
  uint64_t crashes = 0;
  const auto crash = [&](DiskOperation operation, const std::string&) {
    if (operation != DiskOperation::kRename && operation != DiskOperation::kSyncDirectory) return;
    for (uint64_t i = 0; i < kCrashes; ++i) {
      ExpectRecovered(disk_.CrashedCopy(crashes++).get(), last);
    }
  };
  disk_.SetOptions({.before = crash});
  ASSERT_TRUE(log->RemoveSegmentsBelow(segment).ok());
  disk_.SetOptions({});
  EXPECT_GE(crashes, 2 * (segment - 1) * kCrashes);
}

// A later sync of the directory does not make a removal durable whose own sync has failed.
TEST_F(LogTest, NoSegmentGoesAfterOneThatMayComeBack) {
  auto log = Open();
  uint64_t segment = 0;
  const uint64_t last = CommitInSixSegments(log.get(), &segment);
  disk_.Schedule({.operation = DiskOperation::kSyncDirectory, .after = 1});
  for (int i = 0; i < 2; ++i) {
    const Status removed = log->RemoveSegmentsBelow(segment);
    EXPECT_THAT(removed.message(), testing::HasSubstr("may come back"));
    EXPECT_TRUE(log->RemoveSegmentsBelow(0).ok());
    for (uint64_t crash = 0; crash < 32; ++crash) {
      ExpectRecovered(disk_.CrashedCopy(crash).get(), last);
    }
  }
}

// The segment that a checkpoint asks for may get its name, although the directory cannot be synced.
TEST_F(LogTest, CommitsAfterASegmentThatCouldNotBeNamedCount) {
  for (const DiskOperation operation : {DiskOperation::kRename, DiskOperation::kSyncDirectory}) {
    FaultyFileSystem disk{1};
    MakeLogDirectory(&disk);
    auto log = StartLog(&disk, {}, SmallLog());
    auto writer = log->OpenWriter().value();
    ASSERT_TRUE(log->WaitDurable(Commit(writer.get(), {1, 0}, 100).value(), kLongEnough).ok());
    disk.Schedule({.operation = operation});
    EXPECT_FALSE(log->BeginSegment().ok());
    const StatusOr<uint64_t> epoch = Commit(writer.get(), {1, 1}, 100);
    ASSERT_TRUE(epoch.ok()) << epoch.status();
    ASSERT_TRUE(log->WaitDurable(*epoch, kLongEnough).ok());
    for (uint64_t crash = 0; crash < 32; ++crash) ExpectRecovered(disk.CrashedCopy(crash).get(), 1);
    EXPECT_TRUE(log->Stop().ok());
  }
}

coro::Task<void> CommitAndWait(Log* log, LogWriter* writer, uint64_t number, uint64_t deadline, int* durable) {
  const uint64_t epoch = Commit(writer, {1, number}, 50).value();
  struct Durable {
    LogWriter* writer;
    uint64_t epoch;
    uint64_t deadline;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle) const { writer->Await(epoch, deadline, handle); }
    void await_resume() const noexcept {}
  };
  const Durable wait{writer, epoch, deadline};
  co_await wait;
  if (log->durable_epoch() >= epoch) ++*durable;
}

TEST_F(LogTest, CoroutinesGoOnWhenTheirEpochIsDurable) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  coro::Worker worker;
  worker.AddPoller([&] {
    writer->SleepUntilDurable(1'000'000);
    return writer->Poll([&](std::coroutine_handle<> handle) { worker.Resume(handle); });
  });
  int durable = 0;
  for (uint64_t i = 0; i < 200; ++i) worker.Spawn(CommitAndWait(log.get(), writer.get(), i, UINT64_MAX, &durable));
  worker.Run();
  EXPECT_EQ(durable, 200);
  EXPECT_EQ(writer->waiting(), 0u);
}

TEST_F(LogTest, CoroutinesGoOnAtTheirDeadline) {
  auto log = Open();
  auto writer = log->OpenWriter().value();
  auto slow = log->OpenWriter().value();
  const uint64_t entered = slow->Enter();
  coro::Worker worker;
  worker.AddPoller([&] { return writer->Poll([&](std::coroutine_handle<> handle) { worker.Resume(handle); }); });
  int durable = 0;
  worker.Spawn(CommitAndWait(log.get(), writer.get(), 1, NowNanos() + 1'000'000, &durable));
  worker.Run();
  EXPECT_EQ(durable, 0);
  slow->Leave(entered);
}

// Several workers commit; now and then the test looks at one of the disks that a crash might leave. Half of the commits
// have a fixed order, as conflicting transactions have; a crash must leave a prefix of these.
struct History {
  std::mutex in_order;
  uint64_t next_in_order = 0;
  std::mutex mutex;
  std::map<Name, uint64_t> epochs;
};
constexpr uint64_t kInOrder = 99;

void CommitMany(LogWriter* writer, uint64_t thread, uint64_t first, uint64_t count, History* history) {
  Random random(thread * 1000 + first);
  for (uint64_t i = first; i < first + count; ++i) {
    Name name(thread, i);
    uint64_t epoch;
    if (random.OneIn(2)) {
      std::lock_guard locked(history->in_order);
      name = {kInOrder, history->next_in_order++};
      epoch = Commit(writer, name, random.Below(700)).value();
    } else {
      epoch = Commit(writer, name, random.Below(700)).value();
    }
    std::lock_guard locked(history->mutex);
    history->epochs[name] = epoch;
  }
}

struct Snapshot {
  uint64_t durable_before = 0;
  Recovered recovered;
};

void ExpectPrefix(const Snapshot& snapshot, const History& history) {
  const Recovered& recovered = snapshot.recovered;
  EXPECT_GE(recovered.end.recovered_epoch, snapshot.durable_before);
  for (const auto& [name, epoch] : history.epochs)
    EXPECT_EQ(recovered.Has(name), epoch <= recovered.end.recovered_epoch) << name.first << " " << name.second;
  for (const auto& [name, epoch] : recovered.epochs) EXPECT_EQ(epoch, history.epochs.at(name));
  uint64_t found = 0;
  for (uint64_t i = 0; i < history.next_in_order; ++i) {
    if (recovered.Has({kInOrder, i})) {
      EXPECT_EQ(i, found++) << "one before it is missing";
    }
  }
}

TEST_F(LogTest, EveryCrashLeavesAPrefixWithAllThatWasAcknowledged) {
  constexpr int kThreads = 3;
  constexpr uint64_t kCommits = 2000;
  auto log = Open();
  History history;
  std::vector<std::thread> threads;
  std::atomic<int> running = kThreads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      auto writer = log->OpenWriter().value();
      CommitMany(writer.get(), t, 0, kCommits, &history);
      --running;
    });
  }
  std::vector<Snapshot> snapshots;
  for (uint64_t seed = 1; running != 0 && seed < 40; ++seed) {
    Snapshot snapshot{.durable_before = log->durable_epoch(), .recovered = {}};
    snapshot.recovered = Recover(*disk_.CrashedCopy(seed));
    snapshots.push_back(std::move(snapshot));
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(log->WaitDurable(log->last_dirty_epoch(), kLongEnough).ok());
  snapshots.push_back({log->durable_epoch(), Recover(*disk_.CrashedCopy(77))});
  EXPECT_EQ(snapshots.back().recovered.epochs.size(), kThreads * kCommits);
  for (const Snapshot& snapshot : snapshots) ASSERT_NO_FATAL_FAILURE(ExpectPrefix(snapshot, history));
  EXPECT_GT(log->statistics().segments, 3u);
}

TEST_F(LogTest, RunAfterRunGoesOnWhereTheCrashLeftIt) {
  std::set<Name> must_be_there;
  LogEnd end;
  for (uint64_t run = 0; run < 20; ++run) {
    auto log = Open(end);
    EXPECT_GT(log->current_epoch(), end.last_epoch);
    auto writer = log->OpenWriter().value();
    std::map<Name, uint64_t> epochs;
    for (uint64_t i = 0; i < 30 + run; ++i) epochs[{run, i}] = Commit(writer.get(), {run, i}, 300).value();
    if (run % 3 != 0) {
      ASSERT_TRUE(log->WaitDurable(epochs[Name(run, run)], kLongEnough).ok());
    }
    const uint64_t durable = log->durable_epoch();
    disk_.PowerOff();
    writer.reset();
    log.reset();
    disk_.PowerOn();
    for (const auto& [name, epoch] : epochs) {
      if (epoch <= durable) must_be_there.insert(name);
    }
    const Recovered recovered = Recover(disk_);
    for (const Name& name : must_be_there) ASSERT_TRUE(recovered.Has(name)) << name.first << " " << name.second;
    // A name that was recovered once stays.
    for (const auto& [name, epoch] : recovered.epochs) {
      if (recovered.Has(name)) must_be_there.insert(name);
    }
    end = recovered.end;
  }
}

}  // namespace log_test
}  // namespace gannet::log
