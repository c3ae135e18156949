// QuiescentInterval (txn/session/quiescent_interval.h): a transaction that reads many records need not validate each of
// them if no session changed a record meanwhile, and still notices every change.
#include "txn/session/quiescent_interval.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/cache_line.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/lock_word.h"
#include "index/record_header.h"
#include "txn/database.h"
#include "txn/run/database_state.h"
#include "txn/run/manual_transaction.h"

namespace gannet::txn {
namespace quiescent_interval_test {

TEST(ChangeCountersTest, TellWhetherASessionIsInTheMiddleOfAChange) {
  ChangeCounters counters;
  uint64_t begun = 99;
  EXPECT_TRUE(counters.BegunAndEnded(&begun));
  EXPECT_EQ(begun, 0u);
  ChangeCounter* const first = counters.Of(0);
  ChangeCounter* const last = counters.Of(ChangeCounters::kMostSessions - 1);
  { const ChangingRecords changing(first); }
  {
    const ChangingRecords changing(last);
    EXPECT_FALSE(counters.BegunAndEnded(&begun));
    EXPECT_EQ(counters.Begun(), 2u);
  }
  EXPECT_TRUE(counters.BegunAndEnded(&begun));
  EXPECT_EQ(begun, 2u);
  EXPECT_EQ(counters.Of(0), first);  // of the next session with this number
}

TEST(QuiescentIntervalTest, EndsWithTheNextChange) {
  constexpr size_t kMany = QuiescentInterval::kManyRecords;
  ChangeCounters counters;
  ChangeCounter* const writer = counters.Of(3);
  QuiescentInterval quiescent;
  quiescent.Look(&counters, QuiescentInterval::kLeastRecords - 1, 0);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, kMany), kMany) << "nobody has looked";
  quiescent.Look(&counters, kMany, 0);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 5 * kMany), kMany);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 10), 10u) << "it has forgotten some";
  quiescent.Look(&counters, 2 * kMany, 0);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 5 * kMany), kMany) << "the first look counts";
  { const ChangingRecords changing(writer); }
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 5 * kMany), 5 * kMany);
  quiescent.Clear();
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, kMany), kMany);

  // A change that is in progress at the first look, and at the end.
  std::optional<ChangingRecords> changing;
  changing.emplace(writer);
  quiescent.Look(&counters, kMany, 0);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 5 * kMany), 5 * kMany);
  changing.reset();
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 5 * kMany), 5 * kMany);
  quiescent.Look(&counters, 2 * kMany, 0);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 5 * kMany), 2 * kMany);
  changing.emplace(counters.Of(7));  // a session that was opened later
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 5 * kMany), 5 * kMany);

  quiescent.Clear();
  quiescent.Look(nullptr, kMany, 0);  // on a node that counts no changes
  EXPECT_EQ(quiescent.RecordsInDoubt(nullptr, kMany), kMany);
}

TEST(QuiescentIntervalTest, IsLookedForOnlyWhereItIsWorthIt) {
  constexpr size_t kLeast = QuiescentInterval::kLeastRecords;
  ChangeCounters counters;
  ChangeCounter* const writer = counters.Of(0);
  QuiescentInterval quiescent;
  quiescent.Look(&counters, 0, kLeast - 1);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, kLeast), kLeast) << "too few records";
  quiescent.Look(&counters, 0, kLeast);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, kLeast), 0u) << "none was read before the look";

  // It ended too early: the next ones with few records do not look.
  { const ChangingRecords changing(writer); }
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, kLeast), kLeast);
  for (int i = 0; i < QuiescentInterval::kPause; ++i) {
    quiescent.Clear();
    quiescent.Look(&counters, 0, kLeast);
    quiescent.Look(&counters, 10, kLeast);
    EXPECT_EQ(quiescent.RecordsInDoubt(&counters, kLeast), kLeast) << i;
  }
  quiescent.Clear();
  quiescent.Look(&counters, 0, kLeast);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, kLeast), 0u) << "the pause is over";
  { const ChangingRecords changing(writer); }
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, kLeast), kLeast);
  quiescent.Clear();
  quiescent.Look(&counters, 0, QuiescentInterval::kManyRecords);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, QuiescentInterval::kManyRecords), 0u)
      << "with many records, each looks";

  // Many sessions, whose counters take long to look at.
  counters.Of(2 * QuiescentInterval::kManyRecords / QuiescentInterval::kRecordsForSession - 1);
  quiescent.Clear();
  quiescent.Look(&counters, 0, 2 * QuiescentInterval::kManyRecords - 1);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 2 * QuiescentInterval::kManyRecords),
            2 * QuiescentInterval::kManyRecords);
  quiescent.Look(&counters, 100, 2 * QuiescentInterval::kManyRecords - 100);
  EXPECT_EQ(quiescent.RecordsInDoubt(&counters, 2 * QuiescentInterval::kManyRecords), 100u);
}

