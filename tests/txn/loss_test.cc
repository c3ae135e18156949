// One completion is lost, at each step of a commit in turn, with or without its effect, while all nodes live: all data
// or none changes, as the status says, no lock stays, and later transactions succeed.
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "log/file/simulated/faulty_file_system.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/cluster.h"
#include "tests/txn/lossy_fabric.h"
#include "tests/txn/rounds.h"
#include "txn/all_nodes.h"
#include "txn/run/database_state.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace loss_test {

constexpr uint64_t kCutNanos = 50'000'000;  // longer than call_timeout, and than a closing session waits
constexpr uint64_t kSettleNanos = 30'000'000;

struct Case {
  std::string name;
  bool coherent = true;  // if false, own records are locked by verbs, too
  bool durable = false;
};

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

class LossTest : public testing::TestWithParam<Case> {
 protected:
  LossTest() : simulation_({.seed = 5}), lossy_(MakeFabric(), &plan_) {
    DatabaseOptions options{.read_path = ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(10)};
    if (GetParam().durable) {
      options.directory = "/data";
      options.create_if_missing = true;
      options.files = std::make_shared<log::FaultyFileSystem>(3);
      options.log_segment_bytes = uint64_t{1} << 20;
      options.log_buffer_bytes = size_t{256} << 10;
    }
    cluster_ = std::make_unique<Cluster>(&lossy_, options, Rounds::Tables());
    coordinator_ = &cluster_->NewSession(0);
    other_ = &cluster_->NewSession(1);
    rounds_ = std::make_unique<Rounds>(cluster_.get());
    const Status loaded =
        RunBlockingBody(*other_, [&](BlockingTransaction& t) { return rounds_->Load(t, /*from=*/1); });
    EXPECT_TRUE(loaded.ok()) << loaded;
  }
  ~LossTest() override {
    cluster_.reset();
    fabric_.reset();
  }

  rdma::Fabric* MakeFabric() {
    rdma::sim::SimFabricOptions options;
    options.num_nodes = Rounds::kNodes;
    options.bytes_per_node = uint64_t{64} << 20;
    options.nic = *rdma::sim::FindNicProfile("ideal");
    options.nic.cpu_coherent_atomics = GetParam().coherent;
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    return fabric_.get();
  }

  uint64_t ExpectWhole() {
    uint64_t round = 0;
    const Status read =
        RunBlockingBody(*other_, [&](BlockingTransaction& t) { return rounds_->Read(t, /*from=*/1, &round); });
    EXPECT_TRUE(read.ok()) << read;
    return round;
  }

  // One transaction whose commit loses its submission number `skip`. False if it makes fewer.
  bool CommitWithLoss(int skip, Loss loss) {
    const uint64_t before = ExpectWhole();
    Status status;
    {
      Step step(*coordinator_);
      const Status written = rounds_->Write(*step.operator->(), /*from=*/0, before + 1);
      EXPECT_TRUE(written.ok()) << written;
      plan_ = {.channel = &coordinator_->channel(), .skip = skip, .loss = loss};
      status = step.Commit();
      // The session does nothing, and the transaction's object stays: what is owed is settled nevertheless.
      SleepForNanos(kSettleNanos);
    }
    const bool fired = plan_.fired;
    plan_ = {};
    EXPECT_EQ(cluster_->databases[0]->state().pending->open().pending, 0u);
    const uint64_t after = ExpectWhole();
    if (status.ok()) {
      EXPECT_EQ(after, before + 1);
    } else {
      EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
      EXPECT_EQ(after, before) << status;
    }
    EXPECT_TRUE(fired || status.ok()) << status;
    // Both sessions can change everything: nothing is locked.
    for (const int node : {1, 0}) {
      const Status next = RunBlockingBody(node == 0 ? *coordinator_ : *other_, [&](BlockingTransaction& t) {
        return rounds_->Write(t, node, ExpectedNext());
      });
      EXPECT_TRUE(next.ok()) << next;
      round_ = 0;
    }
    return fired;
  }
  void CutLinks() {
    fabric_->Cut(0, 1);
    fabric_->Cut(1, 0);
    simulation_.At(simulation_.now() + kCutNanos, [this] { fabric_->MendAll(); });
  }
  // The round after the present one, read once per transaction.
  uint64_t ExpectedNext() {
    if (round_ == 0) round_ = ExpectWhole() + 1;
    return round_;
  }

