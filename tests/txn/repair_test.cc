// A node dies at each step of a commit in turn, at slightly different times. At the others the transaction is then done
// or not done, consistent with everything that any node was told of it, and nothing of it stays locked. The same holds
// if a second node dies with it; then the other nodes may have shown what the second one had.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sometimes.h"
#include "gtest/gtest.h"
#include "index/blink/blink_index.h"
#include "index/lock_word.h"
#include "index/record_header.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/versioned.h"
#include "tests/txn/cluster.h"
#include "tests/txn/lossy_fabric.h"
#include "tests/txn/rounds.h"
#include "txn/peer/peers.h"
#include "txn/record/record.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace repair_test {

constexpr uint64_t kRepairedWithinNanos = 60'000'000;

struct Case {
  std::string name;
  bool coherent = true;  // if false, own records are locked by verbs, too
  IndexKind ordered = IndexKind::kXStore;
  std::optional<IndexRights> rights = {};
};

// Three nodes; the first one dies.
class Rack {
 public:
  Rack(uint64_t seed, const Case& of) : simulation_({.seed = seed}), lossy_(MakeFabric(of.coherent), &plan_) {
    const DatabaseOptions options{.read_path = ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(10)};
    cluster_ = std::make_unique<Cluster>(&lossy_, options, Rounds::Tables(of.ordered, of.rights));
    rounds_ = std::make_unique<Rounds>(cluster_.get());
    const Status loaded = On(1, [&](BlockingTransaction& t) { return rounds_->Load(t, 1); });
    EXPECT_TRUE(loaded.ok()) << loaded;
    const Status warm = On(0, [&](BlockingTransaction& t) { return rounds_->Write(t, 0, 1); });
    EXPECT_TRUE(warm.ok()) << warm;
  }
  ~Rack() {
    for (const int node : dead_) {  // they died without a shutdown
      static_cast<void>(cluster_->databases[static_cast<size_t>(node)].release());
    }
    cluster_.reset();
    fabric_.reset();
  }

  // One transaction in a session of `node`, on a thread of it.
  template <class Body>
  Status On(int node, Body body) {
    Status status;
    simulation_.Join(simulation_.StartOn(static_cast<rdma::NodeId>(node), "work", [&] {
      auto session = cluster_->databases[static_cast<size_t>(node)]->OpenSession();
      status = session.ok() ? RunBlockingBody(**session, body) : session.status();
    }));
    return status;
  }

  // Node 0 commits round 2, and dies, together with the nodes `with`, `nanos` after the start of step `step` of the
  // commit. False if there are fewer steps.
  bool DieInCommit(int step, uint64_t nanos, const std::vector<int>& with = {}) {
    dead_ = with;
    dead_.push_back(0);
    const std::vector<const std::byte*> looked_at = SmallRecordsOf(with);
    simulation_.Join(simulation_.StartOn(0, "victim", [&] {
      auto session = cluster_->databases[0]->OpenSession();
      ASSERT_TRUE(session.ok());
      {
        Step transaction(**session);
        const Status written = rounds_->Write(*transaction.operator->(), 0, 2);
        ASSERT_TRUE(written.ok()) << written;
        plan_ = {.channel = &(*session)->channel(), .skip = step, .loss = Loss::kNothing, .when_fired = [&] {
                   simulation_.At(simulation_.now() + nanos, [this, &looked_at] {
                     for (const std::byte* record : looked_at) LookAt(record);
                     for (const int node : dead_) fabric_->Kill(static_cast<rdma::NodeId>(node));
                   });
                 }};
        const Status status = transaction.Commit();
        EXPECT_TRUE(status.ok()) << status;
        committed_ = status.ok();
      }
      SleepForNanos(10'000'000);
    }));
    if (!plan_.fired) dead_ = {0};
    return plan_.fired;
  }

