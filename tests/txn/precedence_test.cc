// Starvation has a bound (txn/peer/precedence.h): tests of the bakery alone, in virtual time; of long transactions
// and many writers on simulated nodes; and one on real threads.
#include "txn/peer/precedence.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/simulated_cluster.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace precedence_test {

constexpr uint64_t kMillisecond = 1'000'000;

// ---------------------------------------------------------------------------------------------------------------------
// The bakery. The test carries the announcements from node to node.

class BakeryTest : public testing::Test {
 protected:
  static constexpr int kNodes = 3;

  BakeryTest() : simulation_({.seed = 1}) {
    rdma::sim::SimFabricOptions options{.num_nodes = kNodes, .bytes_per_node = 1 << 20};
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    for (int i = 0; i < kNodes; ++i) {
      nodes_.push_back(fabric_->Attach(static_cast<rdma::NodeId>(i)).value());
      slabs_.push_back(std::make_unique<rdma::SlabAllocator>(nodes_.back().get()));
      epochs_.push_back(rdma::EpochManager::Create(fabric_.get(), nodes_.back().get(), slabs_.back().get()).value());
      precedence_.push_back(std::make_unique<Precedence>(epochs_.back().get(), static_cast<rdma::NodeId>(i), kNodes,
                                                         absl::Milliseconds(100), absl::Seconds(10)));
    }
  }
  ~BakeryTest() override {
    precedence_.clear();
    epochs_.clear();
    slabs_.clear();
    nodes_.clear();
  }

  uint64_t Announced(int node) {
    const rdma::Node& at = *nodes_[node];
    return LoadWord(const_cast<rdma::Node&>(at).memory().data() + RoundUp(at.heap_offset(), kLineBytes) + kWordBytes);
  }
  // Node `node` has a round, in which it sees the words of the nodes whose bits are set.
  void Round(int node, uint32_t sees = 7) {
    std::array<uint64_t, kNodes> words{};
    for (int i = 0; i < kNodes; ++i) words[i] = (sees >> i & 1) != 0 ? Announced(i) : 0;
    precedence_[node]->Look(words, NowNanos());
  }
  void RoundsOfAll() {
    for (int node = 0; node < kNodes; ++node) Round(node);
  }
  // All conflicts but the last. Attempts take 7 ms, so the lease is the shortest possible.
  void AlmostStarve(PrecedenceClaim* claim, int node) {
    for (int i = 0; i < 15; ++i) {
      claim->NoteConflict(precedence_[node].get(), NowNanos());
      SleepForNanos(7 * kMillisecond);
    }
  }
  void LoseOnceMore(PrecedenceClaim* claim, int node) {
    claim->NoteConflict(precedence_[node].get(), NowNanos());
    EXPECT_TRUE(claim->has_asked());
  }
  void Starve(PrecedenceClaim* claim, int node) {
    AlmostStarve(claim, node);
    LoseOnceMore(claim, node);
  }
  bool MustWait(int node, const PrecedenceClaim* claim = nullptr) {
    return precedence_[node]->MustWait(claim, NowNanos());
  }

  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::vector<std::unique_ptr<rdma::Node>> nodes_;
  std::vector<std::unique_ptr<rdma::SlabAllocator>> slabs_;
  std::vector<std::unique_ptr<rdma::EpochManager>> epochs_;
  std::vector<std::unique_ptr<Precedence>> precedence_;
};

TEST_F(BakeryTest, ItIsForThoseWhoLostOftenAndForLong) {
  Precedence& here = *precedence_[0];
  PrecedenceClaim quick;
  for (int i = 0; i < 1000; ++i) quick.NoteConflict(&here, NowNanos());
  EXPECT_FALSE(quick.has_asked());
  PrecedenceClaim few;
  for (int i = 0; i < 3; ++i, SleepForNanos(500 * kMillisecond)) few.NoteConflict(&here, NowNanos());
  EXPECT_FALSE(few.has_asked());
  EXPECT_FALSE(here.somebody_has_it());
  few.NoteConflict(&here, NowNanos());
  EXPECT_TRUE(few.has_asked());
  quick.NoteConflict(&here, NowNanos());
  EXPECT_TRUE(quick.has_asked());
  EXPECT_TRUE(here.somebody_has_it());
  EXPECT_EQ(here.statistics().asked, 2u);
  EXPECT_EQ(here.statistics().tickets, 1u);
}

