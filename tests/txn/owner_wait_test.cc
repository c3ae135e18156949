// An owner whose record is locked does not wait for it when it is asked: the lock's holder may itself wait for a call
// to that owner.
#include <algorithm>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "rdma/versioned.h"
#include "tests/txn/simulated_cluster.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace owner_wait_test {

constexpr rdma::NodeId kClient = 0;
constexpr rdma::NodeId kOwner = 1;
constexpr uint64_t kLocked = 1;
constexpr uint64_t kFree = 100;
constexpr int kReads = 20;
// Virtual time. A call takes 4 us; sixteen attempts to read a locked record take less than ten.
constexpr uint64_t kMostNanos = 30'000;

class OwnerWaitTest : public testing::TestWithParam<IndexKind> {
 protected:
  OwnerWaitTest()
      : cluster_(2, {.seed = 1}, {.read_path = ReadPathPolicy::kCall, .server_threads = 1},
                 {{.name = "rows",
                   .index = GetParam(),
                   .payload_bytes = sizeof(uint64_t),
                   .expected_rows = 10,
                   .placement = {.owner = [](const Key&, int) { return kOwner; },
                                 .range_owner = [](const Key&, const Key&, int) -> int { return kOwner; }}}}) {
    cluster_.On(kOwner, [this](Session& session) {
      const Status inserted = RunBlockingBody(session, [&](BlockingTransaction& t) {
        const Status first = t.Insert(rows(kOwner), kLocked, std::as_bytes(std::span(&kLocked, 1)));
        return first.ok() ? t.Insert(rows(kOwner), kFree, std::as_bytes(std::span(&kFree, 1))) : first;
      });
      ASSERT_TRUE(inserted.ok()) << inserted;
    });
  }

  const Table& rows(rdma::NodeId node) { return cluster_.table(node, "rows"); }
  std::byte* RecordOf(uint64_t key) {
    const index::FindResult found = rows(kOwner).local_index().Find(key);
    return cluster_.database(kOwner).state().node->memory().data() + found.record.offset();
  }

  SimulatedCluster cluster_;
};

TEST_P(OwnerWaitTest, ARequestForALockedRecordDoesNotHoldUpOthers) {
  std::byte* const record = RecordOf(kLocked);
  StoreWord(record, LoadWord(record) | rdma::kLockBit);
  bool done = false;
  int conflicts = 0;
  Runtime::Thread* const waiting = cluster_.Start(kClient, [&](Session& session) {
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
  cluster_.On(kClient, [&](Session& session) {
    SleepForNanos(100'000);
    for (int i = 0; i < kReads; ++i) {
      const uint64_t begun = cluster_.simulation().now();
      uint64_t value = 0;
      Step step(session);
      EXPECT_TRUE(step->Get(rows(kClient), kFree, std::as_writable_bytes(std::span(&value, 1))).ok());
      EXPECT_EQ(value, kFree);
      longest = std::max(longest, cluster_.simulation().now() - begun);
    }
  });
  done = true;
  cluster_.simulation().Join(waiting);
  EXPECT_GT(conflicts, 0);
  EXPECT_LT(longest, kMostNanos);
  StoreWord(record, LoadWord(record) & ~rdma::kLockBit);
}

INSTANTIATE_TEST_SUITE_P(Indexes, OwnerWaitTest, testing::Values(IndexKind::kHash, IndexKind::kXStore));

}  // namespace owner_wait_test
}  // namespace gannet::txn
