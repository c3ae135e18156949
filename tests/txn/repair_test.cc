// A node dies at every step of a commit in turn, a little earlier or later: at the others the transaction is done or
// not, as far as anybody heard of it, and nothing of it stays locked.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rdma/base/clock.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/cluster.h"
#include "tests/txn/lossy_fabric.h"
#include "tests/txn/rounds.h"
#include "txn/session_internal.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kRepairedWithinNanos = 60'000'000;

struct Case {
  std::string name;
  bool coherent = true;  // if not, own records are locked by verbs, too
};

// Three nodes whose first one dies.
class Rack {
 public:
  Rack(uint64_t seed, bool coherent) : simulation_({.seed = seed}), lossy_(MakeFabric(coherent), &plan_) {
    const DatabaseOptions options{.read_path = ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(10)};
    cluster_ = std::make_unique<Cluster>(&lossy_, options, Rounds::Tables());
    rounds_ = std::make_unique<Rounds>(cluster_.get());
    const Status loaded = On(1, [&](BlockingTransaction& t) { return rounds_->Load(t, 1); });
    EXPECT_TRUE(loaded.ok()) << loaded;
    const Status warm = On(0, [&](BlockingTransaction& t) { return rounds_->Write(t, 0, 1); });
    EXPECT_TRUE(warm.ok()) << warm;
  }
  ~Rack() {
    static_cast<void>(cluster_->databases[0].release());  // it died, and was not torn down
    cluster_.reset();
    fabric_.reset();
  }

  // One transaction by a session of `node`, on a thread of it.
  template <class Body>
  Status On(int node, Body body) {
    Status status;
    simulation_.Join(simulation_.StartOn(static_cast<rdma::NodeId>(node), "work", [&] {
      auto session = cluster_->databases[static_cast<size_t>(node)]->OpenSession();
      status = session.ok() ? RunBlockingBody(**session, body) : session.status();
    }));
    return status;
  }

  // Node 0 commits round 2, and dies `nanos` after it has begun with step number `step` of that. False if there are
  // fewer steps.
  bool DieInCommit(int step, uint64_t nanos) {
    simulation_.Join(simulation_.StartOn(0, "victim", [&] {
      auto session = cluster_->databases[0]->OpenSession();
      ASSERT_TRUE(session.ok());
      {
        Step transaction(**session);
        const Status written = rounds_->Write(*transaction.operator->(), 0, 2);
        ASSERT_TRUE(written.ok()) << written;
        plan_ = {.channel = &(*session)->channel(), .skip = step, .loss = Loss::kNothing, .when_fired = [&] {
                   simulation_.At(simulation_.now() + nanos, [this] { fabric_->Kill(0); });
                 }};
        const Status status = transaction.Commit();
        EXPECT_TRUE(status.ok()) << status;
        committed_ = status.ok();
      }
      SleepForNanos(10'000'000);
    }));
    return plan_.fired;
  }

  // What the others make of it. True: it was done.
  bool ExpectRepaired() {
    SleepForNanos(kRepairedWithinNanos);
    rounds_->LeaveOutTheFirst();
    uint64_t round = 0;
    const Status read = On(2, [&](BlockingTransaction& t) { return rounds_->Read(t, 2, &round); });
    EXPECT_TRUE(read.ok()) << read;
    EXPECT_TRUE(round == 2 || (round == 1 && !committed_)) << round;
    for (const int node : {1, 2}) {
      const Status next = On(node, [&, node](BlockingTransaction& t) { return rounds_->Write(t, node, round + node); });
      EXPECT_TRUE(next.ok()) << next;
    }
    return round == 2;
  }

 private:
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
  bool committed_ = false;
};

class RepairTest : public testing::TestWithParam<Case> {};

TEST_P(RepairTest, DeathAtEveryStepOfACommit) {
  int done = 0;
  int undone = 0;
  for (const uint64_t nanos : {0, 700, 1'300, 2'500, 8'000}) {
    int step = 0;
    for (bool more = true; more; ++step) {
      Rack rack(static_cast<uint64_t>(step) + 1, GetParam().coherent);
      more = rack.DieInCommit(step, nanos);
      if (!more) break;
      ++(rack.ExpectRepaired() ? done : undone);
      ASSERT_FALSE(HasFailure()) << nanos << " ns after step " << step;
    }
    EXPECT_GE(step, 5);
  }
  EXPECT_GT(done, 0);
  EXPECT_GT(undone, 0);
}

INSTANTIATE_TEST_SUITE_P(All, RepairTest,
                         testing::Values(Case{.name = "Memory"}, Case{.name = "NicAtomicsOnly", .coherent = false}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace gannet::txn
