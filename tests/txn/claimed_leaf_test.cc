// Transactions of a node that has claimed leaves of another one (index/shared_leaf/claim/claim.h): what that saves, how
// other nodes change these leaves, and what happens when the holder dies.
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/claim_boards.h"
#include "index/shared_leaf/claim/claim_ranges.h"
#include "index/shared_leaf/leaf_index.h"
#include "rdma/statistics.h"
#include "tests/txn/simulated_cluster.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace claimed_leaf_test {

constexpr uint64_t kRows = 300;  // even keys
constexpr int kOwner = 0;
constexpr int kHolder = 1;
constexpr int kOther = 2;

index::OwnedKey TextKey(uint64_t n) {
  std::string text = std::to_string(n);
  text.insert(0, 8 - text.size(), '0');
  return index::OwnedKey(index::Key(text));
}

std::vector<index::ClaimRange> AllFor(int node, index::KeyKind keys) {
  std::vector<index::ClaimRange> ranges(1);
  ranges[0].first = keys == index::KeyKind::kInteger ? index::Key(uint64_t{0}) : index::Key("");
  ranges[0].node = static_cast<rdma::NodeId>(node);
  return ranges;
}

class ClaimedLeafTest : public testing::TestWithParam<index::KeyKind> {
 protected:
  ClaimedLeafTest()
      : cluster_(3, {.seed = 5}, {.data_nodes = 1, .read_path = ReadPathPolicy::kOneSided},
                 {{.name = "rows",
                   .key_kind = GetParam(),
                   .index = IndexKind::kDex,
                   .payload_bytes = sizeof(Account),
                   .expected_rows = kRows}}) {
    cluster_.On(kOwner, [&](Session& session) {
      const Status loaded = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        for (uint64_t i = 0; i < kRows; ++i) {
          const index::OwnedKey key = KeyOf(2 * i);
          Status status = t.Insert(At(kOwner), key.view(), Account{.balance = static_cast<int64_t>(i)});
          if (!status.ok()) return status;
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(loaded.ok()) << loaded;
    });
    SetRanges(kOther, AllFor(kHolder, GetParam()));
  }

  // At one node, for all.
  void SetRanges(int node, const std::vector<index::ClaimRange>& ranges) {
    cluster_.On(node, [&](Session&) {
      const Status set = cluster_.database(node).SetClaimRanges("rows", ranges);
      EXPECT_TRUE(set.ok()) << set;
    });
  }

  static index::OwnedKey KeyOf(uint64_t n) {
    return GetParam() == index::KeyKind::kInteger ? index::OwnedKey(n) : TextKey(n);
  }
  const Table& At(int node) { return cluster_.table(node, "rows"); }

  // -1: there is no such row.
  int64_t Get(Session& session, int node, uint64_t key) {
    Account account{.balance = -1};
    const index::OwnedKey kept = KeyOf(key);
    const Status read = RunBlockingBody(
        session, [&](BlockingTransaction& t) -> Status { return t.Get(At(node), kept.view(), &account); });
    EXPECT_TRUE(read.ok() || absl::IsNotFound(read)) << read;
    return read.ok() ? account.balance : -1;
  }
  Status Insert(Session& session, int node, uint64_t key, int64_t balance) {
    const index::OwnedKey kept = KeyOf(key);
    return RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      return t.Insert(At(node), kept.view(), Account{.balance = balance});
    });
  }
  Status Remove(Session& session, int node, uint64_t key) {
    const index::OwnedKey kept = KeyOf(key);
    return RunBlockingBody(session, [&](BlockingTransaction& t) -> Status { return t.Remove(At(node), kept.view()); });
  }
  size_t CountRows(Session& session, int node, uint64_t from, uint64_t to) {
    const index::OwnedKey first = KeyOf(from);
    const index::OwnedKey last = KeyOf(to);
    size_t rows = 0;
    const Status scanned = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      ScanRows found;
      Status status = t.Scan(At(node), {.from = first.view(), .to = last.view()}, &found);
      rows = found.size();
      return status;
    });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return rows;
  }

  SimulatedCluster cluster_;
};

