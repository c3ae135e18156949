// DatabaseOptions::memory_bytes: memory is short only when it is used up, however it is divided between the index and
// the records, and a database that is full goes on.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "tests/index/kinds.h"
#include "tests/txn/cluster.h"
#include "txn/bulk_loader.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace memory_limit_test {

constexpr uint64_t kMemory = uint64_t{48} << 20;

TEST(LeastMemoryTest, TooLittleIsNamed) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{100'000}}) {
    const Status status = Database::OpenInMemory({.memory_bytes = bytes}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find(absl::StrCat("memory_bytes is ", bytes, "; it must be at least")),
              std::string::npos)
        << status;
  }
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{128} << 10});
  ASSERT_TRUE(database.ok()) << database.status();
  const auto table = (*database)->CreateTable({.name = "rows", .index = IndexKind::kXStore, .payload_bytes = 8});
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_TRUE((*database)->Start().ok());
  const Status inserted = (*database)->Run([&](auto& t) { return t.Insert(**table, 1, uint64_t{1}); });
  EXPECT_TRUE(inserted.ok()) << inserted;
}

TEST(LeastMemoryTest, ATableThatIsTooLargeIsNamed) {
  auto database = Database::OpenInMemory({.memory_bytes = kMemory});
  ASSERT_TRUE(database.ok()) << database.status();
  const Status status =
      (*database)->CreateTable({.name = "vast", .payload_bytes = 8, .expected_rows = UINT64_MAX}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("table 'vast': "), std::string::npos) << status;
}

// Rows filled the database and were removed: a new table, and its index, may have their memory.
TEST(FreedMemoryTest, ServesTheIndexOfANewTable) {
  auto database = Database::OpenInMemory({.memory_bytes = kMemory}).value();
  const Table& rows = **database->CreateTable({.name = "rows", .payload_bytes = 100, .expected_rows = 1000});
  ASSERT_TRUE(database->Start().ok());
  const auto fill = [&](const Table& table, uint64_t most) {
    const std::array<char, 100> row{};
    uint64_t key = 0;
    Status status;
    for (; key < most && status.ok(); key += status.ok() ? 1 : 0) {
      status = database->Run([&](BlockingTransaction& t) { return t.Insert(table, key, row); });
    }
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
    return key;
  };
  const uint64_t all = fill(rows, UINT64_MAX);
  EXPECT_GT(all, 100'000u);
  for (uint64_t key = 0; key < all; ++key) {
    const Status removed = database->Run([&](BlockingTransaction& t) { return t.Remove(rows, key); });
    ASSERT_TRUE(removed.ok()) << removed;
  }
  const auto ordered = database->CreateTable({.name = "ordered", .index = IndexKind::kXStore, .payload_bytes = 100});
  ASSERT_TRUE(ordered.ok()) << ordered.status();
  EXPECT_EQ(fill(**ordered, all / 2), all / 2);
}

class MemoryLimitTest : public ::testing::TestWithParam<IndexKind> {};

TEST_P(MemoryLimitTest, AnyDivisionFillsIt) {
  for (const size_t payload : {size_t{0}, size_t{1500}}) {
    SCOPED_TRACE(absl::StrCat("payloads of ", payload, " bytes"));
    auto database = Database::OpenInMemory({.memory_bytes = kMemory});
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Start().ok());
    const Table& table = **(*database)->CreateTable(
        {.name = "rows", .index = GetParam(), .payload_bytes = payload, .expected_rows = 100});
    auto session = (*database)->OpenSession();
    ASSERT_TRUE(session.ok());
    const std::vector<std::byte> bytes(payload);
    Status full;
    uint64_t rows = 0;
    for (; full.ok(); rows += 10) {
      full = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
        for (uint64_t key = rows; key < rows + 10; ++key) {
          GANNET_CO_RETURN_IF_ERROR(t.Insert(table, key, std::span<const std::byte>(bytes)));
        }
        co_return absl::OkStatus();
      });
    }
    rows -= 10;
    EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
    const rdma::SlabStatistics memory = (*database)->memory_statistics();
    EXPECT_EQ(memory.capacity_bytes, kMemory);
    EXPECT_LE(memory.carved_bytes, kMemory);
    // What is left is less than the table would double by, and than caches of free blocks keep.
    EXPECT_GT(memory.carved_bytes - memory.free_bytes, kMemory / 100 * 85) << rows << " rows";
    EXPECT_NE(full.message().find(absl::StrCat("of ", kMemory, " bytes are taken")), std::string::npos) << full;
    EXPECT_EQ((*database)->table_statistics().front().index.keys, rows);
    // Room that a removal makes is found.
    EXPECT_TRUE((*database)->Run([&](BlockingTransaction& t) { return t.Remove(table, 0); }).ok());
    EXPECT_TRUE(
        (*database)->Run([&](BlockingTransaction& t) { return t.Get(table, 1, std::span<std::byte>(), 0); }).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MemoryLimitTest, ::testing::ValuesIn(index::KindsOfPoints()),
                         [](const auto& kind) { return index::EntryOf(kind.param).name; });

