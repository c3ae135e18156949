// Tables are widened while transactions run: durably and atomically, without a change of what their rows had.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/record_header.h"
#include "rdma/slab.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/table_kinds.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The payload of row n as it was written when the table had `bytes`.
std::vector<std::byte> PayloadOf(uint64_t n, size_t bytes) {
  std::vector<std::byte> payload(bytes);
  for (size_t i = 0; i < bytes; ++i) payload[i] = static_cast<std::byte>(1 + (n + i) % 255);
  return payload;
}

Status Put(Database& database, const Table& table, uint64_t n, size_t bytes) {
  return database.Run([&](BlockingTransaction& t) {
    return t.Upsert(table, KeyOf(table.options(), n).view(), std::span<const std::byte>(PayloadOf(n, bytes)));
  });
}

// Rows [0, rows) were written when the table had written[n % size] bytes.
void ExpectRows(Database& database, const Table& table, uint64_t rows, const std::vector<size_t>& written) {
  for (uint64_t n = 0; n < rows; ++n) {
    std::vector<std::byte> expected = PayloadOf(n, written[n % written.size()]);
    expected.resize(table.payload_bytes());
    std::vector<std::byte> payload(table.payload_bytes());
    const Status got = database.Run([&](BlockingTransaction& t) {
      return t.Get(table, KeyOf(table.options(), n).view(), std::span<std::byte>(payload));
    });
    ASSERT_TRUE(got.ok()) << got;
    ASSERT_EQ(payload, expected) << table.name() << ", row " << n;
  }
}

TEST(WidenTableTest, RowsGetZerosAtTheirEnd) {
  constexpr uint64_t kRows = 240;
  for (const bool direct : {true, false}) {
    auto shm = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{1} << 30});
    NicAtomics nic(shm->get());
    const Disk disk = NewDisk();
    DatabaseOptions in_directory{.directory = "/data", .create_if_missing = true, .files = disk};
    rdma::Fabric* const fabric = direct ? static_cast<rdma::Fabric*>(shm->get()) : &nic;
    const std::vector<TableOptions> kinds = AllKinds(24, /*variable_length=*/false);
    {
      auto database = Database::Open(fabric, 0, in_directory);
      ASSERT_TRUE(database.ok()) << database.status();
      ASSERT_TRUE((*database)->Start().ok());
      for (const TableOptions& options : kinds) {
        SCOPED_TRACE(absl::StrCat(options.name, direct ? "" : ", as from another node"));
        const Table& table = **(*database)->CreateTable(options);
        for (uint64_t n = 0; n < kRows; ++n) ASSERT_TRUE(Put(**database, table, n, 24).ok());
        const Status widened = (*database)->WidenTable(options.name, 1000);
        ASSERT_TRUE(widened.ok()) << widened;
        EXPECT_EQ(table.payload_bytes(), 1000u);
        ExpectRows(**database, table, kRows, {24});
        for (uint64_t n = 1; n < kRows; n += 3) ASSERT_TRUE(Put(**database, table, n, 1000).ok());
        EXPECT_TRUE(absl::IsInvalidArgument(Put(**database, table, 1, 24)));
        ASSERT_TRUE((*database)->WidenTable(options.name, 1001).ok());
        for (uint64_t n = 2; n < kRows; n += 3) ASSERT_TRUE(Put(**database, table, n, 1001).ok());
        ExpectRows(**database, table, kRows, {24, 1000, 1001});
        const TableStatistics statistics = (*database)->table_statistics().back();
        EXPECT_EQ(statistics.index.keys, kRows);
        EXPECT_GE(statistics.record_bytes, kRows * 1000);
        EXPECT_LE(statistics.record_bytes, kRows * (options.max_key_bytes + 1400));
        EXPECT_TRUE(table.local_index().CheckStructure().ok());
        if (options.name == kinds[kinds.size() / 2].name) {
          ASSERT_TRUE((*database)->Checkpoint().ok());
        }
      }
      ASSERT_TRUE((*database)->CloseWithoutCheckpoint().ok());
    }
    // Short rows of the log and of a checkpoint, and long ones.
    in_directory.files = disk->CrashedCopy(1);
    auto again = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{1} << 30});
    auto database = Database::Open(again->get(), 0, in_directory);
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Start().ok());
    for (const TableOptions& options : kinds) {
      const Table& table = *(*database)->FindTable(options.name);
      EXPECT_EQ(table.payload_bytes(), 1001u);
      ExpectRows(**database, table, kRows, {24, 1000, 1001});
      ASSERT_TRUE((*database)->WidenTable(options.name, 1002).ok());
      ExpectRows(**database, table, kRows, {24, 1000, 1001});
    }
    ASSERT_TRUE((*database)->Close().ok());
  }
}