class ClaimedLeafThreadsTest : public testing::TestWithParam<index::KeyKind> {
 protected:
  static index::OwnedKey KeyOf(uint64_t n) {
    return GetParam() == index::KeyKind::kInteger ? index::OwnedKey(n) : TextKey(n);
  }
  // Two nodes, whose page caches hold some of the leaves of kRows rows.
  static SimulatedCluster ClusterOfSmallCaches() {
    DatabaseOptions options{.data_nodes = 1, .read_path = ReadPathPolicy::kOneSided};
    options.page_cache_bytes = 5000;
    return SimulatedCluster(2, {.seed = 7}, options,
                            {{.name = "rows",
                              .key_kind = GetParam(),
                              .index = IndexKind::kDex,
                              .payload_bytes = sizeof(Account),
                              .expected_rows = kRows}});
  }
};

TEST_P(ClaimedLeafTest, AnAbsentRowTakesNoVerb) {
  cluster_.On(kHolder, [&](Session& session) {
    EXPECT_EQ(CountRows(session, kHolder, 0, 2 * kRows), kRows);
    const rdma::VerbCounters before = session.channel().counters();
    EXPECT_EQ(Get(session, kHolder, 43), -1);
    const rdma::VerbCounters used = session.channel().counters() - before;
    EXPECT_EQ(used.reads + used.calls, 0u);
    EXPECT_EQ(Get(session, kHolder, 42), 21);
  });
}

// Two rows that are not there, and a transaction that commits: it has witnesses to validate.
TEST_P(ClaimedLeafTest, AClaimValidatesWithoutAVerb) {
  const auto read_absent = [&](Session& session, const std::function<void()>& in_between) {
    const index::OwnedKey first = KeyOf(43);
    const index::OwnedKey second = KeyOf(83);
    int found = 0;
    const Status read = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      found = 0;
      for (const index::OwnedKey& key : {first, second}) {
        Account account;
        const Status got = t.Get(At(kHolder), key.view(), &account);
        if (!got.ok() && !absl::IsNotFound(got)) return got;
        found += got.ok() ? 1 : 0;
      }
      in_between();
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return found;
  };
  const auto conflicts = [&] {
    uint64_t sum = 0;
    for (const uint64_t aborts : cluster_.database(kHolder).transaction_statistics().aborts) sum += aborts;
    return sum;
  };
  cluster_.On(kHolder, [&](Session& session) {
    EXPECT_EQ(CountRows(session, kHolder, 0, 2 * kRows), kRows);
    const rdma::VerbCounters before = session.channel().counters();
    EXPECT_EQ(read_absent(session, [] {}), 0);
    const rdma::VerbCounters used = session.channel().counters() - before;
    EXPECT_EQ(used.reads + used.calls, 0u);
    // Another node inserts one of them before the commit: the claim has ended, and the look at the word shows why.
    for (const int node : {kOther, kOwner}) {
      const uint64_t aborts = conflicts();
      bool is_first = true;
      const int found = read_absent(session, [&] {
        if (!std::exchange(is_first, false)) return;
        cluster_.simulation().Join(cluster_.Start(node, [&](Session& other) {
          const Status inserted = Insert(other, node, node == kOther ? 43 : 83, 1);
          EXPECT_TRUE(inserted.ok()) << inserted;
        }));
      });
      EXPECT_EQ(found, node == kOther ? 1 : 2);
      EXPECT_EQ(conflicts(), aborts + 1);
    }
  });
}

// A claim changes the word of a leaf that the transaction has read. That is no conflict.
TEST_P(ClaimedLeafTest, AReaderDoesNotMeetItsOwnClaims) {
  cluster_.On(kHolder, [&](Session& session) {
    EXPECT_EQ(CountRows(session, kHolder, 0, kRows), kRows / 2 + 1);
    EXPECT_EQ(Get(session, kHolder, kRows + 41), -1);
    const Status inserted = Insert(session, kHolder, kRows + 81, 1);
    EXPECT_TRUE(inserted.ok()) << inserted;
    for (const uint64_t aborts : cluster_.database(kHolder).transaction_statistics().aborts) EXPECT_EQ(aborts, 0u);
  });
}

