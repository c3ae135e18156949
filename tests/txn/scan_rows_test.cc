// Scans of a node's own rows, which copy keys and payloads from the records: rows of one line and of several, keys of
// every length, the transaction's own writes among them, and records into which a client has written.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/database.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace scan_rows_test {

using Rows = std::map<std::string, std::string>;

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Shape {
  size_t key_bytes;  // the most: keys are in leaves, or in records
  int nodes;         // 1, or another one, which may write into records
};

class ScanRowsTest : public testing::TestWithParam<Shape> {
 protected:
  static constexpr size_t kMostPayload = 300;

  void SetUp() override {
    fabric_ = *rdma::ShmFabric::InProcess({.num_nodes = GetParam().nodes, .bytes_per_node = uint64_t{256} << 20});
    for (rdma::NodeId node = 0; node < GetParam().nodes; ++node) {
      auto database = Database::Open(fabric_.get(), node, {.data_nodes = 1});
      ASSERT_TRUE(database.ok()) << database.status();
      const auto table = (*database)->CreateTable({.name = "rows",
                                                   .key_kind = index::KeyKind::kBytes,
                                                   .max_key_bytes = GetParam().key_bytes,
                                                   .index = IndexKind::kXStore,
                                                   .payload_bytes = kMostPayload,
                                                   .variable_length = true});
      ASSERT_TRUE(table.ok()) << table.status();
      if (node == 0) table_ = *table;
      databases_.push_back(*std::move(database));
    }
    database_ = databases_.front().get();
    std::vector<std::thread> others;
    for (size_t node = 1; node < databases_.size(); ++node) {
      others.emplace_back([&, node] { EXPECT_TRUE(databases_[node]->Start().ok()); });
    }
    EXPECT_TRUE(database_->Start().ok());
    for (std::thread& other : others) other.join();
  }

  std::string AnyKey() {
    std::string key(random_.Below(GetParam().key_bytes + 1), '\0');
    for (char& byte : key) byte = static_cast<char>(random_.OneIn(3) ? 0 : 'a' + random_.Below(3));
    return key;
  }
  std::string AnyPayload() { return std::string(random_.Below(kMostPayload + 1), static_cast<char>(random_())); }

  void Load(size_t rows) {
    while (rows_.size() < rows) rows_.emplace(AnyKey(), AnyPayload());
    const Status loaded = database_->Run([&](BlockingTransaction& t) -> Status {
      for (const auto& [key, payload] : rows_) GANNET_RETURN_IF_ERROR(t.Insert(*table_, Key(key), BytesOf(payload)));
      return absl::OkStatus();
    });
    ASSERT_TRUE(loaded.ok()) << loaded;
  }
  // Compares scans of some ranges with `rows`.
  void ExpectScans(BlockingTransaction& t, const Rows& rows, bool for_update) {
    for (int round = 0; round < 20; ++round) {
      std::string from = AnyKey();
      std::string to = AnyKey();
      if (to < from) std::swap(from, to);
      if (round == 0) from = "", to = std::string(GetParam().key_bytes, '\xff');
      index::ScanRange range{.from = Key(from), .to = Key(to), .reverse = round % 2 == 1};
      if (round % 3 == 2) range.limit = random_.Below(40);
      const bool keys_only = round % 5 == 4;
      std::vector<std::pair<std::string, std::string>> expected(rows.lower_bound(from), rows.upper_bound(to));
      if (range.reverse) std::ranges::reverse(expected);
      if (expected.size() > range.limit) expected.resize(range.limit);
      ScanRows found;
      const Status status = t.Scan(*table_, range, &found, {.keys_only = keys_only, .for_update = for_update});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(found.key(i).bytes(), expected[i].first);
        EXPECT_EQ(TextOf(found.payload(i)), keys_only ? "" : expected[i].second);
      }
    }
  }
  std::byte* RecordOf(const std::string& key) {
    return database_->state().local->node.memory().data() + table_->local_index().Find(Key(key)).record.offset();
  }

  Random random_{7};
  std::unique_ptr<rdma::ShmFabric> fabric_;
  std::vector<std::unique_ptr<Database>> databases_;
  Database* database_ = nullptr;  // has the rows
  const Table* table_ = nullptr;
  Rows rows_;
};