  // Checks the state at the other nodes, [first, end). True: round 2 was done.
  bool ExpectRepaired(int first, int end) {
    SleepForNanos(kRepairedWithinNanos);
    rounds_->LimitTo(static_cast<uint64_t>(first), static_cast<uint64_t>(end));
    uint64_t round = 0;
    const int last = end - 1;
    const Status read = On(last, [&](BlockingTransaction& t) { return rounds_->Read(t, last, &round); });
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_TRUE(round == 2 || (round == 1 && !committed_ && !shown_)) << round;
    for (int node = first; node < end; ++node) {
      const uint64_t next_round = round + static_cast<uint64_t>(node - first) + 1;
      const Status next = On(node, [&, node](BlockingTransaction& t) { return rounds_->Write(t, node, next_round); });
      EXPECT_TRUE(next.ok()) << next;
    }
    return round == 2;
  }
  // Node 2 tells node 1 that node 0 is dead. Node 0 lives until it is killed.
  void AccuseFirst() {
    const auto phase = [this] { return cluster_->databases[1]->state().peers->phase(0); };
    simulation_.Join(simulation_.StartOn(1, "accuse", [&] {
      Peers& peers = *cluster_->databases[1]->state().peers;
      EXPECT_FALSE(peers.IsForwarded(0, peers.incarnation(0)));
    }));
    SleepForNanos(kRepairedWithinNanos);
    EXPECT_EQ(phase(), Peers::Phase::kAccused);  // this fabric cuts off no live node
    EXPECT_GT(Mark::Reached("repair: a node is accused of being dead by another"), 0u);
    fabric_->Kill(0);
    SleepForNanos(kRepairedWithinNanos);
    EXPECT_EQ(phase(), Peers::Phase::kStranger);
  }

  // Whether round 2 could be read at a node that died with the first.
  bool shown() const { return shown_; }

 private:
  std::vector<const std::byte*> SmallRecordsOf(const std::vector<int>& nodes) {
    std::vector<const std::byte*> result;
    for (const int node : nodes) {
      simulation_.Join(simulation_.StartOn(static_cast<rdma::NodeId>(node), "find", [&] {
        index::WalkPosition position;
        std::vector<rdma::GlobalAddress> records;
        while (cluster_->table(node, "small").local_index().Walk(&position, &records)) {
        }
        ASSERT_EQ(records.size(), 1u);
        const auto session = cluster_->databases[static_cast<size_t>(node)]->OpenSession();
        ASSERT_TRUE(session.ok());
        result.push_back((*session)->channel().Local(records[0]));
      }));
    }
    return result;
  }

  void LookAt(const std::byte* record) {
    uint64_t round = 0;
    rdma::CopyOut(record, index::PayloadDataOffset(sizeof round), std::as_writable_bytes(std::span(&round, 1)));
    shown_ = shown_ || (!IsLocked(LoadWord(record)) && round == 2);
  }

  rdma::Fabric* MakeFabric(bool coherent) {
    rdma::sim::SimFabricOptions options;
    options.num_nodes = Rounds::kNodes;
    options.bytes_per_node = uint64_t{64} << 20;
    options.nic = *rdma::sim::FindNicProfile("cx4-100g");
    options.nic.cpu_coherent_atomics = coherent;
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    return fabric_.get();
  }

  rdma::sim::Simulation simulation_;
  LossPlan plan_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  LossyFabric lossy_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Rounds> rounds_;
  std::vector<int> dead_ = {0};
  bool committed_ = false;
  bool shown_ = false;
};

class RepairTest : public testing::TestWithParam<Case> {};