TEST_P(ClaimedLeafTest, EverybodyChangesWhatIsClaimed) {
  cluster_.On(kHolder, [&](Session& session) { EXPECT_EQ(CountRows(session, kHolder, 0, 2 * kRows), kRows); });
  for (const int node : {kOther, kOwner, kHolder}) {
    const auto key = static_cast<uint64_t>(101 + 2 * node);
    cluster_.On(node, [&](Session& session) {
      for (uint64_t i = 0; i < 10; ++i) {
        const Status inserted = Insert(session, node, key + 40 * i, node);
        EXPECT_TRUE(inserted.ok()) << inserted;
      }
      const Status removed = Remove(session, node, 100 + 2 * static_cast<uint64_t>(node));
      EXPECT_TRUE(removed.ok()) << removed;
    });
    cluster_.On(kHolder, [&](Session& session) {
      for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(Get(session, kHolder, key + 40 * i), node);
      EXPECT_EQ(Get(session, kHolder, 100 + 2 * static_cast<uint64_t>(node)), -1);
      EXPECT_EQ(CountRows(session, kHolder, key, key), 1u);
    });
  }
  EXPECT_GT(cluster_.database(kOwner).state().indexes->boards().ended(), 0u);
}

// The keys become another node's. It has the claims of the first one ended, leaf by leaf, as it reads.
TEST_P(ClaimedLeafTest, ARangeMovesToAnotherNode) {
  const auto reads_of = [&](Session& session, int node) {
    EXPECT_EQ(Get(session, node, 1), -1);  // renews the lease, if it is over
    const rdma::VerbCounters before = session.channel().counters();
    for (uint64_t key = 1; key < 2 * kRows; key += 20) EXPECT_EQ(Get(session, node, key), -1);
    const rdma::VerbCounters used = session.channel().counters() - before;
    return used.reads + used.calls;
  };
  const std::array<std::pair<int, int>, 2> moves = {std::pair(kHolder, kOther), std::pair(kOther, kHolder)};
  cluster_.On(kHolder, [&](Session& session) { EXPECT_EQ(CountRows(session, kHolder, 0, 2 * kRows), kRows); });
  for (const auto& [from, to] : moves) {
    const index::ClaimBoards& boards = cluster_.database(kOwner).state().indexes->boards();
    const uint64_t ended = boards.ended();
    cluster_.On(from, [&, from = from](Session& session) { EXPECT_EQ(reads_of(session, from), 0u); });
    SetRanges(kOwner, AllFor(to, GetParam()));
    cluster_.On(from, [&, from = from](Session& session) {
      EXPECT_EQ(reads_of(session, from), 0u) << "nobody has ended its claims";
    });
    cluster_.On(to, [&, to = to](Session& session) {
      EXPECT_EQ(CountRows(session, to, 0, 2 * kRows), kRows);
      EXPECT_EQ(reads_of(session, to), 0u);
    });
    cluster_.On(from, [&, from = from](Session& session) {
      EXPECT_GT(reads_of(session, from), 0u);
      EXPECT_EQ(CountRows(session, from, 0, 2 * kRows), kRows);
      SleepForNanos(10'000'000);  // longer than the pause after the end of a claim
      EXPECT_EQ(CountRows(session, from, 0, 2 * kRows), kRows);
    });
    cluster_.On(to, [&, to = to](Session& session) { EXPECT_EQ(reads_of(session, to), 0u) << "it has lost none"; });
    for (const uint64_t aborts : cluster_.database(to).transaction_statistics().aborts) EXPECT_EQ(aborts, 0u);
    EXPECT_GT(boards.ended() - ended, 5u);
  }
}

