// Inserts at other nodes by verbs, without the owner's CPU (txn/commit/one_sided_inserts.h).
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/lock_word.h"
#include "index/registry.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace insert_remote_test {

struct Setup {
  IndexKind kind;
  bool adversarial = false;
};

class InsertRemoteTest : public testing::TestWithParam<Setup> {
 protected:
  InsertRemoteTest()
      : cluster_({.nodes = 3, .adversarial = GetParam().adversarial, .read_path = ReadPathPolicy::kOneSided},
                 {{.name = "lines",
                   .index = GetParam().kind,
                   .payload_bytes = sizeof(Account),
                   .expected_rows = 1000,
                   .placement = Placement::OnFirstNode()},
                  {.name = "small",
                   .index = GetParam().kind,
                   .payload_bytes = sizeof(uint64_t),
                   .expected_rows = 1000,
                   .placement = Placement::OnFirstNode()}}) {}

  const Table& lines(int node = 1) { return cluster_.table(node, "lines"); }
  const Table& small(int node = 1) { return cluster_.table(node, "small"); }

  static Status InsertRun(Session& session, const Table& table, uint64_t first, uint64_t n) {
    return RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      for (uint64_t i = first; i < first + n; ++i) {
        Status status = t.Insert(table, i, Account{.balance = static_cast<int64_t>(i)});
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    });
  }
  // Exactly these keys are there, seen from every node.
  void ExpectKeys(const std::set<uint64_t>& keys) {
    for (int node = 0; node < 3; ++node) {
      Session& session = cluster_.NewSession(node);
      for (uint64_t key = 0; key < 700; ++key) {
        Account account;
        const Status read = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
          return t.Get(cluster_.table(node, "lines"), key, &account);
        });
        ASSERT_EQ(read.ok(), keys.contains(key)) << "node " << node << ", key " << key << ": " << read;
        if (read.ok()) {
          ASSERT_EQ(account.balance, static_cast<int64_t>(key));
        }
      }
    }
    index::LocalIndex& index = cluster_.table(0, "lines").local_index();
    EXPECT_EQ(index.statistics().keys, keys.size());
    const Status structure = index.CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
  }

  Cluster cluster_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, InsertRemoteTest,
                         testing::Values(Setup{IndexKind::kBlink}, Setup{IndexKind::kRolex}, Setup{IndexKind::kDex},
                                         Setup{IndexKind::kDolphin}, Setup{IndexKind::kBlink, true},
                                         Setup{IndexKind::kRolex, true}, Setup{IndexKind::kDex, true},
                                         Setup{IndexKind::kDolphin, true}),
                         [](const auto& instance) {
                           return index::EntryOf(instance.param.kind).name +
                                  (instance.param.adversarial ? "_adversarial" : "");
                         });

// Ten keys that go into one leaf: one READ, one lock, one change. The owner does nothing.
TEST_P(InsertRemoteTest, KeysOfOneLeafShareALockAndTheOwnerIsNotAsked) {
  Session& session = cluster_.NewSession(1);
  ASSERT_TRUE(InsertRun(session, lines(), 0, 2).ok());  // joins, borrows blocks, fetches what leads to leaves
  const rdma::VerbCounters before = session.channel().counters();
  ASSERT_TRUE(InsertRun(session, lines(), 2, 10).ok());
  const rdma::VerbCounters used = session.channel().counters() - before;
  if (!GetParam().adversarial) {
    const bool unlocks_by_cas = GetParam().kind == IndexKind::kDolphin;
    EXPECT_EQ(used.compare_and_swaps, unlocks_by_cas ? 2u : 1u);
    EXPECT_LE(used.calls, 1u) << "the decision of a transaction with several changes";
  }
  std::set<uint64_t> keys;
  for (uint64_t key = 0; key < 12; ++key) keys.insert(key);
  ExpectKeys(keys);
}

// Full leaves are split, by verbs where that is possible; keys of several tables go together.
TEST_P(InsertRemoteTest, LeavesFillUpAndSplit) {
  Session& session = cluster_.NewSession(1);
  std::set<uint64_t> keys;
  Random random(1);
  for (int i = 0; i < 120; ++i) {
    const uint64_t key = random.Below(600);
    if (keys.contains(key) || keys.contains(key + 1)) continue;
    const Status inserted = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      Status status = t.Insert(lines(), key, Account{.balance = static_cast<int64_t>(key)});
      if (status.ok()) status = t.Insert(small(), key, key);
      if (status.ok()) status = t.Insert(lines(), key + 1, Account{.balance = static_cast<int64_t>(key + 1)});
      return status;
    });
    ASSERT_TRUE(inserted.ok()) << inserted;
    keys.insert(key);
    keys.insert(key + 1);
  }
  ExpectKeys(keys);
  for (const TablePaths& paths : session.path_statistics()) {
    if (paths.kind == AccessKind::kInsert && paths.table == "small") {
      EXPECT_GT(paths.paths.one_sided, 2 * paths.paths.calls);
    }
  }
}

