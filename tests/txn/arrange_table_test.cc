// Tables are arranged while transactions run: rows come into the order of their keys, and stay what they were.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
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
#include "tests/txn/table_kinds.h"
#include "txn/record/record.h"
#include "txn/run/database_state.h"
#include "txn/run/manual_transaction.h"

namespace gannet::txn {
namespace arrange_table_test {

using ::testing::HasSubstr;

using Rows = std::map<uint64_t, std::string>;  // payloads by the number of the key

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::vector<TableOptions> OrderedKinds(bool variable_length) {
  std::vector<TableOptions> kinds;
  for (TableOptions& options : AllKinds(variable_length ? 400 : 24, variable_length)) {
    if (options.index == IndexKind::kHash || options.index == IndexKind::kCatfish) continue;
    kinds.push_back(std::move(options));
  }
  TableOptions tagged = kinds.front();
  tagged.name = "keys in records";
  tagged.index = IndexKind::kXStore;
  tagged.max_key_bytes = 64;
  kinds.push_back(tagged);
  return kinds;
}

std::string AnyPayload(const TableOptions& options, Random& random) {
  const size_t bytes = options.variable_length ? random.Below(options.payload_bytes + 1) : options.payload_bytes;
  return std::string(bytes, static_cast<char>(random()));
}

// The rows of keys [0, most), in an order of chance; some are changed and removed again. Some at a time.
void PutAny(Database& database, const Table& table, uint64_t most, size_t changes, Random& random, Rows* rows) {
  constexpr size_t kAtATime = 25;
  for (size_t done = 0; done < changes; done += kAtATime) {
    std::vector<std::pair<uint64_t, std::optional<std::string>>> some;  // nothing: the row is removed
    for (size_t i = 0; i < kAtATime; ++i) {
      const uint64_t n = random.Below(most);
      if (rows->contains(n) && random.OneIn(3)) {
        rows->erase(n);
        some.emplace_back(n, std::nullopt);
      } else {
        some.emplace_back(n, (*rows)[n] = AnyPayload(table.options(), random));
      }
    }
    const Status changed = database.Run([&](BlockingTransaction& t) -> Status {
      for (const auto& [n, payload] : some) {
        const KeyCopy key(KeyOf(table.options(), n).view());
        GANNET_RETURN_IF_ERROR(payload.has_value() ? t.Upsert(table, key.view(), BytesOf(*payload))
                                                   : t.Remove(table, key.view()));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(changed.ok()) << changed;
  }
}

// Keys in the order of the table.
std::vector<uint64_t> InOrder(const Table& table, const Rows& rows) {
  std::vector<uint64_t> numbers;
  for (const auto& [n, payload] : rows) numbers.push_back(n);
  std::ranges::sort(numbers, [&](uint64_t a, uint64_t b) {
    return KeyOf(table.options(), a).view() < KeyOf(table.options(), b).view();
  });
  return numbers;
}

void ExpectRows(Database& database, const Table& table, const Rows& rows) {
  const std::vector<uint64_t> numbers = InOrder(table, rows);
  const Status read = database.Run([&](BlockingTransaction& t) -> Status {
    BlockingCursor cursor = t.Rows(table);
    size_t at = 0;
    for (const Cursor& row : cursor) {
      if (at == numbers.size()) return absl::InternalError("there are more rows");
      EXPECT_EQ(row.key(), KeyOf(table.options(), numbers[at]).view());
      EXPECT_TRUE(std::ranges::equal(row.payload(), BytesOf(rows.at(numbers[at])))) << "row " << numbers[at];
      ++at;
    }
    EXPECT_EQ(at, numbers.size());
    return cursor.status();
  });
  EXPECT_TRUE(read.ok()) << read;
  for (const auto& [n, payload] : rows) {
    std::string got;
    const Status status =
        database.Run([&](BlockingTransaction& t) { return t.Get(table, KeyOf(table.options(), n).view(), &got); });
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(got, payload) << "row " << n;
  }
}

std::vector<uint64_t> OffsetsInOrder(const Table& table) {
  std::vector<rdma::GlobalAddress> addresses;
  index::WalkPosition position;
  while (table.local_index().Walk(&position, &addresses)) {
  }
  std::vector<uint64_t> offsets;
  for (const rdma::GlobalAddress address : addresses) offsets.push_back(address.offset());
  return offsets;
}

// Expects that rows lie in the order of their keys, separately for each size of their blocks.
void ExpectArranged(Database& database, const Table& table) {
  std::map<size_t, uint64_t> last;
  for (const uint64_t offset : OffsetsInOrder(table)) {
    const index::RecordMeta meta = index::LoadMeta(database.state().local->node.memory().data() + offset);
    uint64_t& before = last[rdma::SlabAllocator::BlockBytes(index::RecordBytes(meta.key_bytes, meta.payload_bytes))];
    ASSERT_LT(before, offset);
    before = offset;
  }
}

TEST(ArrangeTableTest, RowsComeIntoTheOrderOfTheirKeys) {
  constexpr uint64_t kMost = 1500;
  for (const bool direct : {true, false}) {
    for (const bool variable_length : {false, true}) {
      auto shm = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{1} << 30});
      NicAtomics nic(shm->get());
      auto database = Database::Open(direct ? static_cast<rdma::Fabric*>(shm->get()) : &nic, 0, {});
      ASSERT_TRUE(database.ok()) << database.status();
      ASSERT_TRUE((*database)->Start().ok());
      Random random(9);
      for (const TableOptions& options : OrderedKinds(variable_length)) {
        SCOPED_TRACE(absl::StrCat(options.name, variable_length ? ", of any length" : "",
                                  direct ? "" : ", as from another node"));
        const Table& table = **(*database)->CreateTable(options);
        ASSERT_TRUE((*database)->ArrangeTable(options.name).ok()) << "an empty one";
        Rows rows;
        for (int round = 0; round < 3; ++round) {
          PutAny(**database, table, kMost, kMost, random, &rows);
          std::vector<uint64_t> before = OffsetsInOrder(table);
          const int64_t bytes = (*database)->table_statistics().back().record_bytes;
          EXPECT_FALSE(std::ranges::is_sorted(before));
          const Status arranged = (*database)->ArrangeTable(options.name);
          ASSERT_TRUE(arranged.ok()) << arranged;
          ExpectArranged(**database, table);
          EXPECT_TRUE(table.local_index().CheckStructure().ok());
          EXPECT_EQ((*database)->table_statistics().back().record_bytes, bytes);
          std::vector<uint64_t> after = OffsetsInOrder(table);
          std::ranges::sort(before);
          std::ranges::sort(after);
          EXPECT_EQ(before, after) << "the rows lie in the same places";
          ExpectRows(**database, table, rows);
          ASSERT_TRUE((*database)->ArrangeTable(options.name).ok()) << "once more";
          ExpectRows(**database, table, rows);
        }
        ASSERT_TRUE((*database)->DropTable(options.name).ok());
      }
      ASSERT_TRUE((*database)->Close().ok());
    }
  }
}

TEST(ArrangeTableTest, MemoryStaysAsItWas) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20});
  TableOptions options = OrderedTable("a");
  const Table& a = **(*database)->CreateTable(options);
  ASSERT_TRUE((*database)->Start().ok());
  Random random(1);
  Rows rows;
  PutAny(**database, a, 20'000, 20'000, random, &rows);
  const rdma::SlabStatistics before = (*database)->state().slab->statistics();
  for (int i = 0; i < 30; ++i) {
    PutAny(**database, a, 20'000, 50, random, &rows);
    ASSERT_TRUE((*database)->ArrangeTable("a").ok());
  }
  const rdma::SlabStatistics after = (*database)->state().slab->statistics();
  EXPECT_LE(after.carved_bytes, before.carved_bytes + (uint64_t{1} << 20));
  ExpectRows(**database, a, rows);
}

TEST(ArrangeTableTest, WrongOnesAreRefused) {
  auto database =
      Database::OpenInMemory({.durable_within = absl::Milliseconds(50), .memory_bytes = uint64_t{64} << 20});
  const Table& a = **(*database)->CreateTable(OrderedTable("a"));
  ASSERT_TRUE((*database)->Start().ok());
  ASSERT_TRUE((*database)->CreateTable(HashTable("hash")).ok());
  ASSERT_TRUE((*database)->CreateIndex({.name = "by_number", .table = "a", .fields = {IndexField::Bytes(0, 8)}}).ok());
  const Status hash = (*database)->ArrangeTable("hash");
  EXPECT_TRUE(absl::IsFailedPrecondition(hash)) << hash;
  EXPECT_THAT(Message(hash), HasSubstr("table 'hash' cannot be arranged: its index is not ordered"));
  ASSERT_TRUE((*database)
                  ->CreateTable({.name = "boxes",
                                 .key_kind = index::KeyKind::kBytes,
                                 .max_key_bytes = index::RectangleKey::kBytes,
                                 .index = IndexKind::kCatfish})
                  .ok());
  const Status boxes = (*database)->ArrangeTable("boxes");
  EXPECT_TRUE(absl::IsFailedPrecondition(boxes)) << boxes;
  const Status entries = (*database)->ArrangeTable("by_number");
  EXPECT_TRUE(absl::IsFailedPrecondition(entries)) << entries;
  Random random(2);
  Rows rows;
  for (uint64_t key = 0; key < 3000; ++key) {
    const uint64_t n = key * 1'237 % 3000;
    ASSERT_TRUE((*database)->Run([&](BlockingTransaction& t) { return t.Upsert(a, n, n); }).ok());
  }
  const std::vector<uint64_t> before = OffsetsInOrder(a);
  {
    auto open = (*database)->Begin();
    ASSERT_TRUE(open.ok());
    uint64_t value = 0;
    ASSERT_TRUE((*open)->Get(a, 1, &value).ok());
    const Status late = (*database)->ArrangeTable("a");
    EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
    ASSERT_TRUE(open->Commit().ok());
  }
  EXPECT_EQ(OffsetsInOrder(a), before);
  EXPECT_TRUE((*database)->ArrangeTable("a").ok());
  for (uint64_t n = 0; n < 3000; ++n) {
    uint64_t value = 0;
    ASSERT_TRUE((*database)->Run([&](BlockingTransaction& t) { return t.Get(a, n, &value); }).ok());
    ASSERT_EQ(value, n);
  }
}

// It is stopped at any time: each row is there once.
TEST(ArrangeTableTest, AStopLeavesItWhole) {
  constexpr uint64_t kRows = 40'000;
  std::atomic<bool> stop{false};
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20, .stop = &stop});
  const Table& a = **(*database)->CreateTable(OrderedTable("a"));
  ASSERT_TRUE((*database)->Start().ok());
  Random random(3);
  Rows rows;
  PutAny(**database, a, kRows, kRows, random, &rows);
  int stopped = 0;
  for (uint64_t round = 0; round < 12; ++round) {
    PutAny(**database, a, kRows, 1000, random, &rows);
    std::thread stopper([&] {
      SleepForNanos(random.Below(8'000'000));
      stop = true;
    });
    const Status arranged = (*database)->ArrangeTable("a");
    stopper.join();
    stop = false;
    EXPECT_TRUE(arranged.ok() || absl::IsCancelled(arranged)) << arranged;
    stopped += arranged.ok() ? 0 : 1;
    ASSERT_TRUE(a.local_index().CheckStructure().ok());
    if (round % 4 == 3) ExpectRows(**database, a, rows);
  }
  RecordProperty("stopped", stopped);
  ExpectRows(**database, a, rows);
}