struct TableShape {
  const char* name;
  IndexKind index;
  index::KeyKind keys;
  size_t key_bytes;
};

constexpr uint64_t kRows = 3000;
constexpr uint64_t kBlock = 100;
static_assert(kRows % kBlock == 0 && kBlock >= QuiescentInterval::kLeastRecords &&
              kBlock < QuiescentInterval::kManyRecords);
constexpr int64_t kBalance = 1000;

// Rows with the same number each.
class QuiescentTableTest : public testing::TestWithParam<TableShape> {
 protected:
  void SetUp() override {
    auto database = Database::OpenInMemory({.memory_bytes = uint64_t{1} << 28});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    const auto table = database_->CreateTable({.name = "rows",
                                               .key_kind = GetParam().keys,
                                               .max_key_bytes = GetParam().key_bytes,
                                               .index = GetParam().index,
                                               .payload_bytes = sizeof(int64_t)});
    ASSERT_TRUE(table.ok()) << table.status();
    table_ = *table;
    ASSERT_TRUE(database_->Start().ok());
    const Status loaded = database_->Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t row = 0; row < kRows; ++row) {
        GANNET_RETURN_IF_ERROR(t.Insert(*table_, KeyOf(2 * row).view(), kBalance));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(loaded.ok()) << loaded;
  }

  static KeyCopy KeyOf(uint64_t number) {
    if (GetParam().keys == index::KeyKind::kInteger) return KeyCopy(Key(number));
    const std::string digits = std::to_string(number);
    return KeyCopy(std::string(8 - digits.size(), '0') + digits);
  }
  ManualTransaction Begin() {
    StatusOr<ManualTransaction> begun = database_->Begin();
    EXPECT_TRUE(begun.ok()) << begun.status();
    return *std::move(begun);
  }
  // The sum of the rows of a block, by a scan that tells how many there are.
  StatusOr<int64_t> SumOfBlock(BlockingTransaction& t, uint64_t block) {
    ScanRows rows;
    const KeyCopy from = KeyOf(2 * block * kBlock);
    const KeyCopy to = KeyOf(2 * kRows);
    GANNET_RETURN_IF_ERROR(t.Scan(*table_, {.from = from.view(), .to = to.view(), .limit = kBlock}, &rows));
    int64_t sum = 0;
    for (size_t i = 0; i < rows.size(); ++i) sum += rows.As<int64_t>(i);
    return sum;
  }
  // The sum of `rows` rows from number `first` on. (The cursor reads some rows behind them, too.)
  StatusOr<int64_t> Sum(BlockingTransaction& t, uint64_t first = 0, uint64_t rows = kRows) {
    BlockingCursor cursor = t.Rows(*table_);
    int64_t sum = 0;
    uint64_t read = 0;
    Status status = cursor.SeekForward(KeyOf(2 * first).view());
    for (; status.ok() && cursor.valid() && read < rows; status = cursor.Next(), ++read) sum += cursor.As<int64_t>();
    if (!status.ok()) return status;
    return sum;
  }
  void Update(uint64_t row, int64_t number) {
    const Status status =
        database_->Run([&](BlockingTransaction& t) { return t.Update(*table_, KeyOf(2 * row).view(), number); });
    ASSERT_TRUE(status.ok()) << status;
  }
  std::byte* RecordOf(uint64_t row) {
    return database_->state().node->memory().data() + table_->local_index().Find(KeyOf(2 * row).view()).record.offset();
  }

  // A record that is locked now, and null if there is none.
  std::byte* LockedRecord() {
    const DatabaseState& state = database_->state();
    const rdma::SlabStatistics memory = state.slab->statistics();
    std::byte* const records = state.node->memory().data() + RoundUp(state.node->writable_offset(), kLineBytes);
    for (size_t at = 0; at < memory.carved_bytes - memory.read_only_carved_bytes; at += kLineBytes) {
      if (index::IsLocked(LoadWord(records + at))) return records + at;
    }
    return nullptr;
  }

  std::unique_ptr<Database> database_;
  const Table* table_ = nullptr;
};

TEST_P(QuiescentTableTest, ALockThatIsLostBeforeTheInstallStopsTheProgram) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ManualTransaction t = Begin();
  ASSERT_TRUE(t->Insert(*table_, KeyOf(1).view(), kBalance).ok());
  std::byte* const record = LockedRecord();
  ASSERT_NE(record, nullptr);
  EXPECT_DEATH(
      {
        StoreWord(record, LoadWord(record) & ~rdma::kLockBit);
        static_cast<void>(t.Commit());
      },
      "is changed without its lock \\(1\\); it has ");
  EXPECT_TRUE(t.Commit().ok());
}