// The leaves of a dead node are served at once, and changed when its lease has ended.
TEST_P(ClaimedLeafTest, TheLeavesOfADeadHolderAreChangedSoon) {
  cluster_.On(kHolder, [&](Session& session) { EXPECT_EQ(CountRows(session, kHolder, 0, 2 * kRows), kRows); });
  cluster_.fabric().Kill(kHolder);
  cluster_.Abandon(kHolder);
  const uint64_t died = cluster_.simulation().now();
  cluster_.On(kOther, [&](Session& session) {
    EXPECT_EQ(Get(session, kOther, 42), 21);
    const Status inserted = Insert(session, kOther, 43, 7);
    EXPECT_TRUE(inserted.ok()) << inserted;
    EXPECT_EQ(Get(session, kOther, 43), 7);
  });
  const uint64_t took = cluster_.simulation().now() - died;
  EXPECT_GT(took, NanosOf(index::kClaimTerm)) << "the holder might use its copies";
  EXPECT_LT(took, 50'000'000u);
}

TEST_P(ClaimedLeafTest, RangesAreChecked) {
  cluster_.On(kHolder, [&](Session&) {
    Database& database = cluster_.database(kHolder);
    EXPECT_TRUE(absl::IsNotFound(database.SetClaimRanges("no such table", {})));
    const auto is_wrong = [&](const std::vector<index::ClaimRange>& ranges) {
      return absl::IsInvalidArgument(database.SetClaimRanges("rows", ranges));
    };
    EXPECT_TRUE(is_wrong({{.first = KeyOf(4), .node = 1}, {.first = KeyOf(4), .node = 2}}));
    EXPECT_TRUE(is_wrong({{.first = KeyOf(4), .node = 3}}));
    const index::OwnedKey other =
        GetParam() == index::KeyKind::kInteger ? index::OwnedKey(index::Key("a")) : index::OwnedKey(uint64_t{1});
    EXPECT_TRUE(is_wrong({{.first = other, .node = 1}}));
    std::vector<index::ClaimRange> many;
    for (uint64_t i = 0; i < rdma::kMaxMessageBytes / 10; ++i) many.push_back({.first = KeyOf(i), .node = 1});
    EXPECT_TRUE(is_wrong(many));
    many.resize(1000);
    EXPECT_TRUE(database.SetClaimRanges("rows", many).ok());
    EXPECT_TRUE(database.SetClaimRanges("rows", {}).ok());
  });
}

// The program is told. The owner takes no such key from another node either, and a client none from the owner: any
// program may have made the message.
TEST_P(ClaimedLeafTest, KeysThatAreTooLongAreRefusedOnTheWay) {
  if (GetParam() == index::KeyKind::kInteger) GTEST_SKIP() << "all have one length";
  for (const size_t bytes : {index::kIntegerKeyBytes + 1, index::kShortKeyBytes + 1, index::kMaxKeyBytes}) {
    const std::vector<index::ClaimRange> ranges = {
        {.first = index::OwnedKey(index::Key(std::string(bytes, 'x'))), .node = kHolder}};
    cluster_.On(kHolder, [&](Session& session) {
      const Status given = cluster_.database(kHolder).SetClaimRanges("rows", ranges);
      EXPECT_TRUE(absl::IsInvalidArgument(given)) << given;
      const Status set = session.worker().BlockOn(
          index::shared_leaf::SetRanges(&session.channel(), kOwner, At(kHolder).id(), ranges, absl::Seconds(10)));
      EXPECT_TRUE(absl::IsInvalidArgument(set)) << set;
    });
    cluster_.On(kOwner, [&](Session&) {
      auto& index = dynamic_cast<index::shared_leaf::AnyLeafIndex&>(At(kOwner).local_index());
      EXPECT_TRUE(index.SetClaimRanges(ranges).ok()) << "it has been checked, as it believes";
    });
    for (const int node : {kHolder, kOther}) {
      cluster_.On(node, [&](Session& session) { EXPECT_EQ(CountRows(session, node, 0, 2 * kRows), kRows); });
    }
  }
}

