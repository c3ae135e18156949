// One seeded run performs the same verbs on every fabric: a count made on one machine holds on another.
//
// Here shared memory is compared with the simulation; tests/softroce compares real verbs with the simulation.
#include <vector>

#include "base/entropy.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/statistics.h"
#include "tests/rdma/test_fabric.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace verb_count_test {

constexpr uint64_t kRows = 200;
constexpr int kTransactions = 300;
constexpr uint64_t kBytesPerNode = 64 << 20;

coro::Task<Status> Gets(Transaction& t, const Table& table, uint64_t first) {
  std::vector<Account> rows(8);
  std::vector<GetRequest> requests;
  for (uint64_t i = 0; i < rows.size(); ++i)
    requests.push_back(GetRequest::Of(table, (first + 7 * i) % kRows, &rows[i]));
  co_return co_await t.GetMany(requests);
}

coro::Task<Status> Move(Transaction& t, const Table& table, uint64_t from, uint64_t to) {
  Account a, b;
  StatusOr<RecordHandle> ha = co_await t.GetForUpdate(table, from, &a);
  if (!ha.ok()) co_return ha.status();
  StatusOr<RecordHandle> hb = co_await t.GetForUpdate(table, to, &b);
  if (!hb.ok()) co_return hb.status();
  --a.balance;
  ++b.balance;
  if (Status s = t.Update(*ha, a); !s.ok()) co_return s;
  co_return t.Update(*hb, b);
}

coro::Task<Status> Replace(Transaction& t, const Table& table, uint64_t key) {
  Account a;
  StatusOr<RecordHandle> handle = co_await t.GetForUpdate(table, key, &a);
  if (!handle.ok()) co_return handle.status();
  if (Status s = t.Remove(*handle); !s.ok()) co_return s;
  co_return t.Insert(table, key + kRows, a);
}

// A record of one line that is the only change at its node: one WRITE.
coro::Task<Status> Count(Transaction& t, const Table& table, uint64_t key) {
  uint64_t n = 0;
  StatusOr<RecordHandle> handle = co_await t.GetForUpdate(table, key, &n);
  if (!handle.ok()) co_return handle.status();
  ++n;
  co_return t.Update(*handle, n);
}

// One session of node 1, alone, on records of node 0.
coro::Task<void> Work(Session& session, const Table& table, const Table& counters, uint64_t* committed) {
  Random random(42);
  for (int i = 0; i < kTransactions; ++i) {
    const uint64_t a = random.Below(kRows), b = (a + 1 + random.Below(kRows - 1)) % kRows;
    const uint64_t choice = random.Below(10);
    auto gets = [&](Transaction& t) { return Gets(t, table, a); };
    auto move = [&](Transaction& t) { return Move(t, table, a, b); };
    auto count = [&](Transaction& t) { return Count(t, counters, a); };
    auto replace = [&](Transaction& t) { return Replace(t, table, a); };
    Status status;
    if (choice < 4) {
      status = co_await session.Run(gets);
    } else if (choice < 6) {
      status = co_await session.Run(count);
    } else if (choice < 9) {
      status = co_await session.Run(move);
    } else {
      status = co_await session.Run(replace);
    }
    if (status.ok()) ++*committed;
  }
}

struct Counted {
  rdma::VerbCounters verbs;
  uint64_t committed = 0;
};

// The seeds decide which keys share a bucket depends on the tables' secret seeds, and so does the number of READs.
class SameSeeds final : public SimulatedEntropy {
 public:
  uint64_t Draw() override { return random_(); }

 private:
  Random random_{1};
};

Counted CountVerbs(rdma::Fabric* fabric) {
  SameSeeds same_seeds;
  Cluster cluster(fabric, {.read_path = ReadPathPolicy::kOneSided},
                  {{.name = "accounts", .payload_bytes = sizeof(Account), .expected_rows = 4 * kRows},
                   {.name = "counters", .payload_bytes = sizeof(uint64_t), .expected_rows = kRows}});
  Session& session = cluster.NewSession(1);
  const Table& table = cluster.table(1, "accounts");
  const Table& counters = cluster.table(1, "counters");
  const Status loaded = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
    for (uint64_t i = 0; i < kRows; ++i) {
      if (Status s = t.Insert(table, i, Account{.balance = 10}); !s.ok()) return s;
      if (Status s = t.Insert(counters, i, uint64_t{0}); !s.ok()) return s;
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(loaded.ok()) << loaded;
  // Counts from here on: the moment at which the nodes came to know each other (txn/peer/peers.h) is not
  // deterministic.
  const rdma::VerbCounters before = session.channel().counters();
  Counted counted;
  session.worker().BlockOn(Work(session, table, counters, &counted.committed));
  counted.verbs = session.channel().counters() - before;
  return counted;
}

void ExpectSame(const Counted& a, const Counted& b) {
  EXPECT_EQ(a.committed, b.committed);
  EXPECT_EQ(a.verbs.reads, b.verbs.reads);
  EXPECT_EQ(a.verbs.writes, b.verbs.writes);
  EXPECT_EQ(a.verbs.compare_and_swaps, b.verbs.compare_and_swaps);
  EXPECT_EQ(a.verbs.fetch_and_adds, b.verbs.fetch_and_adds);
  EXPECT_EQ(a.verbs.calls, b.verbs.calls);
  EXPECT_EQ(a.verbs.bytes_out, b.verbs.bytes_out);
  EXPECT_EQ(a.verbs.bytes_in, b.verbs.bytes_in);
  EXPECT_EQ(a.verbs.round_trips, b.verbs.round_trips);
  EXPECT_EQ(a.verbs.retries, b.verbs.retries);
}

TEST(VerbCountTest, AreTheSameOnEveryFabric) {
  const rdma::TestFabricOptions options{.num_nodes = 2, .bytes_per_node = kBytesPerNode};
  Counted here, shm, sim;
  {
    const rdma::TestFabric made = rdma::MakeTestFabric(options);
    here = CountVerbs(made.fabric.get());
  }
  {
    const rdma::TestFabric made = rdma::MakeShmTestFabric(options);
    shm = CountVerbs(made.fabric.get());
  }
  {
    rdma::sim::Simulation simulation({.seed = 1});
    auto fabric = rdma::sim::SimFabric::Create(&simulation, {.num_nodes = 2, .bytes_per_node = kBytesPerNode});
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    sim = CountVerbs(fabric->get());
  }
  // The run has done every kind of operation.
  EXPECT_GT(shm.committed, static_cast<uint64_t>(kTransactions) / 2);
  EXPECT_GT(shm.verbs.reads, 0u);
  EXPECT_GT(shm.verbs.writes, 0u);
  EXPECT_GT(shm.verbs.compare_and_swaps, 0u);
  EXPECT_GT(shm.verbs.calls, 0u);
  ExpectSame(here, shm);
  ExpectSame(sim, shm);
}

}  // namespace verb_count_test
}  // namespace gannet::txn
