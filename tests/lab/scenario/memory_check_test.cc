// Memory without an owner is found; and a coordinator that dies leaves none, at any step of a commit that reserves
// memory with more than one call.
#include "lab/scenario/memory_check.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "index/record_header.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/cluster.h"
#include "tests/txn/lossy_fabric.h"
#include "txn/run/database_state.h"

namespace gannet::scenario {
namespace memory_check_test {

constexpr rdma::NodeId kCoordinator = 0;
constexpr rdma::NodeId kOwner = 1;
constexpr size_t kShort = 24;
constexpr size_t kLong = 60'000;  // two of them fit a message, three do not
constexpr std::array<std::string_view, 3> kKeys = {"a", "b", "c"};

// Two nodes; the second one owns all rows.
class Rack {
 public:
  Rack() : simulation_({.seed = 1}), lossy_(MakeFabric(), &plan_) {
    const txn::TableOptions texts{
        .name = "texts",
        .key_kind = index::KeyKind::kBytes,
        .max_key_bytes = 8,
        .payload_bytes = kLong,
        .variable_length = true,
        .expected_rows = 10,
        .placement = {.owner = [](const index::Key&, int) { return kOwner; },
                      .range_owner = [](const index::Key&, const index::Key&, int) -> int { return kOwner; }}};
    const txn::DatabaseOptions options{.read_path = txn::ReadPathPolicy::kOneSided,
                                       .call_timeout = absl::Milliseconds(10)};
    cluster_ = std::make_unique<txn::Cluster>(&lossy_, options, std::vector<txn::TableOptions>{texts});
    On(kOwner, [&](txn::Session& session) {
      const StatusOr<int64_t> bytes = UnaccountedBytes(owner());
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      at_first_ = *bytes;
      Put(session, "loads", kShort);
    });
  }
  ~Rack() {
    if (dead_) static_cast<void>(cluster_->databases[kCoordinator].release());  // leaked, because the node died
  }

  txn::Database& owner() { return *cluster_->databases[kOwner]; }

  // Runs `work` on a thread of `node`, with a session.
  template <class Work>
  void On(rdma::NodeId node, Work work) {
    simulation_.Join(simulation_.StartOn(node, "work", [&] {
      auto session = cluster_->databases[node]->OpenSession();
      ASSERT_TRUE(session.ok()) << session.status();
      work(**session);
    }));
  }

  // The coordinator makes all rows long, and dies `nanos` after it has begun step `step` of that commit. Returns false
  // if there are fewer steps.
  bool DieInCommit(int step, uint64_t nanos) {
    dead_ = true;
    On(kCoordinator, [&](txn::Session& session) {
      txn::Step transaction(session);
      Write(transaction, session, kLong);
      plan_ = {.channel = &session.channel(), .skip = step, .loss = txn::Loss::kNothing, .when_fired = [&, nanos] {
                 simulation_.At(simulation_.now() + nanos, [this] { fabric_->Kill(kCoordinator); });
               }};
      const Status status = transaction.Commit();
      EXPECT_TRUE(status.ok()) << status;
      SleepForNanos(10'000'000);
    });
    return plan_.fired;
  }

  Status MemoryOfOwner() {
    SleepForNanos(60'000'000);  // by then the dead node's locks and memory have been repaired
    Status status;
    On(kOwner, [&](txn::Session&) { status = CheckMemory(owner(), at_first_); });
    return status;
  }

 private:
  void Put(txn::Session& session, const std::string& what, size_t bytes) {
    const txn::Table& table = *session.database().FindTable("texts");
    const std::vector<std::byte> text(bytes, std::byte{1});
    const Status status = txn::RunBlockingBody(session, [&](txn::BlockingTransaction& t) -> Status {
      for (const std::string_view key : kKeys) GANNET_RETURN_IF_ERROR(t.Insert(table, key, std::span(text)));
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << what << ": " << status;
  }

  coro::Task<Status> Resize(txn::Transaction& t, const txn::Table& table, std::string_view key, size_t bytes) {
    const std::vector<std::byte> text(bytes, std::byte{2});
    StatusOr<txn::RecordHandle> handle = co_await t.GetForUpdate(table, key, std::span<std::byte>(), 0);
    if (!handle.ok()) co_return handle.status();
    co_return t.Update(*handle, text);
  }

  void Write(txn::Step& transaction, txn::Session& session, size_t bytes) {
    const txn::Table& table = *session.database().FindTable("texts");
    for (const std::string_view key : kKeys) {
      const Status status = session.worker().BlockOn(Resize(transaction.transaction(), table, key, bytes));
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  rdma::Fabric* MakeFabric() {
    rdma::sim::SimFabricOptions options;
    options.num_nodes = 2;
    options.bytes_per_node = uint64_t{64} << 20;
    options.nic = *rdma::sim::FindNicProfile("cx4-100g");
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    return fabric_.get();
  }

  rdma::sim::Simulation simulation_;
  txn::LossPlan plan_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  txn::LossyFabric lossy_;
  std::unique_ptr<txn::Cluster> cluster_;
  int64_t at_first_ = 0;
  bool dead_ = false;
};

TEST(MemoryCheckTest, ABlockThatNobodyOwnsIsLost) {
  Rack rack;
  EXPECT_TRUE(rack.MemoryOfOwner().ok()) << rack.MemoryOfOwner();
  {
    rdma::SlabCache cache(rack.owner().state().slab.get());
    ASSERT_TRUE(cache.Allocate(300).ok());
  }
  const Status status = rack.MemoryOfOwner();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_NE(status.message().find("lost"), absl::string_view::npos) << status;
}

TEST(MemoryCheckTest, ARecordThatIsFreeIsUsedTwice) {
  Rack rack;
  txn::DatabaseState& state = rack.owner().state();
  std::vector<rdma::GlobalAddress> records;
  rack.On(kOwner, [&](txn::Session&) {
    index::WalkPosition position;
    const index::IndexService::Guard guard(state.indexes.get());
    (*state.tables.begin())->local_index().Walk(&position, &records);
  });
  ASSERT_FALSE(records.empty());
  {
    rdma::SlabCache cache(state.slab.get());
    cache.Free(state.node->memory().data() + records[0].offset(), index::RecordBytes(kKeys[0].size(), kShort));
  }
  const Status status = rack.MemoryOfOwner();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_NE(status.message().find("twice"), absl::string_view::npos) << status;
}

TEST(MemoryCheckTest, ACoordinatorThatDiesLeavesNothing) {
  for (const uint64_t nanos : {0, 700, 1'300, 8'000, 30'000}) {
    int step = 0;
    for (bool more = true; more; ++step) {
      Rack rack;
      more = rack.DieInCommit(step, nanos);
      if (!more) break;
      const Status status = rack.MemoryOfOwner();
      EXPECT_TRUE(status.ok()) << nanos << " ns after step " << step << ": " << status;
    }
    EXPECT_GE(step, 4);  // locks, two prepares, the decision
  }
}

}  // namespace memory_check_test
}  // namespace gannet::scenario