TEST(ClaimRangesTest, TheWrongKeyIsShownAsItWasGiven) {
  const auto database = Database::OpenInMemory({.memory_bytes = uint64_t{256} << 20}).value();
  ASSERT_TRUE(database
                  ->CreateTable({.name = "numbers",
                                 .key_form = KeyForm::kSigned,
                                 .index = IndexKind::kDex,
                                 .payload_bytes = sizeof(uint64_t)})
                  .ok());
  ASSERT_TRUE(database
                  ->CreateTable({.name = "codes",
                                 .key_kind = index::KeyKind::kBytes,
                                 .max_key_bytes = 8,
                                 .index = IndexKind::kDex,
                                 .payload_bytes = sizeof(uint64_t)})
                  .ok());
  ASSERT_TRUE(database->Start().ok());
  const auto expect = [&](const char* table, const std::vector<index::Key>& keys, const std::string& says) {
    std::vector<index::ClaimRange> ranges;
    for (const index::Key& key : keys) ranges.push_back({.first = index::OwnedKey(key), .node = 0});
    const Status set = database->SetClaimRanges(table, ranges);
    EXPECT_TRUE(absl::IsInvalidArgument(set)) << set;
    EXPECT_EQ(std::string(set.message()), says);
  };
  const std::string negative = "range 0 begins at -5; Key::Signed makes keys of negative numbers";
  expect("numbers", {-5}, negative);
  expect("codes", {-5}, negative);
  const index::Key five = index::Key::Signed(-5);
  expect("numbers", {five, five}, "range 1 begins at -5; give ascending keys of the table's kind");
  expect("numbers", {"b"}, "range 0 begins at \"b\"; give ascending keys of the table's kind");
  expect("codes", {five}, "range 0 begins at 9223372036854775803; give ascending keys of the table's kind");
  expect("codes", {"0", "123456789"},
         "range 1 begins at \"123456789\", a key of 9 bytes; the table's keys have at most 8");
  EXPECT_TRUE(database->SetClaimRanges("codes", {{.first = index::OwnedKey(index::Key("12345678")), .node = 0}}).ok());
}

// A node learns of ranges that were set at another one when it READs a leaf, also if it claimed nothing before.
TEST_P(ClaimedLeafTest, RangesReachNodesThatDidNotClaim) {
  const auto verbs_of_absent_rows = [&](int node) {
    uint64_t verbs = 0;
    cluster_.On(node, [&](Session& session) {
      EXPECT_EQ(CountRows(session, node, 0, 2 * kRows), kRows);
      const rdma::VerbCounters before = session.channel().counters();
      for (uint64_t key = 1; key < 2 * kRows; key += 20) EXPECT_EQ(Get(session, node, key), -1);
      const rdma::VerbCounters used = session.channel().counters() - before;
      verbs = used.reads + used.calls;
    });
    return verbs;
  };
  EXPECT_GT(verbs_of_absent_rows(kOther), 0u) << "they are another node's";
  SetRanges(kHolder, AllFor(kOther, GetParam()));
  EXPECT_EQ(verbs_of_absent_rows(kOther), 0u);
  SetRanges(kHolder, {});
  EXPECT_GT(verbs_of_absent_rows(kHolder), 0u) << "they are nobody's";
}

// The owner need not wait for the leases of a node that has closed its database.
TEST_P(ClaimedLeafTest, TheLeavesOfANodeThatLeftAreChangedAtOnce) {
  cluster_.On(kHolder, [&](Session& session) { EXPECT_EQ(CountRows(session, kHolder, 0, 2 * kRows), kRows); });
  cluster_.simulation().Join(cluster_.simulation().StartOn(kHolder, "close", [&] {
    const Status closed = cluster_.database(kHolder).Close();
    EXPECT_TRUE(closed.ok()) << closed;
  }));
  cluster_.fabric().Kill(kHolder);
  cluster_.Abandon(kHolder);
  const uint64_t left = cluster_.simulation().now();
  cluster_.On(kOther, [&](Session& session) {
    for (uint64_t key = 1; key < 2 * kRows; key += 100) {
      const Status inserted = Insert(session, kOther, key, 7);
      EXPECT_TRUE(inserted.ok()) << inserted;
    }
  });
  EXPECT_LT(cluster_.simulation().now() - left, NanosOf(index::kClaimLease));
}

