#include "txn/durable/latest_changes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/record_header.h"
#include "txn/database.h"
#include "txn/durable/redo_key.h"
#include "txn/record/record.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace latest_changes_test {

constexpr uint16_t kTables = 40;  // more than there are hints
constexpr uint16_t kUnwanted = kTables - 1;
constexpr size_t kMostPayload = 300;
constexpr size_t kMostKey = 100;

bool HasIntegerKeys(uint16_t table) {
  return table % 3 == 0;
}

struct TestChange {
  uint64_t epoch;
  uint64_t version;
  uint16_t table;
  bool removed;
  std::string key;
  std::string payload;
};

// The fields that decide which change is the newest, and a payload that encodes them.
struct Newest {
  std::pair<uint64_t, uint64_t> order;
  bool removed;
  std::string payload;
  friend bool operator==(const Newest&, const Newest&) = default;
};
using Model = std::map<std::pair<uint16_t, std::string>, Newest>;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

log::ChangeView ViewOf(const TestChange& change) {
  log::ChangeView view;
  view.kind = change.removed ? log::ChangeKind::kRemove : log::ChangeKind::kPut;
  view.table = change.table;
  view.version = change.version;
  view.payload = Bytes(change.payload);
  view.long_key = Bytes(change.key);
  return view;
}

// Keys of 0 to 80 bytes: many have the same first eight bytes, some differ only by zeros at the end.
std::string KeyOf(uint64_t number, bool integer) {
  std::string key(integer ? 8 : number % 81, '\0');
  if (!key.empty()) key.back() = static_cast<char>(number % 251);
  if (key.size() > 4) key[number % 4] = static_cast<char>(number / 251 % 256);
  return key;
}

void AddToModel(const TestChange& change, Model* model) {
  const Newest newest{{change.epoch, change.version}, change.removed, change.payload};
  const auto [at, added] = model->try_emplace({change.table, change.key}, newest);
  if (!added && at->second.order < newest.order) at->second = newest;
}

// Changes as a log may hold them: no two changes of a key have the same epoch and version.
std::vector<TestChange> RandomChanges(uint64_t seed, size_t n) {
  std::mt19937_64 random(seed);
  std::vector<TestChange> changes(n);
  for (size_t i = 0; i < n; ++i) {
    TestChange& change = changes[i];
    change.epoch = random() % 7;
    change.version = i;
    change.table = static_cast<uint16_t>(random() % 4 == 0 ? random() % kTables : random() % 4);
    change.removed = random() % 5 == 0;
    change.key = KeyOf(random() % 3000, HasIntegerKeys(change.table));
    if (!change.removed)
      change.payload = std::string(random() % 200, static_cast<char>('a' + i % 26)) + std::to_string(i);
  }
  return changes;
}

// Adds them as transactions of 1 to 70 changes; all changes of one transaction have its epoch.
Status AddAll(const std::vector<TestChange>& changes, uint64_t seed, LatestChanges::Adder* to) {
  std::mt19937_64 random(seed);
  for (uint64_t epoch = 0; epoch < 7; ++epoch) {
    std::vector<log::ChangeView> views;  // they stay until Flush
    views.reserve(changes.size());
    size_t added = 0;
    const auto add = [&] {
      Status status = to->Add(epoch, std::span(views).subspan(added));
      added = views.size();
      return status;
    };
    for (const TestChange& change : changes) {
      if (change.epoch != epoch) continue;
      views.push_back(ViewOf(change));
      if (random() % 70 > views.size() - added) continue;
      GANNET_RETURN_IF_ERROR(add());
      if (random() % 50 == 0) GANNET_RETURN_IF_ERROR(to->Flush());
    }
    GANNET_RETURN_IF_ERROR(add());
    GANNET_RETURN_IF_ERROR(to->Flush());
  }
  return absl::OkStatus();
}

class LatestChangesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto database = Database::OpenInMemory({.memory_bytes = uint64_t{1} << 30});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    std::vector<const Table*> wanted;
    for (uint16_t i = 0; i < kTables; ++i) {
      const bool integer = HasIntegerKeys(i);
      const StatusOr<const Table*> table =
          database_->CreateTable({.name = "table " + std::to_string(i),
                                  .key_kind = integer ? index::KeyKind::kInteger : index::KeyKind::kBytes,
                                  .max_key_bytes = integer ? index::kIntegerKeyBytes : kMostKey,
                                  .payload_bytes = kMostPayload,
                                  .variable_length = true});
      ASSERT_TRUE(table.ok()) << table.status();
      ASSERT_EQ((*table)->id(), i);
      if (i != kUnwanted) wanted.push_back(*table);
    }
    local_ = database_->state().local.get();
    counts_ = std::make_unique<RecordCounts>(local_->tables.id_bound());
    latest_ = std::make_unique<LatestChanges>(local_, "the directory", wanted, /*threads=*/4, counts_.get());
  }

  const Table& table(uint16_t id) const { return *local_->TableById(id); }
  const ChangeMap::Entry* Find(uint16_t id, const std::string& key) const {
    const Key view = KeyFromRedo(table(id).options().key_kind, Bytes(key));
    return latest_->Find(table(id), latest_->Hashed(view));
  }
  // Checks the record, too.
  Newest Read(uint16_t id, const std::string& key, const ChangeMap::Entry& entry) const {
    Newest newest{{entry.epoch, entry.version}, entry.removed(), ""};
    if (entry.removed()) return newest;
    const std::byte* const record = entry.record();
    const index::RecordMeta meta = index::LoadMeta(record);
    EXPECT_TRUE(index::RecordHoldsKey(record, KeyFromRedo(table(id).options().key_kind, Bytes(key))));
    EXPECT_EQ(meta.table, id);
    EXPECT_FALSE(IsLocked(LoadWord(record)));
    EXPECT_FALSE(IsAbsent(LoadWord(record)));
    const size_t lines = rdma::LinesFor(index::PayloadDataOffset(key.size()) + meta.payload_bytes);
    EXPECT_TRUE(rdma::IsConsistentImage(record, lines));
    newest.payload.resize(meta.payload_bytes);
    rdma::CopyOut(record, index::PayloadDataOffset(key.size()),
                  std::as_writable_bytes(std::span(newest.payload.data(), newest.payload.size())));
    return newest;
  }
  void ExpectIs(const Model& model) {
    std::vector<size_t> keys(kTables);
    std::vector<int64_t> bytes(kTables);
    int64_t records = 0;
    for (const auto& [place, newest] : model) {
      const auto& [id, key] = place;
      if (id == kUnwanted) continue;
      ++keys[id];
      const ChangeMap::Entry* found = Find(id, key);
      ASSERT_NE(found, nullptr) << "table " << id;
      EXPECT_EQ(Read(id, key, *found), newest);
      if (newest.removed && HasIntegerKeys(id)) continue;  // needs no record
      ++records;
      bytes[id] += BlockBytesOf(KeyFromRedo(table(id).options().key_kind, Bytes(key)), newest.payload.size());
    }
    for (uint16_t id = 0; id < kTables; ++id) {
      EXPECT_EQ(latest_->size(table(id)), keys[id]) << "table " << id;
      EXPECT_EQ(counts_->bytes[id].load(), bytes[id]) << "table " << id;
    }
    EXPECT_EQ(counts_->records.load(), records);
  }
  // All memory of records is given back.
  void ExpectNothingLeft() {
    for (uint16_t id = 0; id < kTables; ++id) latest_->Discard(table(id));
    EXPECT_EQ(counts_->records.load(), 0);
    for (uint16_t id = 0; id < kTables; ++id) {
      EXPECT_EQ(latest_->size(table(id)), 0u);
      EXPECT_EQ(counts_->bytes[id].load(), 0) << "table " << id;
    }
  }

  std::unique_ptr<Database> database_;
  const LocalNode* local_ = nullptr;
  std::unique_ptr<RecordCounts> counts_;
  std::unique_ptr<LatestChanges> latest_;
};

TEST_F(LatestChangesTest, KeepTheNewestOfEachKey) {
  const std::vector<TestChange> changes = RandomChanges(1, 40'000);
  Model model;
  for (const TestChange& change : changes) AddToModel(change, &model);
  {
    LatestChanges::Adder adder(latest_.get(), 0);
    ASSERT_TRUE(AddAll(changes, 1, &adder).ok());
  }
  ExpectIs(model);
  EXPECT_EQ(Find(1, "no such key"), nullptr);
  EXPECT_EQ(Find(kUnwanted, std::string(8, '\0')), nullptr);
  ExpectNothingLeft();
}

TEST_F(LatestChangesTest, AreFilledByThreadsAtOnce) {
  constexpr size_t kThreads = 4;
  const std::vector<TestChange> changes = RandomChanges(2, 40'000);
  Model model;
  for (const TestChange& change : changes) AddToModel(change, &model);
  std::vector<std::vector<TestChange>> shares(kThreads);
  for (size_t i = 0; i < changes.size(); ++i) shares[i % kThreads].push_back(changes[i]);
  std::vector<Status> results(kThreads);
  std::vector<Thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back("adder", [&, i] {
      LatestChanges::Adder adder(latest_.get(), i);
      results[i] = AddAll(shares[i], i, &adder);
    });
  }
  for (Thread& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << result;
  ExpectIs(model);
  ExpectNothingLeft();
}

TEST_F(LatestChangesTest, KeepRecordsOfNeighbouringKeysTogether) {
  std::vector<TestChange> changes;
  for (uint64_t number = 0; number < 16; ++number) {
    std::string key(8, '\0');
    key.back() = static_cast<char>(number);
    changes.push_back({1, 1, 0, false, key, "p"});
  }
  {
    LatestChanges::Adder adder(latest_.get(), 0);
    ASSERT_TRUE(AddAll(changes, 1, &adder).ok());
  }
  for (size_t i = 1; i < changes.size(); ++i) {
    EXPECT_EQ(Find(0, changes[i].key)->record() - Find(0, changes[i - 1].key)->record(), kLineBytes) << i;
  }
}

TEST_F(LatestChangesTest, NameWhatDoesNotFit) {
  LatestChanges::Adder adder(latest_.get(), 0);
  const auto add = [&](uint16_t id, bool removed, size_t key_bytes, size_t payload_bytes) {
    const TestChange change{1, 1, id, removed, std::string(key_bytes, 'k'), std::string(payload_bytes, 'p')};
    const log::ChangeView view = ViewOf(change);
    Status status = adder.Add(1, std::span(&view, 1));
    if (status.ok()) status = adder.Flush();
    return status;
  };
  EXPECT_TRUE(add(0, false, 8, kMostPayload).ok());
  EXPECT_TRUE(add(1, false, kMostKey, 0).ok());
  for (const Status& misfit : {add(0, false, 7, 1), add(0, true, 9, 0), add(0, false, 8, kMostPayload + 1),
                               add(1, false, kMostKey + 1, 1), add(1, true, kMostKey + 1, 0)}) {
    EXPECT_TRUE(absl::IsDataLoss(misfit)) << misfit;
    EXPECT_NE(misfit.message().find("the directory has"), std::string::npos) << misfit;
    EXPECT_NE(misfit.message().find("'table "), std::string::npos) << misfit;
  }
  EXPECT_TRUE(add(kUnwanted, false, 500, 5000).ok());  // nobody looks at it
}

}  // namespace latest_changes_test
}  // namespace gannet::txn