// What no session does: a word changes without a counter. Only so can a test see which records are looked at twice.
TEST_P(QuiescentTableTest, RecordsAreNotLookedAtTwice) {
  const auto commits_after_change_of = [&](uint64_t row) {
    ManualTransaction t = Begin();
    const StatusOr<int64_t> sum = Sum(*t);
    EXPECT_TRUE(sum.ok() && *sum == kBalance * static_cast<int64_t>(kRows)) << sum.status();
    std::byte* const record = RecordOf(row);
    const uint64_t state = LoadWord(record);
    StoreWord(record, state + 1);
    const Status committed = t.Commit();
    StoreWord(record, state);
    EXPECT_TRUE(committed.ok() || absl::IsAborted(committed)) << committed;
    return committed.ok();
  };
  EXPECT_FALSE(commits_after_change_of(3)) << "it was read before the transaction had read many";
  EXPECT_TRUE(commits_after_change_of(kRows - 3));
}

// A scan that says how many rows it wants looks before the first.
TEST_P(QuiescentTableTest, RecordsOfAShortScanAreNotLookedAtTwice) {
  if (!table_->index_traits().scans_records) GTEST_SKIP() << "the keys are found before the records are read";
  ManualTransaction t = Begin();
  ASSERT_TRUE(SumOfBlock(*t, 1).ok());
  std::byte* const record = RecordOf(kBlock + 3);
  const uint64_t state = LoadWord(record);
  StoreWord(record, state + 1);
  const Status committed = t.Commit();
  StoreWord(record, state);
  EXPECT_TRUE(committed.ok()) << committed;
}

TEST_P(QuiescentTableTest, ChangesOfRowsOfAShortScanAreConflicts) {
  for (const uint64_t row : {kBlock, kBlock + kBlock / 2, 2 * kBlock - 1}) {
    ManualTransaction t = Begin();
    ASSERT_TRUE(SumOfBlock(*t, 1).ok());
    Update(row, kBalance);
    const Status committed = t.Commit();
    EXPECT_TRUE(absl::IsAborted(committed)) << "row " << row << ": " << committed;
  }
}

TEST_P(QuiescentTableTest, ChangesOfRowsThatWereReadAreConflicts) {
  for (const uint64_t row : {uint64_t{3}, kRows / 2, kRows - 3}) {
    ManualTransaction t = Begin();
    ASSERT_TRUE(Sum(*t).ok());
    Update(row, kBalance);
    const Status committed = t.Commit();
    EXPECT_TRUE(absl::IsAborted(committed)) << "row " << row << ": " << committed;
  }
}

TEST_P(QuiescentTableTest, ChangesOfOtherRowsAreNoConflicts) {
  ManualTransaction t = Begin();
  const StatusOr<int64_t> first = Sum(*t, 0, kRows / 3);
  ASSERT_TRUE(first.ok()) << first.status();
  Update(kRows - 3, kBalance + 5);
  const StatusOr<int64_t> second = Sum(*t, kRows / 2, kRows);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*first + *second, kBalance * static_cast<int64_t>(kRows / 3 + kRows / 2) + 5);
  const Status committed = t.Commit();
  EXPECT_TRUE(committed.ok()) << committed;
}

// The transaction has read the old row and the new one.
TEST_P(QuiescentTableTest, AChangeBetweenTwoReadsIsAConflict) {
  ManualTransaction t = Begin();
  ASSERT_TRUE(Sum(*t).ok());
  Update(kRows - 3, kBalance + 5);
  const StatusOr<int64_t> again = Sum(*t);
  if (again.ok()) {
    EXPECT_EQ(*again, kBalance * static_cast<int64_t>(kRows) + 5);
  }
  EXPECT_TRUE(absl::IsAborted(t.Commit()));
}

TEST_P(QuiescentTableTest, InsertsAndRemovalsAreConflicts) {
  for (const bool insert : {true, false}) {
    ManualTransaction t = Begin();
    ASSERT_TRUE(Sum(*t).ok());
    const Status changed = database_->Run([&](BlockingTransaction& other) {
      if (insert) return other.Insert(*table_, KeyOf(2 * kRows - 5).view(), kBalance);
      return other.Remove(*table_, KeyOf(2 * kRows - 5).view());
    });
    ASSERT_TRUE(changed.ok()) << changed;
    EXPECT_TRUE(absl::IsAborted(t.Commit())) << insert;
  }
}