// Without a free block for rows of a size, these stay where they are, and all others are arranged.
TEST(ArrangeTableTest, MemoryIsFull) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{64} << 20});
  TableOptions options = OrderedTable("a");
  options.variable_length = true;
  options.payload_bytes = kMaxPayloadBytes;
  const Table& a = **(*database)->CreateTable(options);
  ASSERT_TRUE((*database)->Start().ok());
  Random random(6);
  Rows rows;
  while (true) {
    const uint64_t n = random.Below(1'000'000);
    const std::string payload(random.OneIn(3) ? random.Below(kMaxPayloadBytes + 1) : random.Below(300), 'p');
    const Status put = (*database)->Run(
        [&](BlockingTransaction& t) { return t.Upsert(a, KeyOf(options, n).view(), BytesOf(payload)); });
    if (absl::IsResourceExhausted(put)) break;
    ASSERT_TRUE(put.ok()) << put;
    rows[n] = payload;
  }
  const Status full = (*database)->ArrangeTable("a");
  ASSERT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(Message(full), HasSubstr("rows of table 'a' in blocks of"));
  ExpectRows(**database, a, rows);
  EXPECT_TRUE(a.local_index().CheckStructure().ok());
  for (int i = 0; i < 100; ++i) {
    const uint64_t n = rows.begin()->first;
    const Status removed =
        (*database)->Run([&](BlockingTransaction& t) { return t.Remove(a, KeyOf(options, n).view()); });
    ASSERT_TRUE(removed.ok()) << removed;
    rows.erase(n);
  }
  const Status arranged = (*database)->ArrangeTable("a");
  ASSERT_TRUE(arranged.ok()) << arranged;
  ExpectArranged(**database, a);
  ExpectRows(**database, a, rows);
}

