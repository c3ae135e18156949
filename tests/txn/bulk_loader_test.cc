// BulkLoader: an error, or a loader that is given up, leaves nothing.
#include "txn/bulk_loader.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/slab.h"
#include "txn/database.h"
#include "txn/run/database_state.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace bulk_loader_test {

constexpr size_t kRowBytes = 1000;

class BulkLoaderTest : public testing::TestWithParam<IndexKind> {
 protected:
  BulkLoaderTest() {
    fabric_ = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{64} << 20}).value();
    database_ = Database::Open(fabric_.get(), 0, {}).value();
    rows_ = database_
                ->CreateTable(
                    {.name = "rows", .index = GetParam(), .payload_bytes = kRowBytes, .expected_rows = uint64_t{1}})
                .value();
    EXPECT_TRUE(database_->Start().ok());
    session_ = database_->OpenSession().value();
  }

  Status Add(BulkLoader& loader, uint64_t key) {
    const std::vector<std::byte> row(kRowBytes, static_cast<std::byte>(key));
    return loader.Add(key, row);
  }
  Status Load(const std::vector<uint64_t>& keys) {
    BulkLoader loader(session_.get(), rows_);
    for (const uint64_t key : keys) GANNET_RETURN_IF_ERROR(Add(loader, key));
    return loader.Finish();
  }
  bool Exists(uint64_t key) {
    std::vector<std::byte> row(kRowBytes);
    const auto get = [&](Transaction& t) -> coro::Task<Status> {
      co_return co_await t.Get(*rows_, key, std::span<std::byte>(row));
    };
    const Status status = session_->RunBlocking(get);
    EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
    if (status.ok()) {
      EXPECT_EQ(row, std::vector<std::byte>(kRowBytes, static_cast<std::byte>(key)));
    }
    return status.ok();
  }
  uint64_t record_bytes() { return database_->table_statistics().front().record_bytes; }
  uint64_t keys() { return database_->table_statistics().front().index.keys; }

  std::unique_ptr<rdma::ShmFabric> fabric_;
  std::unique_ptr<Database> database_;
  const Table* rows_ = nullptr;
  std::unique_ptr<Session> session_;
};

// More than the memory could hold if each left something.
constexpr int kManyLoads = 2000;
constexpr uint64_t kRows = 100;

TEST_P(BulkLoaderTest, WhatIsNotFinishedIsGivenBack) {
  for (int i = 0; i < kManyLoads; ++i) {
    BulkLoader loader(session_.get(), rows_);
    for (uint64_t key = 0; key < kRows; ++key) ASSERT_TRUE(Add(loader, key).ok()) << "load " << i;
  }
  EXPECT_EQ(record_bytes(), 0u);
  EXPECT_EQ(keys(), 0u);
  EXPECT_TRUE(Load({1, 2, 3}).ok());
  EXPECT_TRUE(Exists(2));
}

