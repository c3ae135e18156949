// Transactions that find rows of another node in cached leaves (index/dex): what that saves, and that a copy that is
// behind leads nobody astray.
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/statistics.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace cached_leaf_test {

constexpr uint64_t kRows = 500;  // even keys

class CachedLeafTest : public testing::TestWithParam<index::KeyKind> {
 protected:
  CachedLeafTest()
      : cluster_({.nodes = 2, .read_path = ReadPathPolicy::kOneSided}, {{.name = "rows",
                                                                         .key_kind = GetParam(),
                                                                         .index = IndexKind::kDex,
                                                                         .payload_bytes = sizeof(Account),
                                                                         .expected_rows = kRows}}) {
    const Status loaded = RunBlockingBody(owner_, [&](BlockingTransaction& t) -> Status {
      for (uint64_t i = 0; i < kRows; ++i) {
        const index::OwnedKey key = KeyOf(2 * i);
        Status status = t.Insert(At(0), key.view(), Account{.balance = static_cast<int64_t>(i)});
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    });
    GANNET_CHECK(loaded.ok(), "%s", loaded.ToString());
    // All leaves, and the node knows its peer.
    EXPECT_EQ(Scan(0, 2 * kRows).size(), kRows);
  }

  static index::OwnedKey KeyOf(uint64_t n) {
    if (GetParam() == index::KeyKind::kInteger) return index::OwnedKey(n);
    std::string text = std::to_string(n);
    text.insert(0, 8 - text.size(), '0');
    return index::OwnedKey(index::Key(text));
  }
  const Table& At(rdma::NodeId node) { return cluster_.table(node, "rows"); }

  // Node 1 reads a row of node 0 in a transaction of its own; -1: there is none.
  int64_t Get(uint64_t key) {
    Account account{.balance = -1};
    const index::OwnedKey kept = KeyOf(key);
    const Status read =
        RunBlockingBody(client_, [&](BlockingTransaction& t) -> Status { return t.Get(At(1), kept.view(), &account); });
    EXPECT_TRUE(read.ok() || absl::IsNotFound(read)) << read;
    return read.ok() ? account.balance : -1;
  }
  std::vector<int64_t> Scan(uint64_t from, uint64_t to) {
    std::vector<int64_t> balances;
    const index::OwnedKey first = KeyOf(from);
    const index::OwnedKey last = KeyOf(to);
    const Status scanned = RunBlockingBody(client_, [&](BlockingTransaction& t) -> Status {
      balances.clear();
      ScanRows rows;
      Status status = t.Scan(At(1), {.from = first.view(), .to = last.view()}, &rows);
      for (size_t i = 0; status.ok() && i < rows.size(); ++i) balances.push_back(rows.As<Account>(i).balance);
      return status;
    });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return balances;
  }
  // Changes by the owner.
  void Insert(uint64_t key, int64_t balance) {
    const index::OwnedKey kept = KeyOf(key);
    const Status status = RunBlockingBody(owner_, [&](BlockingTransaction& t) -> Status {
      return t.Insert(At(0), kept.view(), Account{.balance = balance});
    });
    EXPECT_TRUE(status.ok()) << status;
  }
  void Remove(uint64_t key) {
    const index::OwnedKey kept = KeyOf(key);
    const Status status =
        RunBlockingBody(owner_, [&](BlockingTransaction& t) -> Status { return t.Remove(At(0), kept.view()); });
    EXPECT_TRUE(status.ok()) << status;
  }

  template <class Body>
  rdma::VerbCounters Count(Body body) {
    const rdma::VerbCounters before = client_.channel().counters();
    body();
    return client_.channel().counters() - before;
  }

  static uint64_t shared_leaf_bytes() { return GetParam() == index::KeyKind::kInteger ? 448 : 42 * 128; }

  Cluster cluster_;
  Session& owner_ = cluster_.NewSession(0);
  Session& client_ = cluster_.NewSession(1);
};

TEST_P(CachedLeafTest, ARowTakesOneRead) {
  const rdma::VerbCounters verbs = Count([&] { EXPECT_EQ(Get(42), 21); });
  EXPECT_EQ(verbs.reads, 1u);
  EXPECT_EQ(verbs.round_trips, 1u);
  EXPECT_EQ(verbs.calls, 0u);
}

TEST_P(CachedLeafTest, AnAbsentRowTakesOneWord) {
  const rdma::VerbCounters verbs = Count([&] { EXPECT_EQ(Get(43), -1); });
  EXPECT_EQ(verbs.reads, 1u);
  EXPECT_EQ(verbs.bytes_in, 8u);
}

TEST_P(CachedLeafTest, ACopyThatIsBehindIsMetOnce) {
  Remove(44);  // so that the leaf has room
  EXPECT_EQ(Get(43), -1);
  Insert(43, 1000);
  const rdma::VerbCounters verbs = Count([&] { EXPECT_EQ(Get(43), 1000); });
  EXPECT_EQ(verbs.reads, 3u) << "the word of the leaf, the leaf, and the row";
  EXPECT_EQ(Count([&] { EXPECT_EQ(Get(43), 1000); }).reads, 1u) << "the leaf is cached again";
}

TEST_P(CachedLeafTest, ARowThatWasRemovedIsNotFound) {
  EXPECT_EQ(Get(42), 21);
  Remove(42);
  EXPECT_EQ(Get(42), -1);
  Insert(42, 7);
  EXPECT_EQ(Get(42), 7);
}

TEST_P(CachedLeafTest, ScansSeeWhatOthersHaveChanged) {
  EXPECT_EQ(Scan(100, 110).size(), 6u);
  Insert(101, 1);
  Remove(104);
  EXPECT_EQ(Scan(100, 110), (std::vector<int64_t>{50, 1, 51, 53, 54, 55}));
  // Leaves split, and their copies are behind in their fences.
  for (uint64_t key = 201; key < 401; key += 2) Insert(key, static_cast<int64_t>(key));
  EXPECT_EQ(Scan(200, 400).size(), 201u);
  EXPECT_EQ(Get(301), 301);
  EXPECT_EQ(Get(300), 150);
}

TEST_P(CachedLeafTest, AScanOfCachedLeavesReadsNone) {
  EXPECT_EQ(Scan(100, 110).size(), 6u);
  const rdma::VerbCounters verbs = Count([&] { EXPECT_EQ(Scan(100, 110).size(), 6u); });
  // Each row takes 256 bytes; with integer keys nothing else is read but the words of leaves, and those of the
  // validation.
  EXPECT_LT(verbs.bytes_in, 6 * 256 + shared_leaf_bytes());
}

// What a transaction changes itself does not come back from a copy.
TEST_P(CachedLeafTest, OwnChangesAreSeen) {
  EXPECT_EQ(Get(43), -1);
  const index::OwnedKey key = KeyOf(43);
  const Status status = RunBlockingBody(
      client_, [&](BlockingTransaction& t) -> Status { return t.Insert(At(1), key.view(), Account{.balance = 5}); });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Get(43), 5);
  EXPECT_EQ(Scan(42, 44).size(), 3u);
}

// Nobody inserts a row twice because a copy says that it is absent, or is refused because a copy says that it is there.
TEST_P(CachedLeafTest, AnInsertIsJudgedByTheLeaf) {
  EXPECT_EQ(Get(43), -1);
  Insert(43, 1000);
  Remove(42);
  for (const uint64_t key : {43, 42}) {
    const index::OwnedKey kept = KeyOf(key);
    const Status status = RunBlockingBody(
        client_, [&](BlockingTransaction& t) -> Status { return t.Insert(At(1), kept.view(), Account{.balance = 5}); });
    EXPECT_EQ(status.code(), key == 43 ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kOk) << status;
  }
  EXPECT_EQ(Get(43), 1000);
  EXPECT_EQ(Get(42), 5);
}

INSTANTIATE_TEST_SUITE_P(Keys, CachedLeafTest, testing::Values(index::KeyKind::kInteger, index::KeyKind::kBytes),
                         [](const auto& kind) {
                           return std::string(kind.param == index::KeyKind::kInteger ? "Integers" : "Bytes");
                         });

}  // namespace cached_leaf_test
}  // namespace gannet::txn