  rdma::sim::Simulation simulation_;
  LossPlan plan_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  LossyFabric lossy_;
  std::unique_ptr<Cluster> cluster_;
  Session* coordinator_ = nullptr;
  Session* other_ = nullptr;
  std::unique_ptr<Rounds> rounds_;
  uint64_t round_ = 0;
};

TEST_P(LossTest, EveryStepOfACommit) {
  for (const Loss loss : {Loss::kNotDone, Loss::kDone, Loss::kHalf, Loss::kLate}) {
    int steps = 0;
    while (CommitWithLoss(steps, loss) && !HasFailure()) ++steps;
    ASSERT_FALSE(HasFailure()) << "loss " << static_cast<int>(loss) << " of step " << steps;
    // Lock, prepare at two other nodes, validate, install, finish at two.
    EXPECT_GE(steps, GetParam().durable ? 9 : 7);
  }
}

TEST_P(LossTest, PendingOperationsOfAClosedSessionAreSettled) {
  for (int skip = 0;; ++skip) {
    std::unique_ptr<Session> session = cluster_->databases[0]->OpenSession().value();
    bool fired = false;
    {
      Step step(*session);
      const uint64_t next = ExpectWhole() + 1;
      ASSERT_TRUE(rounds_->Write(*step.operator->(), 0, next).ok());
      plan_ = {.channel = &session->channel(), .skip = skip, .loss = Loss::kDone};
      const Status status = step.Commit();
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
      fired = plan_.fired;
      plan_ = {};
    }
    session.reset();
    round_ = 0;
    const Status next =
        RunBlockingBody(*other_, [&](BlockingTransaction& t) { return rounds_->Write(t, 1, ExpectedNext()); });
    ASSERT_TRUE(next.ok()) << next << " after the loss of step " << skip;
    round_ = 0;
    if (!fired) break;
  }
}

