// Many workers move money between accounts of several nodes while others add it all up: the sum never changes.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/index.h"
#include "index/registry.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace bank_test {

struct Case {
  std::string name;
  ClusterOptions cluster;
  IndexKind index;
};

class BankTest : public testing::TestWithParam<Case> {};

constexpr uint64_t kAccounts = 64;
constexpr int64_t kStart = 1000;

// Accounts are spread over the nodes by their number.
Placement Spread() {
  return {.owner = [](const index::Key& key, int n) { return static_cast<rdma::NodeId>(key.integer() % n); },
          .range_owner = [](const index::Key&, const index::Key&, int) { return Placement::kSeveralNodes; }};
}

coro::Task<Status> Transfer(Transaction& t, const Table& accounts, uint64_t from, uint64_t to, int64_t amount) {
  Account a, b;
  StatusOr<RecordHandle> ha = co_await t.GetForUpdate(accounts, from, &a);
  if (!ha.ok()) co_return ha.status();
  StatusOr<RecordHandle> hb = co_await t.GetForUpdate(accounts, to, &b);
  if (!hb.ok()) co_return hb.status();
  // All lines of a record carry the same number: a torn read would show.
  for (int i = 0; i < 20; ++i) {
    if (a.filler[i] != a.balance || b.filler[i] != b.balance) co_return absl::DataLossError("a torn record");
  }
  a.balance -= amount;
  b.balance += amount;
  std::fill(std::begin(a.filler), std::end(a.filler), a.balance);
  std::fill(std::begin(b.filler), std::end(b.filler), b.balance);
  if (Status s = t.Update(*ha, a); !s.ok()) co_return s;
  if (Status s = t.Update(*hb, b); !s.ok()) co_return s;
  co_return absl::OkStatus();
}

// Closes an account and opens it again under the same number with the same money.
coro::Task<Status> Reopen(Transaction& t, const Table& accounts, uint64_t number) {
  Account a;
  StatusOr<RecordHandle> handle = co_await t.GetForUpdate(accounts, number, &a);
  if (!handle.ok()) co_return handle.status();
  if (Status s = t.Remove(*handle); !s.ok()) co_return s;
  co_return t.Insert(accounts, number, a);
}

// Moves an account's money to a new account and removes the old one.
coro::Task<Status> Rename(Transaction& t, const Table& accounts, uint64_t from, uint64_t to) {
  Account a;
  StatusOr<RecordHandle> handle = co_await t.GetForUpdate(accounts, from, &a);
  if (!handle.ok()) co_return handle.status();
  if (Status s = t.Remove(*handle); !s.ok()) co_return s;
  co_return t.Insert(accounts, to, a);
}

coro::Task<Status> Sum(Transaction& t, const Table& accounts, bool scan, int64_t* sum) {
  *sum = 0;
  if (scan) {
    ScanRows rows;
    Status status = co_await t.Scan(accounts, {.from = 0, .to = UINT64_MAX}, &rows);
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < rows.size(); ++i) *sum += rows.As<Account>(i).balance;
    co_return absl::OkStatus();
  }
  std::vector<Account> all(kAccounts * 2);
  std::vector<GetRequest> requests;
  for (uint64_t i = 0; i < kAccounts * 2; ++i) requests.push_back(GetRequest::Of(accounts, i, &all[i]));
  Status status = co_await t.GetMany(requests);
  if (!status.ok()) co_return status;
  for (uint64_t i = 0; i < kAccounts * 2; ++i) {
    if (requests[i].status.ok()) *sum += all[i].balance;
  }
  co_return absl::OkStatus();
}

struct Tally {
  std::atomic<int> sums{0};
  std::atomic<int> wrong_sums{0};
  std::atomic<int> errors{0};
  std::atomic<uint64_t> transfers{0};
};

