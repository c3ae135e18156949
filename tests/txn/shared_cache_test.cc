// The caches of other nodes' indexes that all sessions of a database share.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "tests/index/kinds.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace shared_cache_test {

constexpr uint64_t kRows = 3000;

class SharedCacheTest : public testing::Test {
 protected:
  explicit SharedCacheTest(ReadPathPolicy policy = ReadPathPolicy::kOneSided)
      : cluster_(
            {.nodes = 2, .read_path = policy},
            {{.name = "ordered", .index = IndexKind::kXStore, .payload_bytes = sizeof(Account), .expected_rows = kRows},
             {.name = "hashed", .index = IndexKind::kHash, .payload_bytes = sizeof(Account), .expected_rows = kRows}}) {
    Session& session = cluster_.NewSession(1);
    for (const char* const name : {"ordered", "hashed"}) Insert(session, cluster_.table(1, name));
  }

  // Rows of node 0.
  static void Insert(Session& session, const Table& table) {
    for (uint64_t at = 0; at < kRows; at += 100) {
      const Status inserted = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        for (uint64_t i = at; i < at + 100; ++i) {
          Status status = t.Insert(table, 2 * i, Account{.balance = static_cast<int64_t>(i)});
          if (!status.ok()) return status;
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(inserted.ok()) << inserted;
    }
  }
  void ReadAll(Session& session, const std::string& name) {
    const Table& table = cluster_.table(1, name);
    for (uint64_t i = 0; i < kRows; ++i) {
      Account account;
      const Status read =
          RunBlockingBody(session, [&](BlockingTransaction& t) -> Status { return t.Get(table, 2 * i, &account); });
      ASSERT_TRUE(read.ok()) << read;
      ASSERT_EQ(account.balance, static_cast<int64_t>(i));
    }
  }
  static index::ClientStatistics StatisticsOf(const Session& session, const std::string& name) {
    for (const auto& [table, statistics] : session.client_statistics()) {
      if (table == name) return statistics;
    }
    return {};
  }
  // Reads until no lookup needs a call: the owner has trained, and the session has cached everything.
  void Warm(Session& session) {
    const uint64_t deadline = NowNanos() + 60'000'000'000;
    for (uint64_t calls = 1; calls != 0 && NowNanos() < deadline;) {
      const uint64_t before = StatisticsOf(session, "ordered").fallbacks;
      ReadAll(session, "ordered");
      calls = StatisticsOf(session, "ordered").fallbacks - before;
    }
  }

  Cluster cluster_;
};

TEST_F(SharedCacheTest, ItsBytesDoNotGrowWithTheSessions) {
  Database& database = *cluster_.databases[1];
  Session& first = cluster_.NewSession(1);
  Warm(first);
  ReadAll(first, "hashed");
  const std::vector<std::pair<std::string, uint64_t>> bytes = database.shared_cache_bytes();
  ASSERT_EQ(bytes.size(), 1u);
  EXPECT_EQ(bytes[0].first, "ordered");
  EXPECT_GT(bytes[0].second, kRows / 2) << "about a byte for each key";
  EXPECT_EQ(StatisticsOf(first, "ordered").cache_bytes, 0u) << "it is not this session's alone";
  EXPECT_GT(StatisticsOf(first, "hashed").cache_bytes, 0u);
  for (int i = 0; i < 3; ++i) {
    Session& other = cluster_.NewSession(1);
    const rdma::VerbCounters before = other.channel().counters();
    ReadAll(other, "ordered");
    EXPECT_EQ((other.channel().counters() - before).calls, 0u);
    EXPECT_EQ(StatisticsOf(other, "ordered").fallbacks, 0u);
  }
  EXPECT_EQ(database.shared_cache_bytes(), bytes);
  EXPECT_TRUE(cluster_.databases[0]->shared_cache_bytes().empty()) << "each node has its own";
}

// Sessions in threads of their own begin with an empty cache, all at once.
TEST_F(SharedCacheTest, SessionsFillItTogether) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    Session& session = cluster_.NewSession(1);
    threads.emplace_back([this, &session] { Warm(session); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cluster_.databases[1]->shared_cache_bytes().size(), 1u);
}

// Each session finds the models (rolex), inner nodes (blink) or pages (dex) that another one has fetched.
class SharedCacheOfLeavesTest : public testing::TestWithParam<IndexKind> {};

TEST_P(SharedCacheOfLeavesTest, SessionsShareWhatLeadsToLeaves) {
  Cluster cluster({.nodes = 2, .read_path = ReadPathPolicy::kOneSided},
                  {{.name = "ordered", .index = GetParam(), .payload_bytes = sizeof(Account), .expected_rows = kRows}});
  const Table& table = cluster.table(1, "ordered");
  const auto run = [&table](Session& session, bool insert) {
    for (uint64_t i = 0; i < kRows; ++i) {
      Account account{.balance = static_cast<int64_t>(i)};
      const Status done = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        return insert ? t.Insert(table, 2 * i, account) : t.Get(table, 2 * i, &account);
      });
      ASSERT_TRUE(done.ok()) << done;
      ASSERT_EQ(account.balance, static_cast<int64_t>(i));
    }
  };
  Session& first = cluster.NewSession(1);
  run(first, true);
  run(first, false);
  Session& second = cluster.NewSession(1);
  const rdma::VerbCounters before = second.channel().counters();
  run(second, false);
  // Clients of a tree ask where the root is.
  EXPECT_LE((second.channel().counters() - before).calls, GetParam() == IndexKind::kRolex ? 0u : 1u);
  const std::vector<std::pair<std::string, uint64_t>> bytes = cluster.databases[1]->shared_cache_bytes();
  ASSERT_EQ(bytes.size(), 1u);
  EXPECT_GT(bytes[0].second, 0u);
  for (Session* const session : {&first, &second}) {
    for (const auto& [name, statistics] : session->client_statistics()) EXPECT_EQ(statistics.cache_bytes, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(, SharedCacheOfLeavesTest, testing::ValuesIn(index::KindsThatClientsChange()),
                         [](const auto& kind) { return index::EntryOf(kind.param).name; });

class SharedCacheByCallTest : public SharedCacheTest {
 protected:
  SharedCacheByCallTest() : SharedCacheTest(ReadPathPolicy::kCall) {}
};

TEST_F(SharedCacheByCallTest, ThereIsNoneWhereAllAccessesAreCalls) {
  ReadAll(cluster_.NewSession(1), "ordered");
  EXPECT_TRUE(cluster_.databases[1]->shared_cache_bytes().empty());
}

}  // namespace shared_cache_test
}  // namespace gannet::txn
