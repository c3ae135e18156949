// The places of a node's own rows (index/own_locations.h): what reads find by them, while rows change, move and go.
#include "index/own_locations.h"

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/cache_line.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "txn/database.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace own_locations_test {

constexpr size_t kMostPayload = 300;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct TableShape {
  const char* name;
  IndexKind index;
  index::KeyKind keys;
};

// One table of rows of any length.
class OwnLocationsTest : public testing::TestWithParam<TableShape> {
 protected:
  void Open(uint64_t most_bytes = UINT64_MAX) {
    auto database = Database::OpenInMemory({.own_location_bytes = most_bytes, .memory_bytes = uint64_t{1} << 28});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    table_ = Create("rows");
    ASSERT_TRUE(database_->Start().ok());
  }
  const Table* Create(const std::string& name) {
    auto table = database_->CreateTable({.name = name,
                                         .key_kind = GetParam().keys,
                                         .max_key_bytes = Is(index::KeyKind::kInteger) ? 8u : 40u,
                                         .index = GetParam().index,
                                         .index_rights = IndexRights::kOwnerOnly,
                                         .payload_bytes = kMostPayload,
                                         .variable_length = true});
    EXPECT_TRUE(table.ok()) << table.status();
    return *table;
  }
  static bool Is(index::KeyKind kind) { return GetParam().keys == kind; }
  // Valid until the next call.
  Key KeyOf(uint64_t number) {
    if (Is(index::KeyKind::kInteger)) return Key(number * 1000);
    text_ = number == 0 ? "" : std::to_string(number) + std::string(number % 20, 'x');
    return Key(std::string_view(text_));
  }
  std::string Read(uint64_t number) {
    std::string payload;
    const Status status = database_->Run([&](BlockingTransaction& t) -> Status {
      const auto view = t.GetView(*table_, KeyOf(number));
      if (!view.ok()) return view.status();
      payload.assign(reinterpret_cast<const char*>(view->data()), view->size());
      return absl::OkStatus();
    });
    if (absl::IsNotFound(status)) return "none";
    return status.ok() ? payload : status.ToString();
  }
  void Insert(uint64_t number, const std::string& payload) {
    const Status status =
        database_->Run([&](BlockingTransaction& t) { return t.Insert(*table_, KeyOf(number), BytesOf(payload)); });
    ASSERT_TRUE(status.ok()) << status;
  }
  void Remove(uint64_t number) {
    const Status status = database_->Run([&](BlockingTransaction& t) { return t.Remove(*table_, KeyOf(number)); });
    ASSERT_TRUE(status.ok()) << status;
  }
  // What the cache says of a key; null: nothing.
  rdma::GlobalAddress Remembered(uint64_t number) {
    rdma::GlobalAddress record;
    const Status status = database_->Run([&](BlockingTransaction&) -> Status {  // in the epoch
      const Key key = KeyOf(number);
      record = table_->own_locations()->Find(table_->own_locations()->HashOf(key), key, 1);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return record;
  }
  uint64_t CacheBytes() {
    for (const TableStatistics& of : database_->table_statistics()) {
      if (of.table == table_->name()) return of.own_location_bytes;
    }
    return UINT64_MAX;
  }

  Random random_{11};
  std::string text_;
  std::unique_ptr<Database> database_;
  const Table* table_ = nullptr;
};

TEST_P(OwnLocationsTest, RemembersRowsThatWereRead) {
  constexpr uint64_t kRows = 5000;
  Open();
  for (uint64_t row = 0; row < kRows; ++row) Insert(row, std::to_string(row));
  EXPECT_EQ(CacheBytes(), 0u);  // of a table that nobody reads by key
  for (int round = 0; round < 8; ++round) {
    for (uint64_t row = 0; row < kRows; ++row) ASSERT_EQ(Read(row), std::to_string(row));
  }
  uint64_t remembered = 0;
  for (uint64_t row = 0; row < kRows; ++row) {
    const rdma::GlobalAddress record = Remembered(row);
    if (record.is_null()) continue;
    ++remembered;
    EXPECT_EQ(record, table_->local_index().Find(KeyOf(row)).record);
  }
  EXPECT_GT(remembered, kRows * 9 / 10);
  EXPECT_LE(CacheBytes(), kRows * 16);
  EXPECT_GE(CacheBytes(), kRows * 5);
}

TEST_P(OwnLocationsTest, FollowsRowsThatChange) {
  constexpr uint64_t kRows = 200;
  Open();
  std::map<uint64_t, std::string> rows;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t row = random_.Below(kRows);
    const auto found = rows.find(row);
    const std::string payload(random_.Below(kMostPayload + 1), static_cast<char>('a' + random_.Below(26)));
    if (random_.OneIn(3)) {
      if (found == rows.end()) {
        Insert(row, payload);
        rows[row] = payload;
      } else if (random_.OneIn(2)) {
        Remove(row);
        rows.erase(found);
      } else {  // other lengths take other blocks
        const Status status =
            database_->Run([&](BlockingTransaction& t) { return t.Update(*table_, KeyOf(row), BytesOf(payload)); });
        ASSERT_TRUE(status.ok()) << status;
        found->second = payload;
      }
    } else {
      ASSERT_EQ(Read(row), found == rows.end() ? "none" : found->second) << "row " << row << ", step " << step;
    }
    if (step % 100 != 0) continue;
    // All rows in one call, those that are there and those that are not.
    std::vector<std::array<std::byte, kMostPayload>> payloads(kRows);
    std::vector<std::string> texts(kRows);
    std::vector<GetRequest> requests(kRows);
    for (uint64_t i = 0; i < kRows; ++i) {
      Key key = KeyOf(i);
      if (!Is(index::KeyKind::kInteger)) key = Key(std::string_view(texts[i] = text_));
      requests[i] = {.table = table_, .key = key, .out = payloads[i], .up_to_end = true};
    }
    const Status status = database_->Run([&](BlockingTransaction& t) { return t.GetMany(requests); });
    ASSERT_TRUE(status.ok()) << status;
    for (uint64_t i = 0; i < kRows; ++i) {
      ASSERT_EQ(requests[i].status.ok(), rows.contains(i)) << requests[i].status;
      if (!rows.contains(i)) continue;
      ASSERT_EQ(requests[i].payload_bytes, rows[i].size());
      EXPECT_EQ(std::memcmp(payloads[i].data(), rows[i].data(), rows[i].size()), 0);
    }
  }
}

// The memory of a row that is gone may be anything, later: zeros too, if it was given back to the system.
TEST_P(OwnLocationsTest, MemoryThatWasGivenBackIsNoRow) {
  constexpr uint64_t kRows = 600;  // enough for a sample
  Open();
  ASSERT_EQ(table_->id(), 0u);
  for (uint64_t row = 0; row < kRows; ++row) Insert(row, "row");
  for (int round = 0; round < 12; ++round) {
    for (uint64_t row = 0; row < kRows; ++row) ASSERT_EQ(Read(row), "row");
  }
  ASSERT_EQ(Read(0), "row");                         // others may have taken its place in a full set
  const rdma::GlobalAddress record = Remembered(0);  // byte keys: of the empty one, which zeros look like
  ASSERT_FALSE(record.is_null());
  Remove(0);
  EXPECT_EQ(Read(0), "none");
  std::memset(database_->state().node->memory().data() + record.offset(), 0, kLineBytes);
  EXPECT_EQ(Read(0), "none");
}

TEST_P(OwnLocationsTest, ForgetsWithTheTable) {
  Open();
  Insert(7, "old");
  EXPECT_EQ(Read(7), "old");
  ASSERT_TRUE(database_->DropTable("rows").ok());
  EXPECT_EQ(table_->own_locations(), nullptr);
  table_ = Create("rows");
  EXPECT_EQ(Read(7), "none");
  Insert(7, "new");
  EXPECT_EQ(Read(7), "new");
}

TEST_P(OwnLocationsTest, TakesNoMoreThanItMay) {
  Open(4096);
  constexpr uint64_t kRows = 3000;
  for (uint64_t row = 0; row < kRows; ++row) Insert(row, std::to_string(row));
  for (int round = 0; round < 3; ++round) {
    for (uint64_t row = 0; row < kRows; ++row) ASSERT_EQ(Read(row), std::to_string(row));
  }
  EXPECT_EQ(CacheBytes(), 4096u);
}

TEST_P(OwnLocationsTest, CanBeSwitchedOff) {
  Open(0);
  Insert(1, "row");
  EXPECT_EQ(Read(1), "row");
  EXPECT_EQ(Read(1), "row");
  EXPECT_EQ(CacheBytes(), 0u);
}

// Rows that come, are read and go leave wrong entries behind. They make room for others; the cache does not grow.
TEST_P(OwnLocationsTest, StaysSmallWhileRowsComeAndGo) {
  Open();
  constexpr uint64_t kAtOnce = 500;
  for (uint64_t row = 0; row < 60 * kAtOnce; ++row) {
    Insert(row, "row");
    for (int time = 0; time < 4; ++time) ASSERT_EQ(Read(row), "row");
    if (row >= kAtOnce) Remove(row - kAtOnce);
  }
  EXPECT_LE(CacheBytes(), 64u << 10);
}

// While rows are read only once, the cache remembers a sample of them. When they are read again, it remembers all.
TEST_P(OwnLocationsTest, WaitsUntilRowsAreReadAgain) {
  constexpr uint64_t kRows = 5000;
  Open();
  for (uint64_t row = 0; row < kRows; ++row) Insert(row, "row");
  const auto remembered = [&] {
    uint64_t count = 0;
    for (uint64_t row = 0; row < kRows; ++row) count += Remembered(row).is_null() ? 0 : 1;
    return count;
  };
  for (uint64_t row = 0; row < kRows; ++row) ASSERT_EQ(Read(row), "row");
  EXPECT_GT(remembered(), 0u);
  EXPECT_LT(remembered(), kRows / 10);
  for (int round = 0; round < 8; ++round) {
    for (uint64_t row = 0; row < kRows; ++row) ASSERT_EQ(Read(row), "row");
  }
  EXPECT_GT(remembered(), kRows * 9 / 10);
  // The cache is now asked only for rows that nobody has read.
  for (uint64_t row = 0; row < 5 * kRows; ++row) EXPECT_EQ(Read(kRows + row), "none");
  uint64_t used = 0;
  for (uint64_t hash = 0; hash < 64; ++hash) used += table_->own_locations()->IsFor(hash << 58) ? 1 : 0;
  EXPECT_EQ(used, 2u);
}

// Payloads name their row; readers must never see another's, or a row that is half moved.
TEST_P(OwnLocationsTest, ReadersAndWritersAtOnce) {
  constexpr uint64_t kRows = 300;
  Open();
  const auto payload_of = [](uint64_t row, Random* random) {
    return std::string(8 + random->Below(kMostPayload - 8), static_cast<char>('!' + row % 90));
  };
  const auto key_of = [](uint64_t row, std::string* text) {
    if (Is(index::KeyKind::kInteger)) return Key(row * 1000);
    return Key(std::string_view(*text = "row " + std::to_string(row)));
  };
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> read{0};
  std::vector<std::thread> threads;
  for (uint64_t writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      Random random(writer);
      std::string text;
      while (!stop.load()) {
        const uint64_t row = random.Below(kRows);
        const Key key = key_of(row, &text);
        const std::string payload = payload_of(row, &random);
        const Status status = database_->Run([&](BlockingTransaction& t) -> Status {
          const StatusOr<bool> exists = t.Exists(*table_, key);
          if (!exists.ok()) return exists.status();
          if (!*exists) return t.Insert(*table_, key, BytesOf(payload));
          return random.OneIn(2) ? t.Remove(*table_, key) : t.Update(*table_, key, BytesOf(payload));
        });
        EXPECT_TRUE(status.ok() || absl::IsAlreadyExists(status) || absl::IsNotFound(status)) << status;
      }
    });
  }
  for (uint64_t reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&, reader] {
      Random random(100 + reader);
      std::string text;
      while (!stop.load()) {
        const uint64_t row = random.Below(kRows);
        const Key key = key_of(row, &text);
        std::string payload;
        const Status status = database_->Run([&](BlockingTransaction& t) -> Status {
          const auto view = t.GetView(*table_, key);
          if (!view.ok()) return view.status();
          payload.assign(reinterpret_cast<const char*>(view->data()), view->size());
          return absl::OkStatus();
        });
        if (absl::IsNotFound(status)) continue;
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_GE(payload.size(), 8u);
        ASSERT_EQ(payload, std::string(payload.size(), static_cast<char>('!' + row % 90)));
        read.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  while (read.load(std::memory_order_relaxed) < 100'000 && !HasFailure()) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Kinds, OwnLocationsTest,
                         testing::Values(TableShape{"XStoreIntegers", IndexKind::kXStore, index::KeyKind::kInteger},
                                         TableShape{"XStoreBytes", IndexKind::kXStore, index::KeyKind::kBytes},
                                         TableShape{"BlinkIntegers", IndexKind::kBlink, index::KeyKind::kInteger},
                                         TableShape{"RolexIntegers", IndexKind::kRolex, index::KeyKind::kInteger},
                                         TableShape{"DexIntegers", IndexKind::kDex, index::KeyKind::kInteger},
                                         TableShape{"DolphinIntegers", IndexKind::kDolphin, index::KeyKind::kInteger}),
                         [](const auto& shape) { return shape.param.name; });

// Kinds that find records by themselves, and those that clients change, have none.
TEST(OwnLocationsOfKinds, OnlyWhereTheyHelp) {
  auto database = *Database::OpenInMemory({.memory_bytes = uint64_t{1} << 28});
  const auto has = [&](const char* name, IndexKind index, IndexRights rights) {
    const auto table =
        database->CreateTable({.name = name, .index = index, .index_rights = rights, .payload_bytes = 8});
    EXPECT_TRUE(table.ok()) << table.status();
    return (*table)->own_locations() != nullptr;
  };
  EXPECT_FALSE(has("hash", IndexKind::kHash, IndexRights::kOwnerOnly));
  EXPECT_TRUE(has("xstore", IndexKind::kXStore, IndexRights::kOwnerOnly));
  EXPECT_FALSE(has("rolex of clients", IndexKind::kRolex, IndexRights::kClients));
  EXPECT_TRUE(has("rolex of the owner", IndexKind::kRolex, IndexRights::kOwnerOnly));
}

}  // namespace own_locations_test
}  // namespace gannet::txn