TEST(ArrangeTableTest, TwoCallsAtOnceMeetEachOther) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20});
  const Table& a = **(*database)->CreateTable(OrderedTable("a"));
  ASSERT_TRUE((*database)->Start().ok());
  Random random(7);
  Rows rows;
  PutAny(**database, a, 20'000, 20'000, random, &rows);
  std::array<std::thread, 3> threads;
  std::atomic<int> arranged{0};
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      for (int i = 0; i < 10; ++i) {
        const Status status = (*database)->ArrangeTable("a");
        EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
        arranged += status.ok() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(arranged, 0);
  ExpectArranged(**database, a);
  ExpectRows(**database, a, rows);
}

// Readers remember where rows lie (index/own_locations.h), and read them at other places; writers move money between
// rows. Rows of a variable length move to other blocks meanwhile.
TEST(ArrangeTableTest, TransactionsRunMeanwhile) {
  constexpr int kThreads = 3;
  constexpr uint64_t kRows = 4000;
  constexpr int kTimes = 40;
  const Disk disk = NewDisk();
  TableOptions texts = OrderedTable("texts");
  texts.variable_length = true;
  texts.payload_bytes = 300;
  std::array<std::atomic<uint64_t>, kThreads> added{};
  {
    auto cluster = Open(disk, {OrderedTable("tree"), texts});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    const Table& tree = (*cluster)->table("tree");
    const Table& text = (*cluster)->table("texts");
    for (uint64_t i = 0; i < kRows; ++i) {
      const uint64_t n = i * 1'237 % kRows;
      ASSERT_TRUE(txn::Put(**cluster, "tree", n, 0).ok());
      ASSERT_TRUE(database.Run([&](BlockingTransaction& t) { return t.Insert(text, n, BytesOf("x")); }).ok());
    }
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Random random(static_cast<uint64_t>(i) + 1);
        while (!stop.load()) {
          const uint64_t n = random.Below(kRows);
          const std::string longer(random.Below(300), static_cast<char>('a' + i));
          const Status done = database.Run([&](BlockingTransaction& t) -> Status {
            uint64_t value = 0;
            GANNET_RETURN_IF_ERROR(t.Get(tree, n, &value));
            GANNET_RETURN_IF_ERROR(t.Update(tree, n, value + 1));
            return t.Upsert(text, n, BytesOf(longer));
          });
          ASSERT_TRUE(done.ok()) << done;
          added[static_cast<size_t>(i)].fetch_add(1);
        }
      });
    }
    for (int time = 0; time < kTimes; ++time) {
      for (const char* name : {"tree", "texts"}) {
        const Status arranged = database.ArrangeTable(name);
        ASSERT_TRUE(arranged.ok()) << arranged;
      }
      if (time % 10 == 5) {
        ASSERT_TRUE(database.Checkpoint().ok());
      }
      SleepForNanos(2'000'000);
    }
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(database.ArrangeTable("texts").ok());
    ExpectArranged(database, text);
    ASSERT_TRUE(tree.local_index().CheckStructure().ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  uint64_t expected = 0;
  for (const auto& each : added) expected += each.load();
  EXPECT_GT(expected, 0u);
  auto cluster = Open(disk->CrashedCopy(1));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  uint64_t sum = 0;
  for (uint64_t n = 0; n < kRows; ++n) sum += Get(**cluster, "tree", n).value();
  EXPECT_EQ(sum, expected);
}