// The links between two nodes are cut in the middle of a commit, for longer than any thread waits, and the session is
// closed in that time: the next session with its channel takes its pending operations over.
TEST_P(LossTest, PendingOperationsOutliveTheSessionWhileALinkIsCut) {
  int unknown = 0;
  for (int skip = 0;; ++skip) {
    std::unique_ptr<Session> session = cluster_->databases[0]->OpenSession().value();
    const uint64_t before = ExpectWhole();
    Status status;
    bool fired = false;
    {
      Step step(*session);
      ASSERT_TRUE(rounds_->Write(*step.operator->(), 0, before + 1).ok());
      plan_ = {.channel = &session->channel(), .skip = skip, .loss = Loss::kDone, .when_fired = [this] { CutLinks(); }};
      status = step.Commit();
      fired = plan_.fired;
      plan_ = {};
    }
    session.reset();
    session = cluster_->databases[0]->OpenSession().value();
    SleepForNanos(2 * kCutNanos);
    session->state().pending.Forget();
    EXPECT_TRUE(session->state().pending.empty());
    const bool committed = status.ok() || absl::IsUnknown(status);
    EXPECT_TRUE(committed || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
    ASSERT_EQ(ExpectWhole(), committed ? before + 1 : before) << status << " after step " << skip;
    unknown += absl::IsUnknown(status) ? 1 : 0;
    if (!fired) break;
  }
  // With a log, a commit waits as long as necessary, within its epoch.
  EXPECT_EQ(unknown > 0, !GetParam().durable);
}

// The links are cut at each step of a commit that changes a table at two other nodes. The table is dropped when all is
// settled there, so nothing writes into its memory, which another table uses then.
TEST_P(LossTest, ATableIsDroppedAfterThePendingOperationsOfItsRecords) {
  constexpr uint64_t kRows = 30;
  std::vector<Database*> nodes;
  for (const auto& database : cluster_->databases) nodes.push_back(database.get());
  const auto options = [](const char* name) {
    return TableOptions{.name = name,
                        .payload_bytes = 100,
                        .variable_length = true,
                        .expected_rows = kRows,
                        .placement = Placement::ByHash()};
  };
  const auto fill = [&](const char* name, std::byte value) {
    const std::vector<std::byte> payload(60, value);
    const Status filled = RunBlockingBody(*other_, [&](BlockingTransaction& t) {
      for (uint64_t key = 0; key < kRows; ++key) {
        GANNET_RETURN_IF_ERROR(t.Insert(cluster_->table(1, name), key, std::span(payload)));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(filled.ok()) << filled;
  };
  int waited = 0;
  for (int skip = 0;; ++skip) {
    SCOPED_TRACE(testing::Message() << "after step " << skip);
    ASSERT_TRUE(CreateTableOnAllNodes(nodes, options("goes")).ok());
    fill("goes", std::byte{1});
    {
      Step step(*coordinator_);
      const Table& table = cluster_->table(0, "goes");
      const std::vector<std::byte> same(60, std::byte{2});
      const std::vector<std::byte> longer(100, std::byte{2});
      for (uint64_t key = 0; key < kRows; key += 3) {
        ASSERT_TRUE(step->Update(table, key, std::span(same)).ok());
        ASSERT_TRUE(step->Update(table, key + 1, std::span(longer)).ok());
        ASSERT_TRUE(step->Remove(table, key + 2).ok());
        ASSERT_TRUE(step->Insert(table, kRows + key, std::span(same)).ok());
      }
      plan_ = {
          .channel = &coordinator_->channel(), .skip = skip, .loss = Loss::kLate, .when_fired = [this] { CutLinks(); }};
      step.Commit().IgnoreError();
    }
    const bool fired = plan_.fired;
    plan_ = {};
    const uint64_t begin = NowNanos();
    if (nodes[0]->state().pending->open().pending > 0) ++waited;
    const Status dropped = DropTableOnAllNodes(nodes, "goes");
    ASSERT_TRUE(dropped.ok()) << dropped;
    EXPECT_EQ(nodes[0]->state().pending->open().pending, 0u);
    EXPECT_LT(NowNanos() - begin, uint64_t{1'000'000'000});
    ASSERT_TRUE(CreateTableOnAllNodes(nodes, options("next")).ok());
    fill("next", std::byte{3});
    SleepForNanos(2 * kCutNanos);
    const Status read = RunBlockingBody(*other_, [&](BlockingTransaction& t) -> Status {
      std::vector<std::byte> payload(60);
      for (uint64_t key = 0; key < kRows; ++key) {
        GANNET_RETURN_IF_ERROR(t.Get(cluster_->table(1, "next"), key, std::span(payload)));
        EXPECT_EQ(std::ranges::count(payload, std::byte{3}), 60);
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(read.ok()) << read;
    ASSERT_TRUE(DropTableOnAllNodes(nodes, "next").ok());
    if (!fired) break;
  }
  EXPECT_GT(waited, 0);
}

// A decision that takes two messages. One completion of its commit is lost, while other transactions of the session
// commit and so take caller names.
class LargeDecision {
 public:
  static constexpr uint64_t kRows = 4;
  static constexpr uint64_t kOthers = 100;
  static constexpr uint64_t kApartNanos = 3'000;

  LargeDecision() : simulation_({.seed = 5}), lossy_(MakeFabric(), &plan_) {
    Placement at_node_1 = Placement::ByHash();
    at_node_1.owner = [](const index::Key&, int) -> rdma::NodeId { return 1; };
    cluster_ = std::make_unique<Cluster>(
        &lossy_, DatabaseOptions{.read_path = ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(10)},
        std::vector<TableOptions>{
            {.name = "large", .payload_bytes = sizeof(LargeRow), .expected_rows = kRows, .placement = at_node_1},
            {.name = "small", .payload_bytes = sizeof(uint64_t), .expected_rows = 1000, .placement = at_node_1}});
    for (uint64_t key = 0; key < kRows; ++key) {
      *row_ = {};
      const Status loaded = AtOwner([&](BlockingTransaction& t) { return t.Insert(Table(1, "large"), key, *row_); });
      EXPECT_TRUE(loaded.ok()) << loaded;
    }
  }
  ~LargeDecision() {
    cluster_.reset();
    fabric_.reset();
  }

  // False if they make fewer steps.
  bool CommitWithLoss(int skip) {
    ++round_;
    Status status;
    {
      const std::unique_ptr<Session> session = cluster_->databases[0]->OpenSession().value();
      std::vector<Status> others(kOthers);
      const uint64_t begin = NowNanos() + 200'000;
      session->worker().Spawn(Write(session.get(), begin, &status));
      for (uint64_t i = 0; i < kOthers; ++i) {
        session->worker().Spawn(Insert(session.get(), round_ * kOthers + i, begin + i * kApartNanos, &others[i]));
      }
      skip_ = skip;
      session->worker().Run();
      for (const Status& other : others) EXPECT_TRUE(other.ok() || IsUnknownOutcome(other)) << other;
    }
    EXPECT_TRUE(status.ok() || IsUnknownOutcome(status)) << status;
    if (status.ok()) committed_ = round_;
    for (uint64_t key = 0; key < kRows; ++key) {
      const Status read = AtOwner([&](BlockingTransaction& t) { return t.Get(Table(1, "large"), key, row_.get()); });
      EXPECT_TRUE(read.ok()) << read;
      EXPECT_EQ((*row_)[0], committed_) << key << ": " << status;
      EXPECT_EQ(row_->back(), committed_) << key << ": " << status;
    }
    const bool fired = plan_.fired;
    plan_ = {};
    return fired;
  }

 private:
  using LargeRow = std::array<uint64_t, kMaxPayloadBytes / sizeof(uint64_t)>;

  const txn::Table& Table(int node, const char* name) { return cluster_->table(node, name); }

  template <class Body>
  Status AtOwner(Body body) {
    const std::unique_ptr<Session> session = cluster_->databases[1]->OpenSession().value();
    return RunBlockingBody(*session, body);
  }

  coro::Task<void> Write(Session* session, uint64_t begin, Status* status) {
    Transaction transaction = session->Begin();
    for (uint64_t key = 0; key < kRows; ++key) {
      StatusOr<RecordHandle> handle = co_await transaction.GetForUpdate(Table(0, "large"), key, row_.get());
      EXPECT_TRUE(handle.ok()) << handle.status();
      row_->fill(round_);
      const Status updated = transaction.Update(*handle, *row_);
      EXPECT_TRUE(updated.ok()) << updated;
    }
    co_await session->worker().SleepUntil(begin);
    plan_ = {.channel = &session->channel(), .skip = skip_, .loss = Loss::kDone};
    coro::Async<Status> commit = transaction.Commit();
    *status = co_await commit;
  }

  coro::Task<void> Insert(Session* session, uint64_t key, uint64_t at, Status* status) {
    Transaction transaction = session->Begin();
    *status = transaction.Insert(Table(0, "small"), key, uint64_t{0});
    EXPECT_TRUE(status->ok()) << *status;
    co_await session->worker().SleepUntil(at);
    coro::Async<Status> commit = transaction.Commit();
    *status = co_await commit;
  }

  rdma::Fabric* MakeFabric() {
    rdma::sim::SimFabricOptions options;
    options.num_nodes = 2;
    options.bytes_per_node = uint64_t{64} << 20;
    options.nic = *rdma::sim::FindNicProfile("ideal");
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    return fabric_.get();
  }

  rdma::sim::Simulation simulation_;
  LossPlan plan_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  LossyFabric lossy_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<LargeRow> row_ = std::make_unique<LargeRow>();
  uint64_t round_ = 0;
  uint64_t committed_ = 0;  // the last round that committed
  int skip_ = 0;
};

TEST(LargeDecisionTest, IsMadeUnderOneNameWhateverIsLost) {
  constexpr int kMostSteps = 150;  // of the commit and of the others
  LargeDecision decision;
  int steps = 0;
  while (steps < kMostSteps && decision.CommitWithLoss(steps) && !testing::Test::HasFailure()) ++steps;
  ASSERT_FALSE(testing::Test::HasFailure()) << "loss of step " << steps;
  EXPECT_EQ(steps, kMostSteps);
}

INSTANTIATE_TEST_SUITE_P(All, LossTest,
                         testing::Values(Case{.name = "Memory"}, Case{.name = "NicAtomicsOnly", .coherent = false},
                                         Case{.name = "Durable", .durable = true}),
                         CaseName);

}  // namespace loss_test
}  // namespace gannet::txn