// A commit that removes or moves rows needs a channel of the owner's own where clients change the index. Sessions may
// have taken all.
TEST(ChannelLimitTest, ACommitChangesIndexesWithoutAFreeChannel) {
  for (const IndexKind kind : index::OrderedKinds()) {
    for (const index::IndexRights rights : {index::IndexRights::kClients, index::IndexRights::kOwnerOnly}) {
      if (rights == index::IndexRights::kClients && !index::EntryOf(kind).traits.client_writes) continue;
      SCOPED_TRACE(testing::Message() << index::EntryOf(kind).name << " " << index::NameOf(rights));
      auto database = *Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20});
      const Table& table = **database->CreateTable(
          {.name = "rows", .index = kind, .index_rights = rights, .payload_bytes = 1000, .variable_length = true});
      ASSERT_TRUE(database->Start().ok());
      std::vector<std::unique_ptr<Session>> sessions;
      sessions.push_back(*database->OpenSession());
      {
        BulkLoader loader(sessions[0].get(), &table);
        const std::vector<std::byte> row(8);
        for (uint64_t key = 0; key < 100; ++key) ASSERT_TRUE(loader.Add(key, std::span<const std::byte>(row)).ok());
        ASSERT_TRUE(loader.Finish().ok());
      }
      for (;;) {
        StatusOr<std::unique_ptr<Session>> more = database->OpenSession();
        if (!more.ok()) break;
        sessions.push_back(*std::move(more));
      }
      std::vector<std::thread> threads;
      for (uint64_t i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
          const std::vector<std::byte> longer(1000);
          for (uint64_t key = i; key < 100; key += 4) {
            const Status changed = RunBlockingBody(*sessions[i], [&](BlockingTransaction& t) {
              return key % 8 < 4 ? t.Remove(table, key) : t.Update(table, key, std::span<const std::byte>(longer));
            });
            EXPECT_TRUE(changed.ok()) << changed;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(database->table_statistics()[0].index_damages, 0u);
      for (uint64_t key = 0; key < 100; ++key) {
        const Status read = RunBlockingBody(
            *sessions[0], [&](BlockingTransaction& t) { return t.Get(table, key, std::span<std::byte>(), 0); });
        EXPECT_TRUE(key % 8 < 4 ? absl::IsNotFound(read) : read.ok()) << key << ": " << read;
      }
    }
  }
}

// Half of the rows of a full database are removed in one transaction. Their memory is there for the very next one,
// which began before any grace period could end.
class RefillTest : public ::testing::TestWithParam<IndexKind> {
 protected:
  static constexpr uint64_t kRowsAtOnce = 20;
  static constexpr size_t kMostBytes = 2000;

  // The row's size. After a removal it is that of another row.
  using SizeOf = std::function<size_t(uint64_t row)>;

  Status InsertSome(uint64_t first, uint64_t end, const SizeOf& size_of) {
    return database_->Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t key = first; key < end; ++key) {
        const std::vector<std::byte> row(size_of(key), std::byte{1});
        GANNET_RETURN_IF_ERROR(t.Insert(*table_, key, std::span<const std::byte>(row)));
      }
      return absl::OkStatus();
    });
  }

  void Refill(const SizeOf& first_size, const SizeOf& second_size) {
    database_ = Database::OpenInMemory({.memory_bytes = kMemory / 2}).value();
    table_ = database_
                 ->CreateTable({.name = "rows",
                                .index = GetParam(),
                                .payload_bytes = kMostBytes,
                                .variable_length = true,
                                .expected_rows = 1000})
                 .value();
    ASSERT_TRUE(database_->Start().ok());
    for (int round = 0; round < 2; ++round) {
      SCOPED_TRACE(absl::StrCat("round ", round));
      uint64_t rows = 0;
      Status full;
      for (; full.ok(); rows += kRowsAtOnce) full = InsertSome(rows, rows + kRowsAtOnce, first_size);
      rows -= kRowsAtOnce;
      ASSERT_TRUE(absl::IsResourceExhausted(full)) << full;
      // It takes no memory to say that a key exists.
      const Status exists = InsertSome(rows / 2, rows / 2 + 1, first_size);
      EXPECT_TRUE(absl::IsAlreadyExists(exists)) << exists;

      const uint64_t removed = rows / 2;
      const Status removal = database_->Run([&](BlockingTransaction& t) -> Status {
        for (uint64_t key = 0; key < removed; ++key) GANNET_RETURN_IF_ERROR(t.Remove(*table_, key));
        return absl::OkStatus();
      });
      ASSERT_TRUE(removal.ok()) << removal;
      const uint64_t again = removed * 9 / 10;
      for (uint64_t first = 0; first < again; first += kRowsAtOnce) {
        const Status inserted = InsertSome(first, std::min(first + kRowsAtOnce, again), second_size);
        ASSERT_TRUE(inserted.ok()) << inserted << " at row " << first << " of " << again;
      }
      for (uint64_t first = 0; first < rows; first += 500) {
        const Status emptied = database_->Run([&](BlockingTransaction& t) -> Status {
          for (uint64_t key = first; key < std::min(first + 500, rows); ++key) {
            const Status gone = t.Remove(*table_, key);
            if (!gone.ok() && !absl::IsNotFound(gone)) return gone;
          }
          return absl::OkStatus();
        });
        ASSERT_TRUE(emptied.ok()) << emptied;
      }
    }
  }

  std::unique_ptr<Database> database_;
  const Table* table_ = nullptr;
};

