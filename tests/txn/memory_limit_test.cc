// DatabaseOptions::memory_bytes: memory is short only when it is used up, however it is divided between the index and
// the records, and a database that is full goes on.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "txn/database.h"
#include "txn/session.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kMemory = uint64_t{48} << 20;

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
    EXPECT_TRUE((*database)->Run([&](BlockingTransaction& t) { return t.Get(table, 1, std::span<std::byte>()); }).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MemoryLimitTest,
                         ::testing::Values(IndexKind::kHash, IndexKind::kXStore, IndexKind::kBlink, IndexKind::kRolex),
                         [](const auto& kind) { return index::EntryOf(kind.param).name; });

}  // namespace
}  // namespace gannet::txn