TEST_F(BakeryTest, ABodyThatAsksForAnotherAttemptHasNotLost) {
  PrecedenceClaim claim;
  AlmostStarve(&claim, 0);
  for (int i = 0; i < 100; ++i, SleepForNanos(7 * kMillisecond)) {
    claim.NoteAskedAgain();
    claim.NoteConflict(precedence_[0].get(), NowNanos());
  }
  EXPECT_FALSE(claim.has_asked());
  Starve(&claim, 0);
  EXPECT_TRUE(MustWait(0));
  claim.NoteAskedAgain();
  EXPECT_FALSE(MustWait(0));
}

TEST_F(BakeryTest, OthersWaitAsSoonAsTheySeeTheTicket) {
  PrecedenceClaim claim;
  Starve(&claim, 1);
  EXPECT_TRUE(MustWait(1));
  EXPECT_FALSE(MustWait(1, &claim));
  EXPECT_FALSE(MustWait(0));
  Round(0);
  EXPECT_TRUE(MustWait(0));
  EXPECT_TRUE(precedence_[0]->somebody_has_it());
  claim.GiveBack();
  EXPECT_FALSE(MustWait(1));
  EXPECT_TRUE(MustWait(0));
  Round(0);
  EXPECT_FALSE(MustWait(0));
  EXPECT_FALSE(precedence_[0]->somebody_has_it());
}

TEST_F(BakeryTest, WithinANodeFirstComeFirstServed) {
  std::array<PrecedenceClaim, 3> claims;
  for (PrecedenceClaim& claim : claims) AlmostStarve(&claim, 0);
  for (PrecedenceClaim& claim : claims) LoseOnceMore(&claim, 0);
  for (size_t i = 0; i < claims.size(); ++i) {
    for (size_t j = i; j < claims.size(); ++j) EXPECT_EQ(MustWait(0, &claims[j]), j != i) << i << " " << j;
    claims[i].GiveBack();
  }
  EXPECT_FALSE(MustWait(0));
  EXPECT_EQ(precedence_[0]->statistics().tickets, 3u);
}

TEST_F(BakeryTest, TheSmallerTicketGoesFirstAndEqualOnesByNode) {
  PrecedenceClaim second, first, third, again;
  AlmostStarve(&second, 2);
  AlmostStarve(&first, 1);
  AlmostStarve(&third, 0);
  AlmostStarve(&again, 1);
  LoseOnceMore(&second, 2);
  LoseOnceMore(&first, 1);  // does not know the other one's: the same number
  RoundsOfAll();
  LoseOnceMore(&third, 0);
  RoundsOfAll();
  const auto waits = [&] { return std::array{MustWait(0, &third), MustWait(1, &first), MustWait(2, &second)}; };
  EXPECT_EQ(waits(), (std::array{true, false, true}));
  first.GiveBack();
  // A new one of node 1 comes after those that node 1 has seen.
  LoseOnceMore(&again, 1);
  RoundsOfAll();
  EXPECT_EQ(waits(), (std::array{true, true, false}));
  second.GiveBack();
  RoundsOfAll();
  EXPECT_FALSE(MustWait(0, &third));
  EXPECT_TRUE(MustWait(1, &again));
  third.GiveBack();
  RoundsOfAll();
  EXPECT_FALSE(MustWait(1, &again));
}

TEST_F(BakeryTest, ADeadNodesTicketIsVoid) {
  PrecedenceClaim claim;
  Starve(&claim, 2);
  RoundsOfAll();
  EXPECT_TRUE(MustWait(0));
  Round(0, 3);  // the words that the epoch manager gives for a dead node
  EXPECT_FALSE(MustWait(0));
}

TEST_F(BakeryTest, ATicketExpiresAndAPauseFollows) {
  PrecedenceClaim claim, next;
  Starve(&claim, 0);
  Starve(&next, 1);
  RoundsOfAll();
  SleepForNanos(240 * kMillisecond);
  EXPECT_TRUE(MustWait(2));
  SleepForNanos(60 * kMillisecond);
  RoundsOfAll();
  EXPECT_FALSE(MustWait(2));
  EXPECT_FALSE(MustWait(0));
  EXPECT_EQ(precedence_[0]->statistics().expired, 1u);
  // It starts again from zero conflicts, and no transaction gets a ticket for four leases.
  SleepForNanos(200 * kMillisecond);
  claim.NoteConflict(precedence_[0].get(), NowNanos());
  Starve(&claim, 0);
  RoundsOfAll();
  EXPECT_FALSE(MustWait(2));
  SleepForNanos(1000 * kMillisecond);
  RoundsOfAll();
  EXPECT_TRUE(MustWait(2));
  EXPECT_EQ(precedence_[0]->statistics().tickets + precedence_[1]->statistics().tickets, 3u);
}

