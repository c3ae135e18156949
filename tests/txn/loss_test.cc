// One completion is lost, at every step of a commit in turn, done or not, while all nodes live on: the data is all or
// nothing as the status says, no lock stays, and later transactions succeed.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "log/file/faulty_file_system.h"
#include "rdma/base/clock.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/cluster.h"
#include "tests/txn/lossy_fabric.h"
#include "txn/session_internal.h"

namespace gannet::txn {
namespace {

constexpr int kNodes = 3;
constexpr uint64_t kStays = 0;       // first of one key per node
constexpr uint64_t kComesAt = 1000;  // and of each round: one of two is inserted, the other removed
constexpr uint64_t kNeverThere = 5000;
constexpr uint64_t kCutNanos = 50'000'000;  // longer than call_timeout, and what a closing session waits
constexpr uint64_t kSettleNanos = 30'000'000;

Placement ByNumber() {
  return {.owner =
              [](const index::Key& key, int n) {
                return static_cast<rdma::NodeId>(
                    (key.kind() == index::KeyKind::kInteger ? key.integer() : static_cast<uint64_t>(key.bytes()[0])) %
                    static_cast<uint64_t>(n));
              },
          .range_owner = [](const index::Key&, const index::Key&, int) { return Placement::kSeveralNodes; }};
}

struct Case {
  std::string name;
  bool coherent = true;  // if not, own records are locked by verbs, too
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
      options.files = std::make_shared<log::FaultyFileSystem>(3);
      options.log_segment_bytes = uint64_t{1} << 20;
      options.log_buffer_bytes = size_t{256} << 10;
    }
    const std::vector<TableOptions> tables = {
        {.name = "points", .payload_bytes = sizeof(Account), .expected_rows = 100, .placement = ByNumber()},
        {.name = "small", .payload_bytes = sizeof(uint64_t), .expected_rows = 100, .placement = ByNumber()},
        {.name = "ordered", .index = IndexKind::kXStore, .payload_bytes = sizeof(uint64_t), .placement = ByNumber()},
        {.name = "text",
         .key_kind = index::KeyKind::kBytes,
         .max_key_bytes = 8,
         .payload_bytes = 4000,
         .variable_length = true,
         .expected_rows = 100,
         .placement = ByNumber()}};
    cluster_ = std::make_unique<Cluster>(&lossy_, options, tables);
    coordinator_ = &cluster_->NewSession(0);
    other_ = &cluster_->NewSession(1);
    const Status loaded = RunBlockingBody(*other_, [&](BlockingTransaction& t) -> Status {
      for (uint64_t node = 0; node < kNodes; ++node) {
        if (Status s = t.Insert(Of(1, "points"), kStays + node, Account{}); !s.ok()) return s;
        if (Status s = t.Insert(Of(1, "small"), kStays + node, uint64_t{0}); !s.ok()) return s;
        if (Status s = t.Insert(Of(1, "ordered"), kComesAt + node, uint64_t{0}); !s.ok()) return s;
        if (Status s = t.Insert(Of(1, "text"), TextKey(node), Text(0)); !s.ok()) return s;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(loaded.ok()) << loaded;
  }
  ~LossTest() override {
    cluster_.reset();
    fabric_.reset();
  }

  rdma::Fabric* MakeFabric() {
    rdma::sim::SimFabricOptions options;
    options.num_nodes = kNodes;
    options.bytes_per_node = uint64_t{64} << 20;
    options.nic = *rdma::sim::FindNicProfile("ideal");
    options.nic.cpu_coherent_atomics = GetParam().coherent;
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    return fabric_.get();
  }

  const Table& Of(int node, const std::string& name) { return cluster_->table(node, name); }
  static std::string_view TextKey(uint64_t node) {
    static constexpr std::array<std::string_view, kNodes> kKeys = {"c", "a", "b"};
    return kKeys[node];
  }
  // Sizes that need another block each round.
  std::span<const std::byte> Text(uint64_t round) {
    text_.assign(round % 2 == 0 ? 24 : 1500, static_cast<std::byte>(round));
    return text_;
  }

  // Everything there is, from the state of round - 1 to that of `round`.
  Status Write(BlockingTransaction& t, int from, uint64_t round) {
    const auto balance = static_cast<int64_t>(round);
    for (uint64_t node = 0; node < kNodes; ++node) {
      if (Status s = t.Update(Of(from, "points"), kStays + node, Account{.balance = balance}); !s.ok()) return s;
      if (Status s = t.Update(Of(from, "small"), kStays + node, round); !s.ok()) return s;
      const uint64_t goes = kComesAt + (round - 1) % 2 * kNodes + node;
      const uint64_t comes = kComesAt + round % 2 * kNodes + node;
      uint64_t nothing = 0;
      if (const Status s = t.Get(Of(from, "ordered"), kNeverThere + node, &nothing); !absl::IsNotFound(s)) return s;
      if (Status s = t.Remove(Of(from, "ordered"), goes); !s.ok()) return s;
      if (Status s = t.Insert(Of(from, "ordered"), comes, round); !s.ok()) return s;
      if (Status s = t.transaction().session().worker().BlockOn(Resize(t.transaction(), from, node, round)); !s.ok()) {
        return s;
      }
    }
    return absl::OkStatus();
  }
  coro::Task<Status> Resize(Transaction& t, int from, uint64_t node, uint64_t round) {
    const Table& table = Of(from, "text");
    StatusOr<RecordHandle> handle = co_await t.GetForUpdate(table, TextKey(node), std::span<std::byte>());
    if (!handle.ok()) co_return handle.status();
    co_return t.Update(*handle, Text(round), 0, /*resize=*/true);
  }

  // Which round's state all data is in.
  Status ReadRound(BlockingTransaction& t, int from, uint64_t* round) {
    if (Status s = t.Get(Of(from, "small"), kStays, round); !s.ok()) return s;
    for (uint64_t node = 0; node < kNodes; ++node) {
      Account account;
      uint64_t small = 0;
      uint64_t came = 0;
      std::byte letter{};
      if (Status s = t.Get(Of(from, "points"), kStays + node, &account); !s.ok()) return s;
      if (Status s = t.Get(Of(from, "small"), kStays + node, &small); !s.ok()) return s;
      const Status gone = t.Get(Of(from, "ordered"), kComesAt + (*round + 1) % 2 * kNodes + node, &came);
      if (!absl::IsNotFound(gone)) return gone.ok() ? absl::DataLossError("a removed key is there") : gone;
      if (Status s = t.Get(Of(from, "ordered"), kComesAt + *round % 2 * kNodes + node, &came); !s.ok()) return s;
      if (Status s = t.Get(Of(from, "text"), TextKey(node), {&letter, 1}); !s.ok()) return s;
      if (account.balance != static_cast<int64_t>(*round) || small != *round || came != *round ||
          letter != static_cast<std::byte>(*round)) {
        return absl::DataLossError("half a transaction");
      }
    }
    return absl::OkStatus();
  }
  uint64_t ExpectWhole() {
    uint64_t round = 0;
    const Status read =
        RunBlockingBody(*other_, [&](BlockingTransaction& t) { return ReadRound(t, /*from=*/1, &round); });
    EXPECT_TRUE(read.ok()) << read;
    return round;
  }

  // One transaction whose commit loses submission number `skip`. False if it makes fewer.
  bool CommitWithLoss(int skip, Loss loss) {
    const uint64_t before = ExpectWhole();
    Status status;
    {
      Step step(*coordinator_);
      const Status written = Write(*step.operator->(), /*from=*/0, before + 1);
      EXPECT_TRUE(written.ok()) << written;
      plan_ = {.channel = &coordinator_->channel(), .skip = skip, .loss = loss};
      status = step.Commit();
    }
    coordinator_->worker().BlockOn(coordinator_->worker().Sleep(NowNanos() + kSettleNanos));
    const bool fired = plan_.fired;
    plan_ = {};
    EXPECT_TRUE(coordinator_->state().debts.empty());
    const uint64_t after = ExpectWhole();
    if (status.ok()) {
      EXPECT_EQ(after, before + 1);
    } else {
      EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
      EXPECT_EQ(after, before) << status;
    }
    EXPECT_TRUE(fired || status.ok()) << status;
    // Both sessions can change all of it: nothing is locked.
    for (const int node : {1, 0}) {
      const Status next = RunBlockingBody(node == 0 ? *coordinator_ : *other_,
                                          [&](BlockingTransaction& t) { return Write(t, node, ExpectedNext()); });
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
  // The round after the present one, looked up once per transaction.
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
  std::vector<std::byte> text_;
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

// What is left when a session is closed is settled first.
TEST_P(LossTest, ASessionThatClosesSettlesItsDebts) {
  for (int skip = 0;; ++skip) {
    std::unique_ptr<Session> session = cluster_->databases[0]->OpenSession().value();
    bool fired = false;
    {
      Step step(*session);
      const uint64_t next = ExpectWhole() + 1;
      ASSERT_TRUE(Write(*step.operator->(), 0, next).ok());
      plan_ = {.channel = &session->channel(), .skip = skip, .loss = Loss::kDone};
      const Status status = step.Commit();
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
      fired = plan_.fired;
      plan_ = {};
    }
    session.reset();
    round_ = 0;
    const Status next = RunBlockingBody(*other_, [&](BlockingTransaction& t) { return Write(t, 1, ExpectedNext()); });
    ASSERT_TRUE(next.ok()) << next << " after the loss of step " << skip;
    round_ = 0;
    if (!fired) break;
  }
}

// The links between two nodes are cut in the middle of a commit, for longer than anybody waits, and the session is
// closed meanwhile: the next one with its channel takes its debts over.
TEST_P(LossTest, DebtsOutliveTheSessionWhileALinkIsCut) {
  int unknown = 0;
  for (int skip = 0;; ++skip) {
    std::unique_ptr<Session> session = cluster_->databases[0]->OpenSession().value();
    const uint64_t before = ExpectWhole();
    Status status;
    bool fired = false;
    {
      Step step(*session);
      ASSERT_TRUE(Write(*step.operator->(), 0, before + 1).ok());
      plan_ = {.channel = &session->channel(), .skip = skip, .loss = Loss::kDone, .when_fired = [this] { CutLinks(); }};
      status = step.Commit();
      fired = plan_.fired;
      plan_ = {};
    }
    session.reset();
    session = cluster_->databases[0]->OpenSession().value();
    session->worker().BlockOn(session->state().debts.AwaitAll(NowNanos() + 2 * kCutNanos));
    EXPECT_TRUE(session->state().debts.empty());
    session->worker().BlockOn(session->worker().Sleep(NowNanos() + kCutNanos));  // if there were none
    const bool committed = status.ok() || absl::IsUnknown(status);
    EXPECT_TRUE(committed || absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
    ASSERT_EQ(ExpectWhole(), committed ? before + 1 : before) << status << " after step " << skip;
    unknown += absl::IsUnknown(status) ? 1 : 0;
    if (!fired) break;
  }
  // With a log a commit waits for as long as it takes, within its epoch.
  EXPECT_EQ(unknown > 0, !GetParam().durable);
}

INSTANTIATE_TEST_SUITE_P(All, LossTest,
                         testing::Values(Case{.name = "Memory"}, Case{.name = "NicAtomicsOnly", .coherent = false},
                                         Case{.name = "Durable", .durable = true}),
                         CaseName);

}  // namespace
}  // namespace gannet::txn