// Threads of three nodes insert and remove two keys together, in leaves that one node has claimed. Everybody sees both,
// or none.
TEST_P(ClaimedLeafThreadsTest, PairsStayTogether) {
  constexpr uint64_t kPairs = 20;
  constexpr uint64_t kDistance = 1000;
  Cluster cluster({.nodes = 3, .read_path = ReadPathPolicy::kOneSided}, {{.name = "rows",
                                                                          .key_kind = GetParam(),
                                                                          .index = IndexKind::kDex,
                                                                          .payload_bytes = sizeof(Account),
                                                                          .expected_rows = 100,
                                                                          .placement = Placement::OnFirstNode()}});
  const Status set = cluster.databases[kOwner]->SetClaimRanges("rows", AllFor(kHolder, GetParam()));
  ASSERT_TRUE(set.ok()) << set;
  std::vector<std::unique_ptr<Thread>> threads;
  std::atomic<uint64_t> halves{0};
  for (int i = 0; i < 4; ++i) {
    const int node = i == 3 ? kHolder : i;
    threads.push_back(std::make_unique<Thread>("work", [&, node, i] {
      auto session = cluster.databases[static_cast<size_t>(node)]->OpenSession();
      ASSERT_TRUE(session.ok()) << session.status();
      const Table& table = cluster.table(node, "rows");
      Random random(static_cast<uint64_t>(i));
      for (int n = 0; n < 400; ++n) {
        const uint64_t pair = random.Below(kPairs);
        const index::OwnedKey one = KeyOf(pair);
        const index::OwnedKey two = KeyOf(pair + kDistance);
        const bool changes = random.OneIn(node == kHolder ? 8 : 2);
        bool is_half = false;
        const Status done = RunBlockingBody(**session, [&](BlockingTransaction& t) -> Status {
          Account account;
          const Status first = t.Get(table, one.view(), &account);
          const Status second = t.Get(table, two.view(), &account);
          for (const Status* const read : {&first, &second}) {
            if (!read->ok() && !absl::IsNotFound(*read)) return *read;
          }
          is_half = first.ok() != second.ok();
          // Half a pair may also be two reads of different moments: the commit tells, a failing body would not.
          if (!changes || is_half) return absl::OkStatus();
          for (const index::OwnedKey* const key : {&one, &two}) {
            Status changed = first.ok() ? t.Remove(table, key->view()) : t.Insert(table, key->view(), account);
            if (absl::IsNotFound(changed) || absl::IsAlreadyExists(changed))
              return absl::AbortedError("it was read otherwise");
            if (!changed.ok()) return changed;
          }
          return absl::OkStatus();
        });
        ASSERT_TRUE(done.ok()) << done;
        if (is_half) ++halves;
      }
    }));
  }
  for (const auto& thread : threads) thread->join();
  EXPECT_EQ(halves, 0u);
  EXPECT_GT(cluster.databases[0]->state().indexes->boards().ended(), 0u) << "claims were made, and ended";
}