// The versions of rows only grow, so the log's last change of a row counts, whichever block the row had.
TEST(ArrangeTableTest, ChangesBeforeAndAfterSurviveACrash) {
  constexpr uint64_t kMost = 600;
  for (const bool variable_length : {false, true}) {
    for (const TableOptions& options : OrderedKinds(variable_length)) {
      SCOPED_TRACE(options.name);
      const Disk disk = NewDisk();
      Random random(4);
      Rows rows;
      {
        auto cluster = Open(disk, {options});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        Database& database = (*cluster)->database();
        for (int round = 0; round < 4; ++round) {
          PutAny(database, (*cluster)->table(options.name), kMost, kMost, random, &rows);
          ASSERT_TRUE(database.ArrangeTable(options.name).ok());
          PutAny(database, (*cluster)->table(options.name), kMost, kMost / 4, random, &rows);
          if (round == 1) {
            ASSERT_TRUE(database.Checkpoint().ok());
          }
        }
        ASSERT_TRUE(database.CloseWithoutCheckpoint().ok());
      }
      auto cluster = Open(disk->CrashedCopy(1));
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      ExpectRows((*cluster)->database(), (*cluster)->table(options.name), rows);
    }
  }
}

TEST(ArrangeTableTest, RowsOfACheckpointLieInOrder) {
  const Disk disk = NewDisk();
  Random random(5);
  Rows rows;
  {
    auto cluster = Open(disk, {OrderedTable("a")});
    PutAny((*cluster)->database(), (*cluster)->table("a"), 5000, 5000, random, &rows);
    ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  auto cluster = Open(disk->CrashedCopy(1));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const std::vector<uint64_t> offsets = OffsetsInOrder((*cluster)->table("a"));
  size_t ascending = 0;
  for (size_t i = 1; i < offsets.size(); ++i) ascending += offsets[i - 1] < offsets[i] ? 1 : 0;
  EXPECT_GE(ascending, offsets.size() * 99 / 100);
}

}  // namespace arrange_table_test
}  // namespace gannet::txn
