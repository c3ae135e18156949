// A session whose location cache names memory where its record no longer is.
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/base/cache_line.h"
#include "rdma/versioned.h"
#include "tests/txn/cluster.h"
#include "txn/session_internal.h"
#include "txn/state_word.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kKey = 7;
constexpr size_t kPayload = 2000;  // more than a first READ of variable length brings

class StaleLocationTest : public testing::Test {
 protected:
  StaleLocationTest()
      : cluster({.nodes = 2},
                {{.name = "blobs", .payload_bytes = kMaxPayloadBytes, .variable_length = true, .expected_rows = 100}}),
        owner(cluster.NewSession(0)),
        reader(cluster.NewSession(1)),
        table(cluster.table(1, "blobs")) {
    EXPECT_TRUE(RunBlockingBody(owner, [&](BlockingTransaction& t) {
                  return t.Insert(cluster.table(0, "blobs"), kKey, std::as_bytes(std::span(before)));
                }).ok());
    EXPECT_EQ(Read(), before);
  }

  std::string Read() {
    std::string payload(before.size(), ' ');
    const Status status = RunBlockingBody(
        reader, [&](BlockingTransaction& t) { return t.Get(table, kKey, std::as_writable_bytes(std::span(payload))); });
    return status.ok() ? payload : status.ToString();
  }
  std::byte* Record() {
    index::WalkPosition position;
    std::vector<rdma::GlobalAddress> records;
    while (cluster.table(0, "blobs").local_index().Walk(&position, &records)) {
    }
    EXPECT_EQ(records.size(), 1u);
    return cluster.databases[0]->state().node->memory().data() + records[0].offset();
  }
  void Move() {
    EXPECT_TRUE(RunBlockingBody(owner, [&](BlockingTransaction& t) {
                  const Status removed = t.Remove(cluster.table(0, "blobs"), kKey);
                  return removed.ok() ? t.Insert(cluster.table(0, "blobs"), kKey, std::as_bytes(std::span(after)))
                                      : removed;
                }).ok());
  }

  const std::string before = std::string(kPayload, 'b');
  const std::string after = std::string(4 * kPayload, 'a');
  Cluster cluster;
  Session& owner;
  Session& reader;
  const Table& table;
};

// Smaller objects have taken the place of its lines, its first one is free.
TEST_F(StaleLocationTest, LinesOfAFreeBlockNeedNotAgree) {
  std::byte* const record = Record();
  Move();
  ASSERT_NE(Record(), record);
  ASSERT_TRUE(IsAbsent(LoadWord(record)));
  StoreWord(record + kLineBytes, LoadWord(record) + 12345);
  EXPECT_EQ(Read(), after.substr(0, kPayload));
}

// What lies there now never looks like a record that is at rest.
TEST_F(StaleLocationTest, WhatIsAlwaysLockedIsNotTheRecord) {
  std::byte* const record = Record();
  Move();
  ASSERT_NE(Record(), record);
  StoreWord(record, LoadWord(Record()) | rdma::kLockBit);
  EXPECT_EQ(Read(), after.substr(0, kPayload));
}

}  // namespace
}  // namespace gannet::txn