TEST_F(BakeryTest, TheLeaseFollowsTheLongestAttempt) {
  PrecedenceClaim claim;
  for (int i = 0; i < 4; ++i, SleepForNanos(400 * kMillisecond)) claim.NoteConflict(precedence_[0].get(), NowNanos());
  Round(1);
  SleepForNanos(2500 * kMillisecond);  // 8 times 400 ms, which began 400 ms ago
  EXPECT_TRUE(MustWait(1));
  SleepForNanos(800 * kMillisecond);
  EXPECT_FALSE(MustWait(1));
}

// Real READs carry the announcements, those of live nodes only.
TEST_F(BakeryTest, TheEpochManagerBringsTheAnnouncements) {
  PrecedenceClaim claim;
  Starve(&claim, 2);
  bool had_to_wait = false;
  simulation_.Join(simulation_.StartOn(0, "round", [&] {
    const auto channel = nodes_[0]->OpenChannel().value();
    EXPECT_TRUE(epochs_[0]->Advance(channel.get()).ok());
    had_to_wait = MustWait(0);
    fabric_->Kill(2);
    SleepForNanos(5 * kMillisecond);
    EXPECT_TRUE(epochs_[0]->Advance(channel.get()).ok());
    EXPECT_FALSE(MustWait(0));
  }));
  EXPECT_TRUE(had_to_wait);
}

// ---------------------------------------------------------------------------------------------------------------------
// Transactions.

constexpr uint64_t kRowsPerNode = 300;
constexpr int64_t kBalance = 100;
constexpr uint64_t kNodeShift = 32;  // of a key

// Rows of node n have keys (n << 32) + i.
std::vector<TableOptions> Tables() {
  const Placement placement{
      .owner = [](const Key& key, int) { return static_cast<rdma::NodeId>(key.integer() >> kNodeShift); },
      .range_owner = [](const Key& from, const Key& to, int) -> int {
        const uint64_t node = from.integer() >> kNodeShift;
        return node == to.integer() >> kNodeShift ? static_cast<int>(node) : Placement::kSeveralNodes;
      }};
  return {{.name = "accounts", .index = IndexKind::kXStore, .payload_bytes = sizeof(int64_t), .placement = placement},
          {.name = "sums", .payload_bytes = sizeof(int64_t), .placement = placement}};
}

// Moves money between two random rows, on any nodes.
Status Transfer(Session& session, const Table& accounts, int nodes, Random& random) {
  const auto pick = [&] { return random.Below(nodes) << kNodeShift | random.Below(kRowsPerNode); };
  return session.RunBlocking([&, a = pick(), b = pick()](Transaction& t) -> coro::Task<Status> {
    int64_t from = 0;
    int64_t to = 0;
    if (a == b) co_return absl::OkStatus();
    StatusOr<RecordHandle> first = co_await t.GetForUpdate(accounts, a, &from);
    if (!first.ok()) co_return first.status();
    StatusOr<RecordHandle> second = co_await t.GetForUpdate(accounts, b, &to);
    if (!second.ok()) co_return second.status();
    --from;
    ++to;
    Status status = t.Update(*first, from);
    if (status.ok()) status = t.Update(*second, to);
    co_return status;
  });
}

// Time that a summing transaction spends on each node's rows, besides adding.
constexpr uint64_t kThinkNanos = 2 * kMillisecond;

// Adds up all accounts of all nodes, and records the sum in a row of `writes_at` if that is not negative. `attempt` is
// called at the start of each attempt.
Status Sum(Session& session, const Table& accounts, const Table& sums, int nodes, int writes_at, RunOutcome* outcome,
           int64_t* sum, const std::function<void()>& attempt) {
  ScanRows rows;
  return session.RunBlocking(
      [&](Transaction& t) -> coro::Task<Status> {
        attempt();
        *sum = 0;
        for (int node = 0; node < nodes; ++node) {
          const uint64_t base = static_cast<uint64_t>(node) << kNodeShift;
          const index::ScanRange range{.from = base, .to = base + kRowsPerNode};
          Status status = co_await t.Scan(accounts, range, &rows);
          if (!status.ok()) co_return status;
          for (size_t i = 0; i < rows.size(); ++i) *sum += rows.As<int64_t>(i);
          SleepForNanos(kThinkNanos);
        }
        if (writes_at < 0) co_return absl::OkStatus();
        const uint64_t key = static_cast<uint64_t>(writes_at) << kNodeShift;
        co_return co_await t.Update(sums, key, std::as_bytes(std::span(sum, 1)));
      },
      outcome);
}