TEST_P(RepairTest, DeathAtEveryStepOfACommit) {
  int done = 0;
  int undone = 0;
  for (const uint64_t nanos : {0, 700, 1'300, 2'500, 8'000}) {
    int step = 0;
    for (bool more = true; more; ++step) {
      Rack rack(static_cast<uint64_t>(step) + 1, GetParam());
      more = rack.DieInCommit(step, nanos);
      if (!more) break;
      ++(rack.ExpectRepaired(1, Rounds::kNodes) ? done : undone);
      ASSERT_FALSE(HasFailure()) << nanos << " ns after step " << step;
    }
    EXPECT_GE(step, 5);
  }
  EXPECT_GT(done, 0);
  EXPECT_GT(undone, 0);
}

// The other node's part is lost, but it may have been seen.
TEST_P(RepairTest, ASecondNodeDiesWithIt) {
  int shown = 0;
  int undone = 0;
  for (const int second : {1, 2}) {
    for (const uint64_t nanos : {0, 1'300, 2'500}) {
      for (int step = 0;; ++step) {
        Rack rack(static_cast<uint64_t>(step) + 1, GetParam());
        if (!rack.DieInCommit(step, nanos, {second})) break;
        if (!rack.ExpectRepaired(3 - second, 4 - second)) ++undone;
        if (rack.shown()) ++shown;
        ASSERT_FALSE(HasFailure()) << nanos << " ns after step " << step << ", with node " << second;
      }
    }
  }
  EXPECT_GT(shown, 0);
  EXPECT_GT(undone, 0);
}

// Node 0 dies between the two WRITEs of a record of several lines at node 2, together with both owners that knew its
// decision: no live node knows what the record should contain. No Run waits for it without end, at its owner or at
// another node, by READs or by calls.
class HalfWrittenTest : public testing::TestWithParam<ReadPathPolicy> {};

TEST_P(HalfWrittenTest, ARecordThatNobodyCanFinishStaysLocked) {
  constexpr int kNodes = 5;
  constexpr uint64_t kMostVerbs = 60;
  constexpr char kMark[] = "repair: a record that a dead node half wrote stays locked";
  Placement by_number = Placement::ByHash();
  by_number.owner = [](const index::Key& key, int) { return static_cast<rdma::NodeId>(key.integer()); };
  const uint64_t before = Mark::Reached(kMark);
  for (uint64_t verbs = 1; verbs < kMostVerbs && Mark::Reached(kMark) == before; ++verbs) {
    rdma::sim::Simulation simulation({.seed = verbs});
    auto fabric =
        rdma::sim::SimFabric::Create(&simulation, {.num_nodes = kNodes, .bytes_per_node = uint64_t{64} << 20}).value();
    Cluster cluster(fabric.get(), {.read_path = GetParam(), .call_timeout = absl::Milliseconds(10)},
                    {{.name = "points", .payload_bytes = sizeof(Account), .placement = by_number}});
    const auto on = [&](int node, auto body) {
      Status status;
      simulation.Join(simulation.StartOn(static_cast<rdma::NodeId>(node), "work", [&] {
        auto session = cluster.databases[static_cast<size_t>(node)]->OpenSession();
        Step step(**session);
        status = body(*step.operator->(), cluster.table(node, "points"));
        if (node == 0) fabric->KillAfterVerbs(0, verbs);
        if (status.ok()) status = step.Commit();
      }));
      return status;
    };
    for (const uint64_t key : {1, 2, 3}) {
      const Status loaded =
          on(static_cast<int>(key), [&](auto& t, auto& points) { return t.Insert(points, key, Account{}); });
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
    static_cast<void>(on(0, [](auto& t, auto& points) {
      Status status;
      for (const uint64_t key : {1, 2, 3}) status.Update(t.Update(points, key, Account{.balance = 1}));
      return status;
    }));
    for (const int node : {0, 1, 3}) {
      fabric->Kill(static_cast<rdma::NodeId>(node));
      static_cast<void>(cluster.databases[static_cast<size_t>(node)].release());  // as in Rack
    }
    SleepForNanos(kRepairedWithinNanos);
    const bool stays = Mark::Reached(kMark) != before;
    for (const int node : {2, 4}) {
      simulation.Join(simulation.StartOn(static_cast<rdma::NodeId>(node), "runs", [&] {
        const Table& points = cluster.table(node, "points");
        const auto run = [&](auto body) { return cluster.databases[static_cast<size_t>(node)]->Run(body); };
        Account account;
        const Status read = run([&](BlockingTransaction& t) { return t.Get(points, uint64_t{2}, &account); });
        EXPECT_EQ(read.code(), stays ? absl::StatusCode::kUnavailable : absl::StatusCode::kOk) << read;
        const Status inserted = run([&](BlockingTransaction& t) { return t.Insert(points, uint64_t{2}, account); });
        EXPECT_EQ(inserted.code(), stays ? absl::StatusCode::kUnavailable : absl::StatusCode::kAlreadyExists)
            << inserted;
      }));
    }
  }
  EXPECT_GT(Mark::Reached(kMark), before);
}

INSTANTIATE_TEST_SUITE_P(Paths, HalfWrittenTest, testing::Values(ReadPathPolicy::kOneSided, ReadPathPolicy::kCall),
                         [](const auto& path) { return path.param == ReadPathPolicy::kCall ? "Calls" : "Reads"; });

// Node 0 dies while it holds the lock of a leaf at node 1. Node 2 has not carried out its decisions yet, so node 1 must
// not touch its records; but the leaf is free soon, because the threads that serve requests may be waiting for it.
TEST(LeafLockTest, IsReleasedBeforeOthersHaveForwarded) {
  constexpr int kNodes = 3;
  constexpr uint64_t kMostVerbs = 40;
  int locked = 0;
  for (uint64_t verbs = 1; verbs < kMostVerbs; ++verbs) {
    rdma::sim::Simulation simulation({.seed = verbs});
    auto fabric =
        rdma::sim::SimFabric::Create(&simulation, {.num_nodes = kNodes, .bytes_per_node = uint64_t{64} << 20}).value();
    Placement by_number = Placement::ByHash();
    by_number.owner = [](const index::Key& key, int) { return static_cast<rdma::NodeId>(key.integer() % 10); };
    by_number.range_owner = [](const index::Key&, const index::Key&, int) { return Placement::kSeveralNodes; };
    Cluster cluster(fabric.get(), {.read_path = ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(10)},
                    {{.name = "rows",
                      .index = IndexKind::kBlink,
                      .payload_bytes = sizeof(uint64_t),
                      .expected_rows = 100,
                      .placement = by_number}});
    const auto insert = [&](int node, std::vector<uint64_t> keys, uint64_t dies_after) {
      Status status;
      simulation.Join(simulation.StartOn(static_cast<rdma::NodeId>(node), "work", [&] {
        auto session = cluster.databases[static_cast<size_t>(node)]->OpenSession();
        Step step(**session);
        for (const uint64_t key : keys) status.Update(step->Insert(cluster.table(node, "rows"), key, key));
        if (dies_after != 0) fabric->KillAfterVerbs(0, dies_after);
        if (status.ok()) status = step.Commit();
      }));
      return status;
    };
    ASSERT_TRUE(insert(0, {1, 2}, 0).ok());  // node 0 has joined both
    auto& leaf = static_cast<index::blink::BlinkIndex&>(cluster.table(1, "rows").local_index());
    const std::byte* const memory = cluster.databases[1]->node().memory().data();
    const auto holder = [&] {
      const uint64_t state = LoadWord(memory + leaf.root().offset());
      return IsLocked(state) ? static_cast<int>(index::LockOwnerNode(state)) : -1;
    };
    static_cast<void>(insert(0, {11}, verbs));
    fabric->Kill(0);
    static_cast<void>(cluster.databases[0].release());  // as in Rack
    const bool was_locked = holder() == 0;
    locked += was_locked ? 1 : 0;
    Peers* const peers = cluster.databases[2]->state().peers.get();
    auto stay = std::make_unique<Peers::Stay>(peers, rdma::NodeId{0}, Peers::kUnnumbered - 1);
    ASSERT_TRUE(stay->admitted());
    if (was_locked) {
      SleepForNanos(kRepairedWithinNanos);
      EXPECT_NE(cluster.databases[1]->state().peers->phase(0), Peers::Phase::kStranger);
      EXPECT_EQ(holder(), -1) << verbs;
    }
    stay.reset();
    SleepForNanos(kRepairedWithinNanos);
    EXPECT_EQ(cluster.databases[1]->state().peers->phase(0), Peers::Phase::kStranger);
    EXPECT_TRUE(insert(2, {21}, 0).ok()) << verbs;
    ASSERT_FALSE(HasFailure()) << verbs;
  }
  EXPECT_GT(locked, 0);
}

// Node 0 dies while it holds a lock at node 1, and node 2 does not answer for what it has decided. Readers are told
// that the lock stays, also when another process has the place of node 0.
TEST(LostHolderTest, ALockIsNoConflictBecauseAnotherProcessIsThere) {
  bool was_locked = false;
  for (uint64_t verbs = 1; verbs < 10 && !was_locked; ++verbs) {
    rdma::sim::Simulation simulation({.seed = verbs});
    auto fabric =
        rdma::sim::SimFabric::Create(&simulation, {.num_nodes = 3, .bytes_per_node = uint64_t{64} << 20}).value();
    Placement by_number = Placement::ByHash();
    by_number.owner = [](const index::Key& key, int) { return static_cast<rdma::NodeId>(key.integer() % 10); };
    Cluster cluster(fabric.get(), {.read_path = ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(10)},
                    {{.name = "rows",
                      .index = IndexKind::kHash,
                      .payload_bytes = sizeof(uint64_t),
                      .expected_rows = 100,
                      .placement = by_number}});
    // Runs `body`, and commits if the node lives on, or dies in its commit after `dies_after` verbs.
    const auto run = [&](int node, uint64_t dies_after, const auto& body) {
      Status status;
      simulation.Join(simulation.StartOn(static_cast<rdma::NodeId>(node), "work", [&] {
        auto session = cluster.databases[static_cast<size_t>(node)]->OpenSession();
        Step step(**session);
        status = body(step, cluster.table(node, "rows"));
        if (dies_after != 0) fabric->KillAfterVerbs(0, dies_after);
        if (status.ok()) status = step.Commit();
      }));
      return status;
    };
    const auto insert = [](auto& t, const Table& rows) {
      Status status = t->Insert(rows, uint64_t{1}, uint64_t{1});
      status.Update(t->Insert(rows, uint64_t{2}, uint64_t{1}));
      return status;
    };
    ASSERT_TRUE(run(0, 0, insert).ok());  // node 0 has joined both
    static_cast<void>(
        run(0, verbs, [](auto& t, const Table& rows) { return t->Update(rows, uint64_t{1}, uint64_t{2}); }));
    fabric->Kill(0);
    static_cast<void>(cluster.databases[0].release());  // as in Rack
    const Peers::Stay stay(cluster.databases[2]->state().peers.get(), rdma::NodeId{0}, Peers::kUnnumbered - 1);
    ASSERT_TRUE(stay.admitted());
    SleepForNanos(kRepairedWithinNanos);
    const auto read = [&] {
      return run(1, 0, [](auto& t, const Table& rows) {
        uint64_t value = 0;
        return t->Get(rows, uint64_t{1}, &value);
      });
    };
    was_locked = absl::IsUnavailable(read());
    if (!was_locked) continue;
    const auto another = fabric->Attach(0);
    ASSERT_TRUE(another.ok()) << another.status();
    SleepForNanos(kRepairedWithinNanos);
    const Status still = read();
    EXPECT_TRUE(absl::IsUnavailable(still)) << still;
  }
  EXPECT_TRUE(was_locked);
}

// Two clients die together: one has put a key into a leaf, and the other one holds the lock of that leaf.
TEST(LeafLockTest, OfASecondDeadNodeDoesNotStopTheRepairOfTheFirst) {
  constexpr uint64_t kFirst = 11;
  constexpr uint64_t kSecond = 12;
  int blocked = 0;
  for (uint64_t first_verbs = 3; first_verbs <= 16; ++first_verbs) {
    for (uint64_t second_verbs = 1; second_verbs <= 8; ++second_verbs) {
      SCOPED_TRACE(testing::Message() << first_verbs << ", " << second_verbs);
      rdma::sim::Simulation simulation({.seed = first_verbs * 100 + second_verbs});
      auto fabric =
          rdma::sim::SimFabric::Create(
              &simulation, {.num_nodes = 3, .bytes_per_node = uint64_t{64} << 20, .detection_nanos = 5'000'000})
              .value();
      Cluster cluster(
          fabric.get(),
          {.data_nodes = 1, .read_path = ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(10)},
          {{.name = "rows", .index = IndexKind::kBlink, .payload_bytes = sizeof(uint64_t), .expected_rows = 100}});
      const auto insert = [&](int node, uint64_t key, uint64_t dies_after) {
        Status status;
        simulation.Join(simulation.StartOn(static_cast<rdma::NodeId>(node), "work", [&] {
          auto session = cluster.databases[static_cast<size_t>(node)]->OpenSession();
          Step step(**session);
          status.Update(step->Insert(cluster.table(node, "rows"), key, key));
          if (dies_after != 0) fabric->KillAfterVerbs(static_cast<rdma::NodeId>(node), dies_after);
          if (status.ok()) status = step.Commit();
        }));
        return status;
      };
      ASSERT_TRUE(insert(1, 1, 0).ok());
      ASSERT_TRUE(insert(2, 2, 0).ok());
      static_cast<void>(insert(1, kFirst, first_verbs));
      static_cast<void>(insert(2, kSecond, second_verbs));
      auto& index = static_cast<index::blink::BlinkIndex&>(cluster.table(0, "rows").local_index());
      const uint64_t state = LoadWord(cluster.databases[0]->node().memory().data() + index.root().offset());
      const bool second_holds = IsLocked(state) && index::LockOwnerNode(state) == 2;
      for (const rdma::NodeId dead : {1, 2}) {
        fabric->Kill(dead);
        static_cast<void>(cluster.databases[dead].release());  // as in Rack
      }
      blocked += second_holds && !index.Find(Key(kFirst)).record.is_null() ? 1 : 0;
      SleepForNanos(kRepairedWithinNanos);
      for (const rdma::NodeId dead : {1, 2}) {
        EXPECT_EQ(cluster.databases[0]->state().peers->phase(dead), Peers::Phase::kStranger);
      }
      for (const uint64_t key : {kFirst, kSecond}) {
        const Status inserted = insert(0, key, 0);
        EXPECT_TRUE(inserted.ok() || absl::IsAlreadyExists(inserted)) << inserted;
      }
      EXPECT_EQ(cluster.databases[0]->table_statistics()[0].index_damages, 0u);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(blocked, 0);
}

TEST_P(RepairTest, ANodeThatIsAccusedIsRepairedWhenItIsGone) {
  Rack rack(1, GetParam());
  rack.AccuseFirst();
  EXPECT_FALSE(rack.ExpectRepaired(1, Rounds::kNodes));  // round 2 had not begun
}

INSTANTIATE_TEST_SUITE_P(All, RepairTest,
                         testing::Values(Case{.name = "Memory"}, Case{.name = "NicAtomicsOnly", .coherent = false},
                                         Case{.name = "BlinkOfOwner",
                                              .coherent = false,
                                              .ordered = IndexKind::kBlink,
                                              .rights = IndexRights::kOwnerOnly}),
                         [](const auto& test) { return test.param.name; });

}  // namespace repair_test
}  // namespace gannet::txn