TEST(WidenTableTest, ATableOfVariableLengthHasAnotherMaximum) {
  const Disk disk = NewDisk();
  TableOptions words = OrderedTable("words");
  words.variable_length = true;
  const std::string long_word(5000, 'x');
  {
    auto cluster = Open(disk, {words});
    Database& database = (*cluster)->database();
    const Table& table = *database.FindTable("words");
    const auto put = [&](uint64_t key) {
      return database.Run(
          [&](BlockingTransaction& t) { return t.Upsert(table, key, std::as_bytes(std::span(long_word))); });
    };
    ASSERT_TRUE(Put(**cluster, "words", 1, 7).ok());
    EXPECT_TRUE(absl::IsInvalidArgument(put(2)));
    ASSERT_TRUE(database.WidenTable("words", long_word.size()).ok());
    ASSERT_TRUE(database.WidenTable("words", long_word.size()).ok()) << "once more";
    ASSERT_TRUE(put(2).ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Open(disk->CrashedCopy(1), {words}).status())) << "it is not as it was created";
  auto cluster = Open(disk->CrashedCopy(2));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(Get(**cluster, "words", 1).value(), 7u);
  std::string word;
  const Table& table = (*cluster)->table("words");
  ASSERT_TRUE((*cluster)->database().Run([&](BlockingTransaction& t) { return t.Get(table, 2, &word); }).ok());
  EXPECT_EQ(word, long_word);
}

TEST(WidenTableTest, WrongOnesAreRefused) {
  auto database =
      Database::OpenInMemory({.durable_within = absl::Milliseconds(50), .memory_bytes = uint64_t{64} << 20});
  EXPECT_TRUE(absl::IsFailedPrecondition((*database)->WidenTable("a", 100)));
  ASSERT_TRUE((*database)->Start().ok());
  const Table& a = **(*database)->CreateTable(HashTable("a"));
  EXPECT_TRUE(absl::IsNotFound((*database)->WidenTable("b", 100)));
  for (const size_t bytes : {size_t{0}, size_t{7}, kMaxPayloadBytes + 1}) {
    const Status wrong = (*database)->WidenTable("a", bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
    EXPECT_THAT(Message(wrong), HasSubstr("table 'a' has payloads of 8 bytes"));
  }
  const auto put = [&](uint64_t key) {
    return (*database)->Run([&](BlockingTransaction& t) { return t.Upsert(a, key, key); });
  };
  for (uint64_t key = 0; key < 10'000; ++key) ASSERT_TRUE(put(key).ok());
  const Status full = (*database)->WidenTable("a", 60'000);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(Message(full), HasSubstr("table 'a' was not widened"));
  {
    auto open = (*database)->Begin();
    ASSERT_TRUE(open.ok());
    uint64_t value = 0;
    ASSERT_TRUE((*open)->Get(a, 1, &value).ok());
    const Status late = (*database)->WidenTable("a", 16);
    EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
    ASSERT_TRUE(open->Commit().ok());
  }
  EXPECT_EQ(a.payload_bytes(), 8u);
  ASSERT_TRUE(put(1).ok());
  EXPECT_TRUE((*database)->WidenTable("a", 16).ok());
  auto cluster = Open(NewDisk(), {HashTable("a")}, 2);
  EXPECT_TRUE(absl::IsUnimplemented((*cluster)->database().WidenTable("a", 16)));
}

// Memory runs out in the middle, because what is free is in the part of the heap for indexes. The table is refused,
// nothing of it is lost, and with more memory the next start completes it.
TEST(WidenTableTest, ATableThatIsHalfWidenedIsCompletedByTheNextStart) {
  constexpr size_t kWide = 4096;
  const size_t block = rdma::SlabAllocator::BlockBytes(index::RecordBytes(index::kIntegerKeyBytes, kWide));
  const uint64_t rows = (uint64_t{27} << 20) / block;
  const Disk disk = NewDisk();
  const DatabaseOptions options{.directory = "/data", .create_if_missing = true, .files = disk};
  {
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{32} << 20});
    auto database = Database::Open(fabric->get(), 0, options);
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Start().ok());
    const Table& a = **(*database)->CreateTable(HashTable("a"));
    for (uint64_t key = 0; key < rows; ++key) {
      ASSERT_TRUE((*database)->Run([&](BlockingTransaction& t) { return t.Insert(a, key, key); }).ok());
    }
    const Status widened = (*database)->WidenTable("a", kWide);
    EXPECT_TRUE(absl::IsFailedPrecondition(widened)) << widened;
    uint64_t value = 0;
    const Status refused = (*database)->Run([&](BlockingTransaction& t) { return t.Get(a, 1, &value); });
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("open it again with more memory"));
    EXPECT_TRUE((*database)->Checkpoint().ok());
    EXPECT_TRUE((*database)->Close().ok());
  }
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{256} << 20});
  auto database = Database::Open(fabric->get(), 0, options);
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_TRUE((*database)->Start().ok());
  const Table& a = *(*database)->FindTable("a");
  EXPECT_EQ(a.payload_bytes(), kWide);
  for (uint64_t key = 0; key < rows; ++key) {
    uint64_t value = 0;
    ASSERT_TRUE((*database)->Run([&](BlockingTransaction& t) { return t.Get(a, key, &value, 0); }).ok());
    ASSERT_EQ(value, key);
  }
  ASSERT_TRUE((*database)->Close().ok());
}