// Leaves that were claimed and have left the cache are claimed again, which changes the words that the transaction has
// seen. It commits at once all the same.
TEST_P(ClaimedLeafThreadsTest, ATransactionCommitsThoughItsLeavesDoNotFitTheCache) {
  SimulatedCluster cluster = ClusterOfSmallCaches();
  cluster.On(kOwner, [&](Session& session) {
    for (uint64_t i = 0; i < kRows; ++i) {
      const index::OwnedKey key = KeyOf(2 * i);
      const Status inserted = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        return t.Insert(cluster.table(kOwner, "rows"), key.view(), Account{.balance = 1});
      });
      ASSERT_TRUE(inserted.ok()) << inserted;
    }
  });
  cluster.On(kHolder, [&](Session& session) {
    const Status set = cluster.database(kHolder).SetClaimRanges("rows", AllFor(kHolder, GetParam()));
    ASSERT_TRUE(set.ok()) << set;
    for (int round = 0; round < 3; ++round) {
      int attempts = 0;
      uint64_t found = 0;
      const Status done = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        if (++attempts > 200) return absl::CancelledError("it conflicts with itself");
        found = 0;
        for (uint64_t i = 0; i < 2 * kRows; ++i) {
          Account account;
          const Status read = t.Get(cluster.table(kHolder, "rows"), KeyOf(i * 7919 % (2 * kRows)).view(), &account);
          if (!read.ok() && !absl::IsNotFound(read)) return read;
          found += read.ok() ? 1 : 0;
        }
        return absl::OkStatus();
      });
      EXPECT_TRUE(done.ok()) << done;
      EXPECT_EQ(found, kRows);
      EXPECT_EQ(attempts, 1);
    }
    for (uint64_t first = 1; first < 2 * kRows; first += 200) {
      int attempts = 0;
      const Status done = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        if (++attempts > 200) return absl::CancelledError("it conflicts with itself");
        for (uint64_t i = 0; i < 100; ++i) {
          const index::OwnedKey key = KeyOf(first + 2 * (i * 37 % 100));
          const auto there = t.Exists(cluster.table(kHolder, "rows"), key.view());
          if (!there.ok()) return there.status();
          EXPECT_FALSE(*there);
          GANNET_RETURN_IF_ERROR(t.Insert(cluster.table(kHolder, "rows"), key.view(), Account{.balance = 1}));
        }
        return absl::OkStatus();
      });
      EXPECT_TRUE(done.ok()) << done;
      EXPECT_EQ(attempts, 1);
    }
  });
}

// Nobody else does anything, so each attempt ends as a model says. The model: the keys that are there.
TEST_P(ClaimedLeafThreadsTest, ALoneNodeWithASmallCacheNeverConflicts) {
  SimulatedCluster cluster = ClusterOfSmallCaches();
  std::set<uint64_t> there;
  cluster.On(kHolder, [&](Session& session) {
    const Status set = cluster.database(kHolder).SetClaimRanges("rows", AllFor(kHolder, GetParam()));
    ASSERT_TRUE(set.ok()) << set;
    const Table& table = cluster.table(kHolder, "rows");
    Random random(1);
    for (int n = 0; n < 2000; ++n) {
      std::set<uint64_t> expected = there;
      int attempts = 0;
      bool is_duplicate = false;
      const Status done = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        if (++attempts > 1) return absl::CancelledError("it conflicts with itself");
        const uint64_t near = random.Below(kRows);
        for (uint64_t i = random.Below(30); i-- > 0;) {
          const uint64_t number = random.OneIn(2) ? near + random.Below(60) : random.Below(kRows);
          const index::OwnedKey key = KeyOf(number);
          const bool is_there = expected.contains(number);
          if (!random.OneIn(40)) {
            const auto found = t.Exists(table, key.view());
            if (!found.ok()) return found.status();
            EXPECT_EQ(*found, is_there);
          } else if (is_there && there.contains(number)) {
            is_duplicate = true;
            return t.Insert(table, key.view(), Account{.balance = 1});
          }
          if (!is_there) {
            GANNET_RETURN_IF_ERROR(t.Insert(table, key.view(), Account{.balance = 1}));
            expected.insert(number);
          } else if (random.OneIn(2)) {
            GANNET_RETURN_IF_ERROR(t.Remove(table, key.view()));
            expected.erase(number);
          } else {
            GANNET_RETURN_IF_ERROR(t.Update(table, key.view(), Account{.balance = 2}));
          }
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(is_duplicate ? absl::IsAlreadyExists(done) : done.ok()) << done << " in transaction " << n;
      if (!is_duplicate) there = std::move(expected);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Keys, ClaimedLeafThreadsTest,
                         testing::Values(index::KeyKind::kInteger, index::KeyKind::kBytes), [](const auto& kind) {
                           return std::string(kind.param == index::KeyKind::kInteger ? "Integers" : "Bytes");
                         });
INSTANTIATE_TEST_SUITE_P(Keys, ClaimedLeafTest, testing::Values(index::KeyKind::kInteger, index::KeyKind::kBytes),
                         [](const auto& kind) {
                           return std::string(kind.param == index::KeyKind::kInteger ? "Integers" : "Bytes");
                         });

}  // namespace claimed_leaf_test
}  // namespace gannet::txn
