// An owner whose record is locked does not wait for it when it is asked: the lock's holder may itself wait for a call
// to that owner.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/versioned.h"
#include "tests/txn/cluster.h"
#include "txn/session/session_internal.h"

namespace gannet::txn {
namespace {

constexpr rdma::NodeId kClient = 0;
constexpr rdma::NodeId kOwner = 1;
constexpr uint64_t kLocked = 1;
constexpr uint64_t kFree = 100;
constexpr int kReads = 20;
// Virtual time. A call takes 4 us; sixteen attempts to read a locked record take less than ten.
constexpr uint64_t kMostNanos = 30'000;

class OwnerWaitTest : public testing::TestWithParam<IndexKind> {
 protected:
  OwnerWaitTest() : simulation_({.seed = 1}) {
    rdma::sim::SimFabricOptions options;
    options.num_nodes = 2;
    options.bytes_per_node = uint64_t{64} << 20;
    options.nic = *rdma::sim::FindNicProfile("cx4-100g");
    fabric_ = *rdma::sim::SimFabric::Create(&simulation_, options);
    const TableOptions table{.name = "rows",
                             .index = GetParam(),
                             .payload_bytes = sizeof(uint64_t),
                             .expected_rows = 10,
                             .placement = {.owner = [](const Key&, int) { return kOwner; },
                                           .range_owner = [](const Key&, const Key&, int) -> int { return kOwner; }}};
    cluster_ = std::make_unique<Cluster>(fabric_.get(),
                                         DatabaseOptions{.read_path = ReadPathPolicy::kCall, .server_threads = 1},
                                         std::vector<TableOptions>{table});
    On(kOwner, [this](Session& session) {
      const Status inserted = RunBlockingBody(session, [&](BlockingTransaction& t) {
        const Status first = t.Insert(rows(kOwner), kLocked, std::as_bytes(std::span(&kLocked, 1)));
        return first.ok() ? t.Insert(rows(kOwner), kFree, std::as_bytes(std::span(&kFree, 1))) : first;
      });
      ASSERT_TRUE(inserted.ok()) << inserted;
    });
  }

  const Table& rows(rdma::NodeId node) { return cluster_->table(node, "rows"); }
  std::byte* RecordOf(uint64_t key) {
    const index::FindResult found = rows(kOwner).local_index().Find(key);
    return cluster_->databases[kOwner]->state().node->memory().data() + found.record.offset();
  }

  // Starts a thread of `node`, with a session.
  template <class Work>
  Runtime::Thread* Start(rdma::NodeId node, Work work) {
    return simulation_.StartOn(node, "work", [this, node, work] {
      auto session = cluster_->databases[node]->OpenSession();
      ASSERT_TRUE(session.ok()) << session.status();
      work(**session);
    });
  }
  template <class Work>
  void On(rdma::NodeId node, Work work) {
    simulation_.Join(Start(node, work));
  }

  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_P(OwnerWaitTest, ARequestForALockedRecordDoesNotHoldUpOthers) {
  std::byte* const record = RecordOf(kLocked);
  StoreWord(record, LoadWord(record) | rdma::kLockBit);
  bool done = false;
  int conflicts = 0;
  Runtime::Thread* const waiting = Start(kClient, [&](Session& session) {
    for (; !done; ++conflicts) {
      uint64_t value = 0;
      Step get(session);
      EXPECT_TRUE(absl::IsAborted(get->Get(rows(kClient), kLocked, std::as_writable_bytes(std::span(&value, 1)))));
      if (GetParam() == IndexKind::kHash) continue;
      Step scan(session);
      ScanRows found;
      EXPECT_TRUE(absl::IsAborted(scan->Scan(rows(kClient), {.from = kLocked, .to = kLocked + 1}, &found)));
    }
  });
  uint64_t longest = 0;
  On(kClient, [&](Session& session) {
    SleepForNanos(100'000);
    for (int i = 0; i < kReads; ++i) {
      const uint64_t begun = simulation_.now();
      uint64_t value = 0;
      Step step(session);
      EXPECT_TRUE(step->Get(rows(kClient), kFree, std::as_writable_bytes(std::span(&value, 1))).ok());
      EXPECT_EQ(value, kFree);
      longest = std::max(longest, simulation_.now() - begun);
    }
  });
  done = true;
  simulation_.Join(waiting);
  EXPECT_GT(conflicts, 0);
  EXPECT_LT(longest, kMostNanos);
  StoreWord(record, LoadWord(record) & ~rdma::kLockBit);
}

INSTANTIATE_TEST_SUITE_P(Indexes, OwnerWaitTest, testing::Values(IndexKind::kHash, IndexKind::kXStore));

}  // namespace
}  // namespace gannet::txn