TEST_P(RefillTest, RowsOfOneSize) {
  const auto size = [](uint64_t) { return size_t{300}; };
  Refill(size, size);
}

TEST_P(RefillTest, RowsOfMixedSizes) {
  const auto size = [](uint64_t row) { return 1 + row * 7919 % kMostBytes; };
  Refill(size, [&](uint64_t row) { return size(row * 3 + 1); });
}

INSTANTIATE_TEST_SUITE_P(Kinds, RefillTest, ::testing::ValuesIn(index::KindsOfPoints()),
                         [](const auto& kind) { return index::EntryOf(kind.param).name; });

// Memory that rows took is the machine's again when they are gone, and their table holds as many again.
class MemoryGivenBackTest : public ::testing::TestWithParam<IndexKind> {
 protected:
  static constexpr uint64_t kRows = 40'000;
  static constexpr size_t kPayload = 2000;

  void Load() {
    const std::vector<std::byte> bytes(kPayload, std::byte{1});
    for (uint64_t first = 0; first < kRows; first += 500) {
      const Status status = database_->Run([&](BlockingTransaction& t) -> Status {
        for (uint64_t key = first; key < first + 500; ++key) {
          GANNET_RETURN_IF_ERROR(t.Insert(*table_, key, std::span<const std::byte>(bytes)));
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  void Open() {
    auto database = Database::OpenInMemory({.memory_bytes = uint64_t{512} << 20});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    ASSERT_TRUE(database_->Start().ok());
    Create();
  }
  void Create() {
    const auto table = database_->CreateTable(
        {.name = "rows", .index = GetParam(), .payload_bytes = kPayload, .expected_rows = kRows});
    ASSERT_TRUE(table.ok()) << table.status();
    table_ = *table;
  }
  // A sanitizer has memory of its own for all that it follows, and keeps what is freed for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kOnlyOurMemory = false;
#else
  static constexpr bool kOnlyOurMemory = true;
#endif
  // Bytes of memory that this process has now.
  static uint64_t ResidentBytes() {
    uint64_t pages = 0;
    uint64_t resident = 0;
    std::ifstream("/proc/self/statm") >> pages >> resident;
    return resident * static_cast<uint64_t>(getpagesize());
  }

  std::unique_ptr<Database> database_;
  const Table* table_ = nullptr;
};

TEST_P(MemoryGivenBackTest, WhenATableIsDropped) {
  Open();
  for (int round = 0; round < 3; ++round) {
    const uint64_t before = ResidentBytes();
    Load();
    if (kOnlyOurMemory) {
      EXPECT_GT(ResidentBytes(), before + kRows * kPayload * 9 / 10);
    }
    ASSERT_TRUE(database_->DropTable("rows").ok());
    if (kOnlyOurMemory) {
      EXPECT_LT(ResidentBytes(), before + kRows * kPayload / 4) << "round " << round;
    }
    EXPECT_GT(database_->memory_statistics().trimmed_bytes, kRows * kPayload * 3 / 4);
    Create();
  }
  EXPECT_LT(database_->memory_statistics().carved_bytes, kRows * kPayload * 2);
}

TEST_P(MemoryGivenBackTest, WhenRowsAreRemoved) {
  Open();
  for (int round = 0; round < 2; ++round) {
    Load();
    for (uint64_t first = 0; first < kRows; first += 500) {
      const Status status = database_->Run([&](BlockingTransaction& t) -> Status {
        for (uint64_t key = first; key < first + 500; ++key) GANNET_RETURN_IF_ERROR(t.Remove(*table_, key));
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status;
    }
    const uint64_t deadline = NowNanos() + 60'000'000'000;
    while (database_->memory_statistics().trimmed_bytes < kRows * kPayload / 3 && NowNanos() < deadline) {
      SleepForNanos(1'000'000);
    }
    EXPECT_GE(database_->memory_statistics().trimmed_bytes, kRows * kPayload / 3);
  }
  // Rows are where they were.
  Load();
  std::vector<std::byte> payload(kPayload);
  for (const uint64_t key : {uint64_t{0}, kRows / 2, kRows - 1}) {
    EXPECT_TRUE(database_->Run([&](BlockingTransaction& t) { return t.Get(*table_, key, std::span(payload)); }).ok());
    EXPECT_EQ(payload, std::vector<std::byte>(kPayload, std::byte{1}));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MemoryGivenBackTest, ::testing::Values(IndexKind::kHash, IndexKind::kXStore),
                         [](const auto& kind) { return index::EntryOf(kind.param).name; });

}  // namespace memory_limit_test
}  // namespace gannet::txn