Status Load(Session& session, const Table& accounts, const Table& sums, int node) {
  return session.RunBlocking([&](Transaction& t) -> coro::Task<Status> {
    const uint64_t base = static_cast<uint64_t>(node) << kNodeShift;
    for (uint64_t i = 0; i < kRowsPerNode; ++i) {
      Status status = t.Insert(accounts, base + i, kBalance);
      if (!status.ok()) co_return status;
    }
    co_return t.Insert(sums, base, int64_t{0});
  });
}

// Simulated nodes, each with threads that make transfers without a pause until the test stops them, or for some time.
class Rack : public SimulatedCluster {
 public:
  Rack(int nodes, absl::Duration limit, uint64_t seed = 1)
      : SimulatedCluster(nodes, {.seed = seed}, {.read_path = ReadPathPolicy::kOneSided, .precedence_limit = limit},
                         Tables()),
        nodes_(nodes) {
    for (int node = 0; node < nodes; ++node) {
      On(node, [this, node](Session& session) {
        EXPECT_TRUE(Load(session, table(node, "accounts"), table(node, "sums"), node).ok());
      });
    }
  }
  ~Rack() {
    StopUpdates();
    for (const int node : dead_) Abandon(node);
  }

  void Update(int threads_per_node, uint64_t for_nanos) {
    updates_end_ = simulation().now() + for_nanos;
    for (int node = 0; node < nodes_; ++node) {
      for (int i = 0; i < threads_per_node; ++i) {
        Runtime::Thread* const thread = Start(node, [this, node, i](Session& session) { Transfers(session, node, i); });
        if (node != mortal_) updaters_.push_back(thread);
      }
    }
  }
  // No thread of this node is waited for, because it will die.
  void MayDie(int node) { mortal_ = node; }
  void Kill(int node) {
    fabric().Kill(static_cast<rdma::NodeId>(node));
    dead_.push_back(node);
  }
  void StopUpdates() {
    stop_ = true;
    for (Runtime::Thread* thread : updaters_) simulation().Join(thread);
    updaters_.clear();
  }
  bool updates_go_on() { return !stop_ && simulation().now() < updates_end_; }
  // The longest time between two commits of a node's transfers, over all nodes but the mortal one.
  uint64_t longest_silence() const { return *std::max_element(silence_.begin(), silence_.end()); }