coro::Task<void> Customer(Session& session, const Table& accounts, bool scan, uint64_t seed, int operations,
                          Tally* tally) {
  Random random(seed);
  for (int i = 0; i < operations; ++i) {
    const uint64_t a = random.Below(kAccounts * 2);
    const uint64_t b = random.Below(kAccounts * 2);
    const int64_t amount = random.Between(1, 100);
    const uint64_t choice = random.Below(10);
    Status status;
    if (choice == 0) {
      int64_t sum = 0;
      auto body = [&](Transaction& t) { return Sum(t, accounts, scan, &sum); };
      status = co_await session.Run(body);
      if (status.ok()) {
        ++tally->sums;
        if (sum != static_cast<int64_t>(kAccounts) * kStart) ++tally->wrong_sums;
      }
    } else if (choice == 1) {
      auto body = [&](Transaction& t) { return Reopen(t, accounts, a); };
      status = co_await session.Run(body);
    } else if (choice == 2 && a != b) {
      auto body = [&](Transaction& t) { return Rename(t, accounts, a, b); };
      status = co_await session.Run(body);
    } else if (a != b) {
      auto body = [&](Transaction& t) { return Transfer(t, accounts, a, b, amount); };
      status = co_await session.Run(body);
      if (status.ok()) ++tally->transfers;
    }
    if (!status.ok() && !absl::IsNotFound(status) && !absl::IsAlreadyExists(status)) {
      ++tally->errors;
      ADD_FAILURE() << status;
    }
  }
}

TEST_P(BankTest, TheSumNeverChanges) {
  Cluster cluster(GetParam().cluster, {{.name = "accounts",
                                        .index = GetParam().index,
                                        .payload_bytes = sizeof(Account),
                                        .expected_rows = 1000,
                                        .placement = Spread()}});
  const int nodes = GetParam().cluster.nodes;
  const Status loaded = RunBlockingBody(cluster.NewSession(0), [&](BlockingTransaction& t) -> Status {
    Account account{.balance = kStart};
    std::fill(std::begin(account.filler), std::end(account.filler), kStart);
    for (uint64_t i = 0; i < kAccounts; ++i) {
      if (Status s = t.Insert(cluster.table(0, "accounts"), i, account); !s.ok()) return s;
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(loaded.ok()) << loaded;

  Tally tally;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    Session& session = cluster.NewSession(i % nodes);
    const Table& accounts = cluster.table(i % nodes, "accounts");
    threads.emplace_back([&session, &accounts, &tally, i] {
      // Several coroutines of one worker share its lock owner bits: they must still exclude each other.
      const bool scan = index::EntryOf(accounts.options().index).traits.ordered;
      for (uint64_t c = 0; c < 3; ++c) {
        session.worker().Spawn(Customer(session, accounts, scan, static_cast<uint64_t>(i) * 100 + c, 250, &tally));
      }
      session.worker().Run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tally.errors, 0);
  EXPECT_EQ(tally.wrong_sums, 0);
  EXPECT_GT(tally.sums, 0);
  EXPECT_GT(tally.transfers, 0u);

  int64_t sum = 0;
  auto body = [&](Transaction& t) { return Sum(t, cluster.table(0, "accounts"), false, &sum); };
  ASSERT_TRUE(cluster.sessions[0]->RunBlocking(body).ok());
  EXPECT_EQ(sum, static_cast<int64_t>(kAccounts) * kStart);
  for (auto& database : cluster.databases) {
    const Status structure = database->FindTable("accounts")->local_index().CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, BankTest,
    testing::Values(Case{"OneNodeHash", {.nodes = 1}, IndexKind::kHash},
                    Case{"OneNodeXStore", {.nodes = 1}, IndexKind::kXStore},
                    Case{"TwoNodesHash", {.nodes = 2}, IndexKind::kHash},
                    Case{"TwoNodesXStore", {.nodes = 2}, IndexKind::kXStore},
                    Case{"TwoNodesHashByCall", {.nodes = 2, .read_path = ReadPathPolicy::kCall}, IndexKind::kHash},
                    Case{"AdversarialHash", {.nodes = 2, .adversarial = true}, IndexKind::kHash},
                    Case{"AdversarialXStore", {.nodes = 2, .adversarial = true}, IndexKind::kXStore},
                    Case{"TwoNodesBlink", {.nodes = 2}, IndexKind::kBlink},
                    Case{"AdversarialBlink", {.nodes = 2, .adversarial = true}, IndexKind::kBlink},
                    Case{"TwoNodesRolex", {.nodes = 2}, IndexKind::kRolex},
                    Case{"AdversarialRolex", {.nodes = 2, .adversarial = true}, IndexKind::kRolex},
                    Case{"TwoNodesDex", {.nodes = 2}, IndexKind::kDex},
                    Case{"AdversarialDex", {.nodes = 2, .adversarial = true}, IndexKind::kDex},
                    Case{"TwoNodesDolphin", {.nodes = 2}, IndexKind::kDolphin},
                    Case{"AdversarialDolphin", {.nodes = 2, .adversarial = true}, IndexKind::kDolphin}),
    [](const auto& test) { return test.param.name; });

}  // namespace bank_test
}  // namespace gannet::txn