// A row that was read for update comes into the read set at the commit or validation, long after it was read.
TEST_P(QuiescentTableTest, ARowReadForUpdateBeforeIsValidated) {
  for (const bool commit : {true, false}) {
    ManualTransaction t = Begin();
    int64_t number = 0;
    const auto handle = t->GetForUpdate(*table_, KeyOf(2 * (kRows - 3)).view(), &number);
    ASSERT_TRUE(handle.ok()) << handle.status();
    Update(kRows - 3, kBalance + 5);
    ASSERT_TRUE(Sum(*t, 0, kRows / 3).ok());
    const Status status = commit ? t.Commit() : t->Validate();
    EXPECT_TRUE(absl::IsAborted(status)) << commit << ": " << status;
  }
}

TEST_P(QuiescentTableTest, AWriterValidatesAllThatItRead) {
  for (const uint64_t row : {uint64_t{3}, kRows - 3}) {
    ManualTransaction t = Begin();
    ASSERT_TRUE(Sum(*t).ok());
    ASSERT_TRUE(t->Insert(*table_, KeyOf(2 * kRows + 2 * row).view(), kBalance).ok());
    Update(row, kBalance);
    EXPECT_TRUE(absl::IsAborted(t.Commit())) << row;
  }
}

// Transfers between the rows of a block leave its sum as it is, in bursts with pauses in which a quiescent interval
// lasts.
TEST_P(QuiescentTableTest, SumsAreRightWhileOthersWrite) {
  constexpr int kWriters = 2;
  constexpr auto kFor = std::chrono::milliseconds(700);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> transfers{0};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      Random random(static_cast<uint64_t>(writer) + 1);
      while (!stop) {
        for (uint64_t burst = random.Below(20); burst > 0; --burst) {
          const uint64_t block = random.Below(kRows / kBlock) * kBlock;
          const uint64_t place = random.Below(kBlock);
          const uint64_t from = block + place;
          const uint64_t to = block + (place + 1 + random.Below(kBlock - 1)) % kBlock;
          const Status moved = database_->Run([&](BlockingTransaction& t) -> Status {
            int64_t of_from = 0;
            int64_t of_to = 0;
            GANNET_RETURN_IF_ERROR(t.Get(*table_, KeyOf(2 * from).view(), &of_from));
            GANNET_RETURN_IF_ERROR(t.Get(*table_, KeyOf(2 * to).view(), &of_to));
            GANNET_RETURN_IF_ERROR(t.Update(*table_, KeyOf(2 * from).view(), of_from - 7));
            return t.Update(*table_, KeyOf(2 * to).view(), of_to + 7);
          });
          ASSERT_TRUE(moved.ok()) << moved;
          ++transfers;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random.Below(3000)));
      }
    });
  }
  const auto end = std::chrono::steady_clock::now() + kFor;
  uint64_t sums = 0;
  const auto expect_sum = [&](uint64_t rows, const std::function<StatusOr<int64_t>(BlockingTransaction&)>& sum_of) {
    int64_t sum = 0;
    const Status read = database_->Run([&](BlockingTransaction& t) -> Status {
      const StatusOr<int64_t> found = sum_of(t);
      if (!found.ok()) return found.status();
      sum = *found;
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_EQ(sum, kBalance * static_cast<int64_t>(rows));
    ++sums;
  };
  while (std::chrono::steady_clock::now() < end) {
    expect_sum(kRows, [&](BlockingTransaction& t) { return Sum(t); });
    for (uint64_t block = 0; block < kRows / kBlock; ++block) {
      expect_sum(kBlock, [&](BlockingTransaction& t) { return SumOfBlock(t, block); });
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(sums, 0u);
  EXPECT_GT(transfers, 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, QuiescentTableTest,
                         testing::Values(TableShape{"XStore", IndexKind::kXStore, index::KeyKind::kInteger, 8},
                                         TableShape{"XStoreShort", IndexKind::kXStore, index::KeyKind::kBytes, 16},
                                         TableShape{"XStoreLong", IndexKind::kXStore, index::KeyKind::kBytes, 64},
                                         TableShape{"Blink", IndexKind::kBlink, index::KeyKind::kBytes, 64},
                                         TableShape{"Rolex", IndexKind::kRolex, index::KeyKind::kInteger, 8},
                                         TableShape{"Dex", IndexKind::kDex, index::KeyKind::kInteger, 8},
                                         TableShape{"Dolphin", IndexKind::kDolphin, index::KeyKind::kBytes, 24}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace quiescent_interval_test
}  // namespace gannet::txn