 private:
  void Transfers(Session& session, int node, int number) {
    Random random(static_cast<uint64_t>(node * 100 + number));
    if (silence_.size() < static_cast<size_t>(nodes_)) {
      silence_.resize(static_cast<size_t>(nodes_));
      last_.resize(static_cast<size_t>(nodes_), simulation().now());
    }
    const auto at = static_cast<size_t>(node);
    while (updates_go_on()) {
      const Status status = Transfer(session, table(node, "accounts"), dead_.empty() ? nodes_ : mortal_, random);
      EXPECT_TRUE(status.ok() || !dead_.empty()) << status;
      if (node != mortal_) silence_[at] = std::max(silence_[at], simulation().now() - last_[at]);
      last_[at] = simulation().now();
      SleepForNanos(50'000);
    }
  }

  int nodes_;
  std::vector<Runtime::Thread*> updaters_;
  std::vector<int> dead_;
  std::vector<uint64_t> silence_, last_;
  int mortal_ = -1;
  bool stop_ = false;
  uint64_t updates_end_ = 0;
};

struct Starved {
  Status status = absl::UnknownError("not run");
  RunOutcome outcome = {};
  int64_t sum = 0;
  int attempts_with_ticket = 0;
  bool beside_updates = false;  // they still continued
};

// One transaction at `node` that adds up all accounts.
Starved RunSum(Rack& rack, Session& session, int nodes, int node, bool writes) {
  Starved result;
  result.status = Sum(session, rack.table(node, "accounts"), rack.table(node, "sums"), nodes, writes ? node : -1,
                      &result.outcome, &result.sum, [&] {
                        if (rack.database(node).precedence_statistics().tickets > 0) ++result.attempts_with_ticket;
                      });
  result.beside_updates = rack.updates_go_on();
  return result;
}

class StarvationTest : public testing::TestWithParam<int> {};

TEST_P(StarvationTest, ALongReaderGetsThroughBesideWriters) {
  const int nodes = GetParam();
  Rack rack(nodes, absl::Seconds(10));
  rack.Update(4, 3000 * kMillisecond);
  Starved reader;
  rack.On(0, [&](Session& session) { reader = RunSum(rack, session, nodes, 0, false); });
  EXPECT_TRUE(reader.status.ok()) << reader.status;
  EXPECT_EQ(reader.sum, nodes * static_cast<int64_t>(kRowsPerNode) * kBalance);
  EXPECT_TRUE(reader.beside_updates);
  EXPECT_TRUE(reader.outcome.asked_precedence);
  EXPECT_LE(reader.attempts_with_ticket, 64);  // one for each commit in progress, and until all nodes have seen it
  rack.StopUpdates();
  const PrecedenceStatistics statistics = rack.database(0).precedence_statistics();
  EXPECT_EQ(statistics.asked, 1u);
  EXPECT_EQ(statistics.tickets, 1u);
  EXPECT_EQ(statistics.expired, 0u);
  for (int node = 0; node < nodes; ++node) EXPECT_GT(rack.database(node).precedence_statistics().held_up, 0u) << node;
  EXPECT_LT(rack.longest_silence(), 250 * kMillisecond);
}

// The precedence is what helps: without it the reader must wait until there are no more writers.
TEST_P(StarvationTest, WithoutPrecedenceItDoesNot) {
  const int nodes = GetParam();
  Rack rack(nodes, absl::ZeroDuration());
  rack.Update(4, 400 * kMillisecond);
  Starved reader;
  rack.On(0, [&](Session& session) { reader = RunSum(rack, session, nodes, 0, false); });
  EXPECT_TRUE(reader.status.ok()) << reader.status;
  EXPECT_FALSE(reader.beside_updates);
  EXPECT_FALSE(reader.outcome.asked_precedence);
  EXPECT_GT(reader.outcome.aborts, 40u);  // 2 or 6 ms each
}

TEST_P(StarvationTest, SeveralThatStarveAllGetThrough) {
  const int nodes = GetParam();
  Rack rack(nodes, absl::Seconds(10));
  rack.Update(3, 5000 * kMillisecond);
  std::vector<Starved> results(static_cast<size_t>(2 * nodes));
  std::vector<Runtime::Thread*> threads;
  for (int i = 0; i < 2 * nodes; ++i) {
    threads.push_back(rack.Start(i % nodes, [&, i](Session& session) {
      results[static_cast<size_t>(i)] = RunSum(rack, session, nodes, i % nodes, /*writes=*/i % 3 != 2);
    }));
  }
  for (Runtime::Thread* thread : threads) rack.simulation().Join(thread);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_TRUE(results[i].status.ok()) << results[i].status;
    EXPECT_EQ(results[i].sum, nodes * static_cast<int64_t>(kRowsPerNode) * kBalance) << i;
    EXPECT_TRUE(results[i].beside_updates) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, StarvationTest, testing::Values(1, 3));

TEST(PrecedenceTest, AHolderThatDiesHoldsNobodyUp) {
  constexpr int kNodes = 3;
  Rack rack(kNodes, absl::Seconds(10));
  rack.MayDie(2);
  rack.Update(2, 600 * kMillisecond);
  bool has_ticket = false;
  rack.Start(2, [&](Session& session) {
    RunOutcome outcome;
    int64_t sum = 0;
    static_cast<void>(Sum(session, rack.table(2, "accounts"), rack.table(2, "sums"), kNodes, 2, &outcome, &sum, [&] {
      if (rack.database(2).precedence_statistics().tickets == 0) return;
      has_ticket = true;
      SleepForNanos(60'000 * kMillisecond);
    }));
  });
  while (!has_ticket) SleepForNanos(kMillisecond);
  SleepForNanos(20 * kMillisecond);  // now the others have seen it
  rack.Kill(2);
  while (rack.updates_go_on()) SleepForNanos(10 * kMillisecond);
  EXPECT_GT(rack.database(0).precedence_statistics().held_up, 0u);
  // The time until it died, was known to be dead and was repaired; far less than its lease.
  EXPECT_LT(rack.longest_silence(), 100 * kMillisecond);
}

TEST(PrecedenceTest, AHolderThatDawdlesHoldsOthersUpForItsLease) {
  Rack rack(3, absl::Seconds(10));
  rack.Update(2, 1000 * kMillisecond);
  rack.On(1, [&](Session& session) {
    Starved result;
    bool dawdled = false;
    const Status status =
        Sum(session, rack.table(1, "accounts"), rack.table(1, "sums"), 3, -1, &result.outcome, &result.sum, [&] {
          if (dawdled || rack.database(1).precedence_statistics().tickets == 0) return;
          dawdled = true;
          SleepForNanos(1000 * kMillisecond);
        });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(dawdled);
  });
  EXPECT_EQ(rack.database(1).precedence_statistics().expired, 1u);
  EXPECT_GT(rack.longest_silence(), 200 * kMillisecond);
  EXPECT_LT(rack.longest_silence(), 300 * kMillisecond);
}

// A transaction committed by hand waits for others, too, but not longer than the limit.
TEST(PrecedenceTest, ACommitByHandWaitsAtMostForTheLimit) {
  Rack rack(1, absl::Milliseconds(300));
  PrecedenceClaim claim;
  rack.On(0, [&](Session& session) {
    for (int i = 0; i < 16; ++i, SleepForNanos(100 * kMillisecond)) {
      claim.NoteConflict(rack.database(0).state().precedence.get(), NowNanos());
    }
    const uint64_t begun = NowNanos();
    Step writer(session);
    EXPECT_TRUE(writer->Update(rack.table(0, "sums"), 0, int64_t{7}).ok());
    {
      Step reader(session);
      int64_t sum = 0;
      EXPECT_TRUE(reader->Get(rack.table(0, "sums"), 0, &sum).ok());
      EXPECT_TRUE(reader.Commit().ok());
    }
    EXPECT_LT(NowNanos() - begun, kMillisecond);
    EXPECT_TRUE(writer.Commit().ok());
    EXPECT_LE(NowNanos() - begun, 310 * kMillisecond);
    claim.GiveBack();
  });
}

// Real threads: the writers continue until the reader and the starving writer have committed, however long that takes.
TEST(PrecedenceTest, OnRealThreads) {
  Cluster cluster({.nodes = 2}, Tables());
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> transfers = 0;
  for (int node = 0; node < 2; ++node) {
    ASSERT_TRUE(
        Load(cluster.NewSession(node), cluster.table(node, "accounts"), cluster.table(node, "sums"), node).ok());
  }
  std::vector<Thread> threads;
  for (int i = 0; i < 4; ++i) {
    Session& session = cluster.NewSession(i % 2);
    threads.emplace_back("transfer", [&, i] {
      Random random(static_cast<uint64_t>(i));
      while (!stop) {
        const Status status = Transfer(session, cluster.table(i % 2, "accounts"), 2, random);
        EXPECT_TRUE(status.ok()) << status;
        ++transfers;
      }
    });
  }
  std::vector<Thread> sums;
  for (int i = 0; i < 3; ++i) {
    Session& session = cluster.NewSession(i % 2);
    sums.emplace_back("sum", [&, i] {
      const int node = i % 2;
      for (int round = 0; round < 2; ++round) {
        RunOutcome outcome;
        int64_t sum = 0;
        const Status status = Sum(session, cluster.table(node, "accounts"), cluster.table(node, "sums"), 2,
                                  i == 2 ? -1 : node, &outcome, &sum, [] {});
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(sum, 2 * static_cast<int64_t>(kRowsPerNode) * kBalance);
      }
    });
  }
  for (Thread& thread : sums) thread.join();
  stop = true;
  for (Thread& thread : threads) thread.join();
  EXPECT_GT(transfers, 0u);
  for (int node = 0; node < 2; ++node) {
    const PrecedenceStatistics s = cluster.databases[static_cast<size_t>(node)]->precedence_statistics();
    RecordProperty("tickets_" + std::to_string(node), static_cast<int>(s.tickets));
    EXPECT_LE(s.expired, s.tickets);
    EXPECT_LE(s.tickets, s.asked);
  }
}

}  // namespace precedence_test
}  // namespace gannet::txn