TEST_P(ScanRowsTest, BringTheRowsAndOwnWrites) {
  Load(GetParam().key_bytes < 8 ? 40 : 3000);
  const Status read = database_->Run([&](BlockingTransaction& t) -> Status {
    ExpectScans(t, rows_, false);
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  for (const bool for_update : {false, true}) {
    const Status written = database_->Run([&](BlockingTransaction& t) -> Status {
      Rows rows = rows_;
      for (int i = 0; i < 30; ++i) {
        auto near = rows_.lower_bound(AnyKey());
        if (near == rows_.end()) near = rows_.begin();
        const std::string key = random_.OneIn(2) ? AnyKey() : near->first;
        const std::string payload = AnyPayload();
        if (!rows.contains(key)) {
          GANNET_RETURN_IF_ERROR(t.Insert(*table_, Key(key), BytesOf(payload)));
          rows[key] = payload;
        } else if (random_.OneIn(2)) {
          GANNET_RETURN_IF_ERROR(t.Remove(*table_, Key(key)));
          rows.erase(key);
        } else {
          GANNET_RETURN_IF_ERROR(t.Update(*table_, Key(key), BytesOf(payload)));
          rows[key] = payload;
        }
      }
      ExpectScans(t, rows, for_update);
      return absl::CancelledError("leave the rows as they are");
    });
    EXPECT_TRUE(absl::IsCancelled(written)) << written;
  }
}

// A client that breaks the rules writes anything behind the state words of records. Scans bring rows, or an error that
// says so; they end, and touch no other memory.
TEST_P(ScanRowsTest, MeetRecordsThatWereOverwritten) {
  if (GetParam().nodes == 1) GTEST_SKIP() << "has no clients";
  if (GetParam().key_bytes < 8) GTEST_SKIP() << "has too few keys";
  Load(2000);
  std::vector<std::string> keys;
  for (const auto& [key, payload] : rows_) keys.push_back(key);
  int damaged = 0;
  for (int round = 0; round < 300; ++round) {
    std::byte* const record = RecordOf(keys[random_.Below(keys.size())]);
    if (record == database_->state().local->node.memory().data()) continue;  // not found any more
    const bool whole = random_.OneIn(3);                                     // the sizes, too
    for (size_t word = whole ? 1 : 2; word < 3; ++word) {
      if (random_.OneIn(2)) StoreWord(record + word * kWordBytes, random_());
    }
    const Status status = database_->Run([&](BlockingTransaction& t) -> Status {
      ScanRows found;
      std::string first;
      std::string last(GetParam().key_bytes, '\xff');
      if (round % 4 >= 2) std::tie(first, last) = std::minmax({AnyKey(), AnyKey()});
      const Status scanned = t.Scan(*table_, {.from = Key(first), .to = Key(last), .reverse = round % 2 == 1}, &found);
      if (!scanned.ok()) return scanned;
      EXPECT_LE(found.size(), rows_.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_FALSE(found.key(i) < Key(first) || Key(last) < found.key(i));
      }
      return absl::CancelledError("");
    });
    EXPECT_TRUE(absl::IsCancelled(status) || absl::IsDataLoss(status)) << status;
    damaged += absl::IsDataLoss(status) ? 1 : 0;
  }
  EXPECT_GT(damaged, 0);
}

// Leaves of integer keys are not sorted: scans sort them. The least and the greatest key are among the rows.
TEST(ScanIntegerRowsTest, AreInOrderFromTheLeastKeyToTheGreatest) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20});
  ASSERT_TRUE(database.ok()) << database.status();
  auto made = (*database)->CreateTable(
      {.name = "rows", .index = IndexKind::kXStore, .payload_bytes = 300, .variable_length = true});
  ASSERT_TRUE(made.ok()) << made.status();
  const Table& table = **made;
  ASSERT_TRUE((*database)->Start().ok());
  Random random(8);
  std::map<uint64_t, std::string> rows;
  const auto any_key = [&]() -> uint64_t {
    constexpr uint64_t kMiddle = uint64_t{1} << 63;  // the signs of the words change there
    const uint64_t near = random.Below(2000);
    return std::array{near, UINT64_MAX - near, kMiddle - 1000 + near, random()}[random.Below(4)];
  };
  const auto payload = [&] { return std::string(random.Below(301), static_cast<char>(random())); };
  rows.emplace(0, payload());
  rows.emplace(UINT64_MAX, payload());
  std::vector<uint64_t> keys = {0, UINT64_MAX};
  while (rows.size() < 3000) {
    const uint64_t key = any_key();
    if (rows.emplace(key, payload()).second) keys.push_back(key);
  }
  std::reverse(keys.begin(), keys.end());
  for (const uint64_t key : keys) {  // in the order of chance
    const Status inserted =
        (*database)->Run([&](BlockingTransaction& t) { return t.Insert(table, Key(key), BytesOf(rows[key])); });
    ASSERT_TRUE(inserted.ok()) << inserted;
  }
  for (int round = 0; round < 300; ++round) {
    uint64_t from = round % 3 == 0 ? 0 : any_key();
    uint64_t to = round % 3 == 1 ? UINT64_MAX : any_key();
    if (to < from) std::swap(from, to);
    index::ScanRange range{.from = Key(from), .to = Key(to), .reverse = round % 2 == 1};
    if (round % 4 == 3) range.limit = random.Below(40);
    const bool keys_only = round % 5 == 4;
    std::vector<std::pair<uint64_t, std::string>> expected(rows.lower_bound(from), rows.upper_bound(to));
    if (range.reverse) std::ranges::reverse(expected);
    if (expected.size() > range.limit) expected.resize(range.limit);
    ScanRows found;
    const Status scanned = (*database)->Run(
        [&](BlockingTransaction& t) { return t.Scan(table, range, &found, {.keys_only = keys_only}); });
    ASSERT_TRUE(scanned.ok()) << scanned;
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(found.key(i).integer(), expected[i].first);
      ASSERT_EQ(TextOf(found.payload(i)), keys_only ? "" : expected[i].second);
    }
  }
}

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const size_t key_bytes : {3, 20, 39, 64, 200, 1024}) {
    for (const int nodes : {1, 2}) shapes.push_back({key_bytes, nodes});
  }
  return shapes;
}

INSTANTIATE_TEST_SUITE_P(LongestKeys, ScanRowsTest, testing::ValuesIn(Shapes()), [](const auto& of) {
  return "Bytes" + std::to_string(of.param.key_bytes) + "Nodes" + std::to_string(of.param.nodes);
});

}  // namespace scan_rows_test
}  // namespace gannet::txn