// Counters are added to, and rows come and go, while their tables are widened again and again, checkpoints are taken,
// and transactions create tables. No addition is lost.
TEST(WidenTableTest, TransactionsRunMeanwhile) {
  constexpr int kThreads = 3;
  constexpr uint64_t kCounters = 200;
  constexpr size_t kSteps = 25;
  const Disk disk = NewDisk();
  std::array<std::atomic<uint64_t>, kThreads> added{};
  {
    auto cluster = Open(disk, {HashTable("hash"), OrderedTable("tree")});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    for (uint64_t n = 0; n < kCounters; ++n) {
      ASSERT_TRUE(txn::Put(**cluster, "hash", n, 0).ok());
      ASSERT_TRUE(txn::Put(**cluster, "tree", n, 0).ok());
    }
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Random random(static_cast<uint64_t>(i) + 1);
        auto session = database.OpenSession();
        while (!stop.load()) {
          const uint64_t from = random.Below(kCounters);
          const uint64_t to = random.Below(kCounters);
          const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            GANNET_CO_RETURN_IF_ERROR(co_await t.AddAt<uint64_t>(*database.FindTable("hash"), from, 0, 1));
            co_return co_await t.AddAt<uint64_t>(*database.FindTable("tree"), to, 0, 1);
          });
          ASSERT_TRUE(done.ok()) << done;
          added[static_cast<size_t>(i)].fetch_add(1);
        }
      });
    }
    for (size_t step = 1; step <= kSteps; ++step) {
      for (const char* name : {"hash", "tree"}) {
        const Status widened = database.WidenTable(name, 8 + step * 40);
        ASSERT_TRUE(widened.ok()) << widened;
      }
      if (step % 8 == 0) {
        ASSERT_TRUE(database.Checkpoint().ok());
      }
      SleepForNanos(2'000'000);
    }
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  uint64_t expected = 0;
  for (const auto& each : added) expected += each.load();
  EXPECT_GT(expected, 0u);
  auto cluster = Open(disk->CrashedCopy(1));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  for (const char* name : {"hash", "tree"}) {
    uint64_t sum = 0;
    for (uint64_t n = 0; n < kCounters; ++n) sum += Get(**cluster, name, n).value();
    EXPECT_EQ(sum, expected) << name;
    EXPECT_EQ((*cluster)->table(name).payload_bytes(), 8 + kSteps * 40);
  }
}