TEST_P(InsertRemoteTest, AnExistingKeyUndoesTheOthers) {
  Session& session = cluster_.NewSession(1);
  ASSERT_TRUE(InsertRun(session, lines(), 100, 3).ok());
  const Status exists = InsertRun(session, lines(), 95, 8);
  EXPECT_TRUE(absl::IsAlreadyExists(exists)) << exists;
  ExpectKeys({100, 101, 102});
  // The blocks of the placeholders are used again, with higher versions.
  ASSERT_TRUE(InsertRun(session, lines(), 95, 5).ok());
  ExpectKeys({95, 96, 97, 98, 99, 100, 101, 102});
}

// What a transaction inserts and removes again is nowhere, and what it changed after the insert is there.
TEST_P(InsertRemoteTest, OwnInsertsMayBeChangedAndRemoved) {
  Session& session = cluster_.NewSession(1);
  const Status done = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
    for (uint64_t key = 0; key < 4; ++key) {
      Status status = t.Insert(lines(), key, Account{.balance = -1});
      if (!status.ok()) return status;
    }
    Account account;
    StatusOr<RecordHandle> handle = t.GetForUpdate(lines(), uint64_t{1}, &account);
    if (!handle.ok()) return handle.status();
    Status status = t.Update(*handle, Account{.balance = 1});
    if (!status.ok()) return status;
    for (const uint64_t key : {uint64_t{0}, uint64_t{2}, uint64_t{3}}) {
      status = t.Remove(lines(), key);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(done.ok()) << done;
  ExpectKeys({1});
}

// Rows come and go by all nodes at once: the owner's sessions by its CPU, the others by verbs into the same leaves.
TEST_P(InsertRemoteTest, AllNodesInsertIntoTheSameLeaves) {
  constexpr uint64_t kKeys = 600;
  std::vector<std::thread> threads;
  std::vector<std::set<uint64_t>> own(3);
  for (uint64_t node = 0; node < 3; ++node) {
    Session& session = cluster_.NewSession(static_cast<int>(node));
    threads.emplace_back([this, node, &session, &own] {
      const Table& table = lines(static_cast<int>(node));
      Random random(node);
      for (int i = 0; i < 1500; ++i) {
        const uint64_t key = random.Below(kKeys / 3) * 3 + node;
        const bool there = own[node].contains(key);
        const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
          if (!there) return t.Insert(table, key, Account{.balance = static_cast<int64_t>(key)});
          return t.Remove(table, key);
        });
        ASSERT_TRUE(status.ok()) << status;
        if (there) {
          own[node].erase(key);
        } else {
          own[node].insert(key);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const auto& keys : own) all.insert(keys.begin(), keys.end());
  ExpectKeys(all);
}

// Phantoms: a transaction that saw a gap and inserts into it commits; if another one fills the gap meanwhile, not.
TEST_P(InsertRemoteTest, GapsAreValidated) {
  Session& session = cluster_.NewSession(1);
  Session& other = cluster_.NewSession(2);
  ASSERT_TRUE(InsertRun(session, lines(), 10, 3).ok());
  for (const bool disturbed : {false, true}) {
    Step step(session);
    Account account;
    EXPECT_TRUE(absl::IsNotFound(step->Get(lines(), uint64_t{20}, &account)));
    ASSERT_TRUE(step->Insert(lines(), disturbed ? uint64_t{31} : uint64_t{30}, Account{.balance = 30}).ok());
    if (disturbed) {
      ASSERT_TRUE(InsertRun(other, lines(2), 20, 1).ok());
    }
    const Status committed = step.Commit();
    EXPECT_EQ(committed.ok(), !disturbed) << committed;
  }
}

// An own insert meets a committed record, and one by verbs a locked one, about which only its owner could be asked. The
// transaction must not forget the first because of the second: it would commit without that row.
TEST_P(InsertRemoteTest, WhatExistsHereIsNotForgottenForWhatIsLockedElsewhere) {
  const auto parity = [](const index::Key& key, int) { return static_cast<rdma::NodeId>(key.integer() % 2); };
  Cluster cluster({.nodes = 2, .adversarial = GetParam().adversarial},
                  {{.name = "both",
                    .index = GetParam().kind,
                    .payload_bytes = sizeof(uint64_t),
                    .expected_rows = 1000,
                    .placement = {.owner = parity, .range_owner = [](const index::Key&, const index::Key&, int) {
                                    return Placement::kSeveralNodes;
                                  }}}});
  Session& session = cluster.NewSession(1);
  const Table& both = cluster.table(1, "both");
  for (uint64_t key = 0; key < 10; ++key) {
    const Status inserted = RunBlockingBody(session, [&](BlockingTransaction& t) { return t.Insert(both, key, key); });
    ASSERT_TRUE(inserted.ok()) << inserted;
  }
  const rdma::GlobalAddress elsewhere = cluster.table(0, "both").local_index().Find(index::Key(uint64_t{4})).record;
  ASSERT_FALSE(elsewhere.is_null());
  std::byte* const record = cluster.databases[0]->node().memory().data() + elsewhere.offset();
  const uint64_t state = LoadWord(record);
  StoreWord(record, index::Locked(state, index::OwnerBits(0, 5)));
  Step step(session);
  ASSERT_TRUE(step->Insert(both, uint64_t{5}, uint64_t{50}).ok());
  ASSERT_TRUE(step->Insert(both, uint64_t{4}, uint64_t{40}).ok());
  const Status committed = step.Commit();
  EXPECT_TRUE(absl::IsAlreadyExists(committed)) << committed;
  StoreWord(record, state);
}

// A transaction that reads one record and changes another takes as many round trips as one that calls the owner: the
// leaf is READ with the lock's posting, and changed with the validation's.
TEST_P(InsertRemoteTest, TakesNoMoreRoundTripsThanCalls) {
  if (GetParam().adversarial) GTEST_SKIP() << "its READs are torn at random, and repeated";
  const auto round_trips = [](ReadPathPolicy policy) {
    Cluster cluster({.nodes = 2, .read_path = policy}, {{.name = "lines",
                                                         .index = GetParam().kind,
                                                         .payload_bytes = sizeof(Account),
                                                         .expected_rows = 1000,
                                                         .placement = Placement::OnFirstNode()}});
    Session& session = cluster.NewSession(1);
    const Table& table = cluster.table(1, "lines");
    for (uint64_t key = 0; key < 100; key += 10) EXPECT_TRUE(InsertRun(session, table, key, 10).ok());
    rdma::VerbCounters used;
    for (uint64_t key = 200; key < 205; ++key) {
      Step step(session);
      Account account;
      EXPECT_TRUE(step->Get(table, uint64_t{50}, &account).ok());
      const StatusOr<RecordHandle> handle = step->GetForUpdate(table, uint64_t{0}, &account);
      EXPECT_TRUE(handle.ok()) << handle.status();
      EXPECT_TRUE(step->Update(*handle, Account{.balance = 7}).ok());
      EXPECT_TRUE(step->Insert(table, key, Account{.balance = 1}).ok());
      const rdma::VerbCounters before = session.channel().counters();
      EXPECT_TRUE(step.Commit().ok());
      used = session.channel().counters() - before;  // the last one finds everything cached
    }
    return used.round_trips;
  };
  EXPECT_LE(round_trips(ReadPathPolicy::kOneSided), round_trips(ReadPathPolicy::kCall));
}

// Byte keys go by verbs, too, in several tables at once.
class InsertNamesTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Fabrics, InsertNamesTest, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "adversarial" : "plain"; });

TEST_P(InsertNamesTest, NamesAreInsertedByVerbs) {
  Cluster cluster({.nodes = 3, .adversarial = GetParam(), .read_path = ReadPathPolicy::kOneSided},
                  {{.name = "names",
                    .key_kind = index::KeyKind::kBytes,
                    .max_key_bytes = 32,
                    .index = IndexKind::kBlink,
                    .payload_bytes = sizeof(uint64_t),
                    .expected_rows = 2000,
                    .placement = Placement::OnFirstNode()},
                   {.name = "numbers",
                    .index = IndexKind::kBlink,
                    .payload_bytes = sizeof(uint64_t),
                    .expected_rows = 2000,
                    .placement = Placement::OnFirstNode()}});
  const auto name_of = [](uint64_t number) {
    const std::string name = std::to_string(number * 7919 % 10007) + " is a name";
    return index::OwnedKey(index::Key(std::string_view(name)));
  };
  constexpr uint64_t kEach = 400;
  std::vector<std::thread> threads;
  uint64_t by_verbs = 0;
  for (uint64_t node = 1; node < 3; ++node) {
    Session& session = cluster.NewSession(static_cast<int>(node));
    threads.emplace_back([&, node] {
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t number = i * 2 + node - 1;
        const Status inserted = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
          Status status = t.Insert(cluster.table(static_cast<int>(node), "names"), name_of(number).view(), number);
          if (status.ok()) status = t.Insert(cluster.table(static_cast<int>(node), "numbers"), number, number);
          return status;
        });
        ASSERT_TRUE(inserted.ok()) << inserted;
      }
      if (node != 1) return;
      for (const TablePaths& paths : session.path_statistics()) {
        if (paths.kind == AccessKind::kInsert && paths.table == "names") by_verbs = paths.paths.one_sided;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(by_verbs, kEach / 2);
  Session& session = cluster.NewSession(2);
  for (uint64_t number = 0; number < 2 * kEach; ++number) {
    uint64_t found = 0;
    const Status read = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      return t.Get(cluster.table(2, "names"), name_of(number).view(), &found);
    });
    ASSERT_TRUE(read.ok()) << number << ": " << read;
    EXPECT_EQ(found, number);
  }
  const Status again = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
    return t.Insert(cluster.table(2, "names"), name_of(5).view(), uint64_t{0});
  });
  EXPECT_TRUE(absl::IsAlreadyExists(again)) << again;
  for (const char* const table : {"names", "numbers"}) {
    index::LocalIndex& index = cluster.table(0, table).local_index();
    EXPECT_EQ(index.statistics().keys, 2 * kEach);
    const Status structure = index.CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
  }
}

}  // namespace insert_remote_test
}  // namespace gannet::txn