TEST_P(BulkLoaderTest, AfterFinishItIsOver) {
  BulkLoader loader(session_.get(), rows_);
  ASSERT_TRUE(Add(loader, 1).ok());
  ASSERT_TRUE(loader.Finish().ok());
  const Status late = Add(loader, 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
  EXPECT_EQ(late.message(), "a load of table 'rows' is over after Finish: make another BulkLoader");
  EXPECT_EQ(loader.Finish(), late);
  EXPECT_TRUE(Exists(1));
  EXPECT_FALSE(Exists(2));
}

TEST_P(BulkLoaderTest, ATableThatIsNotEmptyKeepsWhatItHas) {
  ASSERT_TRUE(Load({7}).ok());
  const uint64_t before = record_bytes();
  std::vector<uint64_t> more;
  for (uint64_t key = 10; key < 10 + kRows; ++key) more.push_back(key);
  for (int i = 0; i < kManyLoads; ++i) {
    const Status status = Load(more);
    ASSERT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
  EXPECT_EQ(record_bytes(), before);
  EXPECT_EQ(keys(), 1u);
  EXPECT_TRUE(Exists(7));
  EXPECT_FALSE(Exists(10));
}

// A program that looks only at what Finish returns does not get half of its rows.
TEST_P(BulkLoaderTest, AnAddThatFailsEndsTheLoad) {
  BulkLoader loader(session_.get(), rows_);
  ASSERT_TRUE(Add(loader, 1).ok());
  const Status failed = loader.Add(uint64_t{2}, std::vector<std::byte>(kRowBytes + 1));
  EXPECT_TRUE(absl::IsInvalidArgument(failed)) << failed;
  EXPECT_EQ(Add(loader, 3), failed);
  EXPECT_EQ(loader.Finish(), failed);
  EXPECT_EQ(keys(), 0u);
  EXPECT_EQ(record_bytes(), 0u);
  for (const uint64_t key : {1, 3}) ASSERT_TRUE(Add(loader, key).ok());
  ASSERT_TRUE(loader.Finish().ok());
  EXPECT_TRUE(Exists(1) && Exists(3));
  EXPECT_EQ(keys(), 2u);
}

// All rows of a table have its size, unless their length is variable.
TEST_P(BulkLoaderTest, ATableThatIsWidenedMeanwhileGetsNoShortRows) {
  BulkLoader loader(session_.get(), rows_);
  ASSERT_TRUE(Add(loader, 1).ok());
  ASSERT_TRUE(database_->WidenTable("rows", kRowBytes + 100).ok());
  const std::vector<std::byte> wide(kRowBytes + 100, std::byte{2});
  ASSERT_TRUE(loader.Add(uint64_t{2}, wide).ok());
  const Status refused = loader.Finish();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("table 'rows' was widened"), std::string::npos) << refused;
  EXPECT_EQ(record_bytes(), 0u);
  EXPECT_EQ(keys(), 0u);
  ASSERT_TRUE(loader.Add(uint64_t{2}, wide).ok());
  const Status again = loader.Finish();
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_EQ(keys(), 1u);
}

TEST_P(BulkLoaderTest, ATableOfAnyLengthIsWidenedMeanwhile) {
  const Table* const words = database_
                                 ->CreateTable({.name = "words",
                                                .index = GetParam(),
                                                .payload_bytes = kRowBytes,
                                                .variable_length = true,
                                                .expected_rows = uint64_t{1}})
                                 .value();
  BulkLoader loader(session_.get(), words);
  ASSERT_TRUE(Add(loader, 1).ok());
  ASSERT_TRUE(database_->WidenTable("words", kRowBytes + 100).ok());
  const Status loaded = loader.Finish();
  EXPECT_TRUE(loaded.ok()) << loaded;
}

// A hash index takes its keys one by one: some were in it before the error.
TEST_P(BulkLoaderTest, AnIndexThatDoesNotFitIsTakenApart) {
  std::vector<uint64_t> many;
  for (uint64_t key = 0; key < 2000; ++key) many.push_back(key);
  {
    rdma::SlabCache hoard(database_->state().slab.get());
    // Takes the whole part of the heap for indexes, in blocks of the size that this index takes: a block keeps its size
    // there.
    const size_t bytes = GetParam() == IndexKind::kHash ? 64 : 320;
    std::vector<std::byte*> held;
    for (auto block = hoard.AllocateReadOnly(bytes); block.ok(); block = hoard.AllocateReadOnly(bytes)) {
      held.push_back(*block);
    }
    const Status status = Load(many);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(record_bytes(), 0u);
    EXPECT_EQ(keys(), 0u);
    EXPECT_FALSE(Exists(0));
    for (std::byte* const block : held) hoard.Free(block, bytes);
  }
  const Status again = Load(many);
  EXPECT_TRUE(again.ok()) << again;
  EXPECT_EQ(keys(), many.size());
  EXPECT_TRUE(Exists(0));
}

TEST(BulkLoaderOfHashTest, KeysComeInAnyOrderButOnce) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{64} << 20}).value();
  auto database = Database::Open(fabric.get(), 0, {}).value();
  const Table* const rows = database->CreateTable({.name = "rows", .payload_bytes = sizeof(uint64_t)}).value();
  ASSERT_TRUE(database->Start().ok());
  auto session = database->OpenSession().value();
  BulkLoader loader(session.get(), rows);
  for (const uint64_t key : {5, 3, 9, 3}) ASSERT_TRUE(loader.Add(key, key).ok());
  const Status twice = loader.Finish();
  EXPECT_TRUE(absl::IsInvalidArgument(twice)) << twice;
  EXPECT_NE(twice.message().find("key 3: it was added twice"), std::string::npos) << twice;
  EXPECT_EQ(database->table_statistics().front().record_bytes, 0u);
  EXPECT_EQ(database->table_statistics().front().index.keys, 0u);
  for (const uint64_t key : {5, 3, 9}) ASSERT_TRUE(loader.Add(key, key).ok());
  const Status loaded = loader.Finish();
  EXPECT_TRUE(loaded.ok()) << loaded;
  for (const uint64_t key : {5, 3, 9}) {
    uint64_t value = 0;
    EXPECT_TRUE(database->Run([&](BlockingTransaction& t) { return t.Get(*rows, key, &value); }).ok());
    EXPECT_EQ(value, key);
  }
}

INSTANTIATE_TEST_SUITE_P(, BulkLoaderTest, testing::Values(IndexKind::kHash, IndexKind::kXStore),
                         [](const auto& each) { return each.param == IndexKind::kHash ? "Hash" : "XStore"; });

}  // namespace bulk_loader_test
}  // namespace gannet::txn