// A scan of a table of variable length meets rows that are longer than all were allowed to be when it began.
TEST(WidenTableTest, AScanMeetsLongerRows) {
  constexpr uint64_t kRows = 2000;
  constexpr int kScans = 200;
  TableOptions words = OrderedTable("words");
  words.variable_length = true;
  auto database = Database::OpenInMemory({});
  ASSERT_TRUE((*database)->Start().ok());
  const Table& table = **(*database)->CreateTable(words);
  for (uint64_t n = 0; n < kRows; ++n) ASSERT_TRUE(Put(**database, table, n, 8).ok());
  std::atomic<bool> done{false};
  std::thread scanner([&] {
    for (int i = 0; i < kScans && !::testing::Test::HasFailure(); ++i) {
      const Status scanned = (*database)->Run([&](BlockingTransaction& t) -> Status {
        ScanRows rows;
        const index::ScanRange all{.from = Key(uint64_t{0}), .to = Key(UINT64_MAX)};
        Status status = t.Scan(table, all, &rows);
        EXPECT_EQ(status.ok() ? rows.size() : kRows, kRows);
        return status;
      });
      EXPECT_TRUE(scanned.ok()) << scanned;
    }
    done.store(true);
  });
  for (size_t bytes = 9; bytes < 5000 && !done.load(); ++bytes) {
    EXPECT_TRUE((*database)->WidenTable("words", bytes).ok());
    EXPECT_TRUE(Put(**database, table, kRows - 1 - bytes % 100, bytes).ok());
    SleepForNanos(20'000);
  }
  scanner.join();
}

// The disk breaks at every operation on the manifest, by a power cut or by one error. Afterwards the table has one size
// or the other, with all its rows; those that were written after an error, too.
TEST(WidenTableTest, ACrashLeavesOneSizeOrTheOther) {
  constexpr uint64_t kRows = 20;
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {OrderedTable("a")});
    for (uint64_t key = 0; key < kRows / 2; ++key) ASSERT_TRUE(txn::Put(**cluster, "a", key, key).ok());
    ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
    for (uint64_t key = kRows / 2; key < kRows; ++key) ASSERT_TRUE(txn::Put(**cluster, "a", key, key).ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  const DiskImage image = ImageOf(*first);
  std::set<size_t> seen;
  for (const bool power_cut : {true, false}) {
    for (uint64_t at = 1;; ++at) {
      SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at);
      const Disk disk = DiskOf(image, at);
      bool widened = false;
      std::atomic<uint64_t> operations{0};
      {
        auto cluster = DurableCluster::Open(disk, {}, {.database = {.durable_within = absl::Milliseconds(100)}});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        Database& database = (*cluster)->database();
        BreakAtManifest(disk, at, power_cut, &operations);
        widened = database.WidenTable("a", 100).ok();
        EXPECT_EQ(database.FindTable("a")->payload_bytes(), widened ? 100u : 8u);
        disk->SetOptions({});
        if (!power_cut && !widened) {
          ASSERT_TRUE(txn::Put(**cluster, "a", kRows, kRows).ok());
        }
      }
      if (operations.load() < at) {
        EXPECT_GT(at, 3u) << "the replacement of a file has more operations than that";
        break;
      }
      disk->Heal();
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        auto cluster = Open(power_cut ? disk->CrashedCopy(at * 10 + seed) : disk);
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        Database& database = (*cluster)->database();
        const size_t size = database.FindTable("a")->payload_bytes();
        EXPECT_TRUE(size == 100 || (size == 8 && !widened)) << size;
        seen.insert(size);
        for (uint64_t key = 0; key < kRows; ++key) EXPECT_EQ(Get(**cluster, "a", key).value(), key);
        if (!power_cut && !widened) {
          EXPECT_EQ(Get(**cluster, "a", kRows).value(), kRows);
        }
        ASSERT_TRUE(database.WidenTable("a", 200).ok());
        for (uint64_t key = 0; key < kRows; ++key) EXPECT_EQ(Get(**cluster, "a", key).value(), key);
        ASSERT_TRUE((*cluster)->Close().ok());
        if (!power_cut) break;
      }
    }
  }
  EXPECT_THAT(seen, ElementsAre(8, 100));
}

}  // namespace
}  // namespace gannet::txn
