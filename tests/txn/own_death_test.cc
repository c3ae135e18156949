// A node dies at any verb or call of a transaction that one of its threads runs, as far as the fabric is concerned: the
// thread itself goes on. Or the other node dies. Each Run ends after a bounded number of further verbs and calls.
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/relay.h"
#include "tests/index/kinds.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace own_death_test {

// More than any commit of these tests takes, with all its repetitions of what failed.
constexpr int kMostAfterDeath = 2000;

// Used by one thread, that of `channel`. Other threads look at `channel` only, which changes while no channel is used.
struct DeathPlan {
  std::atomic<const rdma::Channel*> channel = nullptr;
  int left = 0;  // postings and calls until the death
  std::function<void()> kill;
  int after = 0;  // postings and calls since then
  bool is_dead() const { return left < 0; }
};

class DyingChannel final : public rdma::RelayChannel {
 public:
  DyingChannel(std::unique_ptr<rdma::Channel> inner, std::byte* memory, const rdma::Capabilities& capabilities,
               DeathPlan* plan)
      : rdma::RelayChannel(std::move(inner), memory, capabilities), plan_(plan) {}

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    if (!Goes(completion)) return true;
    return Complete(Relay(operations), completion);
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    if (!Goes(completion)) return true;
    return Complete(RelayCall(call, completion), completion);
  }

 private:
  bool Goes(rdma::Completion* completion) {
    if (plan_->channel.load(std::memory_order_relaxed) != this) return true;
    if (!plan_->is_dead() && plan_->left-- == 0) plan_->kill();
    if (!plan_->is_dead() || ++plan_->after <= kMostAfterDeath) return true;
    // Ends a thread that would go on without end, so that the test can say so.
    completion->status = absl::PermissionDeniedError("the test ends a transaction that goes on without end");
    return false;
  }
  coro::Task<Status> Relay(std::span<rdma::Operation> operations) { co_return co_await inner().Post(operations); }
  coro::Task<Status> RelayCall(rdma::CallRequest call, rdma::Completion* completion) {
    const StatusOr<size_t> bytes =
        co_await inner().Call(call.node, call.method, call.request, call.response, call.timeout, call.connection);
    if (bytes.ok()) completion->response_bytes = *bytes;
    co_return bytes.status();
  }

  DeathPlan* plan_;
};

struct Case {
  IndexKind kind;
  rdma::NodeId victim;  // the thread works at node 1
};

class OwnDeathTest : public testing::TestWithParam<Case> {
 protected:
  static constexpr rdma::NodeId kWorker = 1;
  static constexpr uint64_t kRows = 64;

  static Placement Spread() {
    return {.owner = [](const index::Key& key, int n) { return static_cast<rdma::NodeId>(key.integer() % n); },
            .range_owner = [](const index::Key&, const index::Key&, int) { return Placement::kSeveralNodes; }};
  }

  // What one transaction does on both nodes. A few inserts go by verbs, where clients may; many need calls.
  static coro::Task<Status> Change(Transaction& t, const Table& rows, uint64_t inserts) {
    Account account;
    for (const uint64_t key : {uint64_t{4}, uint64_t{5}}) {
      const StatusOr<RecordHandle> handle = co_await t.GetForUpdate(rows, key, &account);
      GANNET_CO_RETURN_IF_ERROR(handle.status());
      ++account.balance;
      GANNET_CO_RETURN_IF_ERROR(t.Update(*handle, account));
    }
    for (const uint64_t key : {uint64_t{8}, uint64_t{9}}) {
      const Status removed = co_await t.Remove(rows, key);
      GANNET_CO_RETURN_IF_ERROR(removed);
    }
    for (uint64_t key = kRows; key < kRows + inserts; ++key) GANNET_CO_RETURN_IF_ERROR(t.Insert(rows, key, account));
    co_return absl::OkStatus();
  }

  // Lets the victim die before the n-th posting or call of a transaction. False: it has no more than n.
  bool DieAt(int n, uint64_t inserts) {
    DeathPlan plan;
    rdma::TestFabric made = rdma::MakeShmTestFabric({.num_nodes = 2, .bytes_per_node = uint64_t{32} << 20});
    const rdma::Capabilities& capabilities = made.fabric->capabilities();
    rdma::RelayFabric fabric(made.fabric.get(), capabilities,
                             [&](std::unique_ptr<rdma::Channel> channel, std::byte* memory) {
                               return std::make_unique<DyingChannel>(std::move(channel), memory, capabilities, &plan);
                             });
    Cluster cluster(&fabric, {.read_path = ReadPathPolicy::kOneSided, .call_timeout = absl::Milliseconds(200)},
                    {{.name = "rows",
                      .index = GetParam().kind,
                      .payload_bytes = sizeof(Account),
                      .expected_rows = 1000,
                      .placement = Spread()}});
    const Table& rows = cluster.table(kWorker, "rows");
    Session& session = cluster.NewSession(kWorker);
    const Status loaded = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < kRows; ++key) GANNET_RETURN_IF_ERROR(t.Insert(rows, key, Account{.balance = 1}));
      return absl::OkStatus();
    });
    EXPECT_TRUE(loaded.ok()) << loaded;
    plan.left = n;
    plan.kill = [&] { made.kill(GetParam().victim); };
    plan.channel = &session.channel();
    const Status status = session.RunBlocking([&](Transaction& t) { return Change(t, rows, inserts); });
    plan.channel = nullptr;
    EXPECT_LE(plan.after, kMostAfterDeath) << status;
    if (plan.is_dead()) {
      EXPECT_TRUE(status.ok() || absl::IsUnavailable(status) || absl::IsUnknown(status)) << status;
    } else {
      EXPECT_TRUE(status.ok()) << status;
    }
    return plan.is_dead();
  }
};

TEST_P(OwnDeathTest, EveryRunEnds) {
  for (const uint64_t inserts : {2, 6, 40}) {
    int n = 0;
    while (DieAt(n, inserts)) {
      ASSERT_FALSE(HasFailure()) << inserts << " inserts, death before posting " << n;
      ++n;
    }
    EXPECT_GT(n, 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OwnDeathTest, testing::ValuesIn([] {
                           std::vector<Case> all;
                           for (const rdma::NodeId victim : {0, 1}) {
                             for (const IndexKind kind : index::KindsOfPoints()) {
                               all.push_back({kind, victim});
                             }
                           }
                           return all;
                         }()),
                         [](const auto& test) {
                           return std::string(index::EntryOf(test.param.kind).name) +
                                  (test.param.victim == 1 ? "OfTheWorker" : "OfTheOther");
                         });

}  // namespace own_death_test
}  // namespace gannet::txn
