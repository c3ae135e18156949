// Channel::Measure: what an activity awaited, without the time of the worker's other coroutines.
#include <array>
#include <memory>

#include "base/clock.h"
#include "gtest/gtest.h"
#include "tests/rdma/sim/sim_cluster.h"

namespace gannet::rdma::sim {
namespace activity_test {

constexpr uint64_t kMicro = 1000;
constexpr MethodId kNothing = 60000;

class ActivityTest : public testing::Test {
 protected:
  ActivityTest() {
    cluster_.node(1).Handle(
        kNothing, [](NodeId, std::span<const std::byte>, std::span<std::byte>) { return StatusOr<size_t>(0); });
    EXPECT_TRUE(cluster_.node(1).Serve(1).ok());
  }

  coro::Task<void> Read(uint64_t offset) {
    uint64_t word = 0;
    const Status status = co_await cluster_.channel().Read(SimCluster::At(1, offset), &word, sizeof word);
    EXPECT_TRUE(status.ok()) << status;
  }
  coro::Task<void> ReadTwice(Activity* activity) {
    cluster_.channel().Measure(activity);
    co_await Read(0);
    co_await Read(8);
    cluster_.channel().Measure(nullptr);
  }
  coro::Task<void> CallOnce(Activity* activity) {
    cluster_.channel().Measure(activity);
    const StatusOr<size_t> size = co_await cluster_.channel().Call(1, kNothing, {}, {});
    cluster_.channel().Measure(nullptr);
    EXPECT_TRUE(size.ok()) << size.status();
  }
  // Works on this thread while others wait.
  coro::Task<void> Work() {
    Charge(Cost::kIndexStep, 1250);  // 100 us
    co_return;
  }

  SimCluster cluster_{{}};
};

TEST_F(ActivityTest, CountsPostingsAndTheirTime) {
  Activity alone;
  cluster_.worker().BlockOn(ReadTwice(&alone));
  EXPECT_EQ(alone.postings, 2u);
  EXPECT_EQ(alone.calls, 0u);
  EXPECT_GE(alone.posting_nanos, 2 * kMicro);  // of the ideal NIC
  EXPECT_LE(alone.posting_nanos, 3 * kMicro);
  EXPECT_LE(alone.late_nanos, kMicro);
}

TEST_F(ActivityTest, TheTimeOfOtherCoroutinesIsLateness) {
  Activity activity;
  cluster_.worker().Spawn(ReadTwice(&activity));
  cluster_.worker().Spawn(Work());
  const uint64_t start = NowNanos();
  cluster_.worker().Run();
  EXPECT_GE(NowNanos() - start, 100 * kMicro);
  EXPECT_EQ(activity.postings, 2u);
  EXPECT_LE(activity.posting_nanos, 3 * kMicro);
  EXPECT_GE(activity.late_nanos, 90 * kMicro);
}

TEST_F(ActivityTest, CallsCountApart) {
  Activity activity;
  cluster_.worker().Spawn(CallOnce(&activity));
  cluster_.worker().Spawn(Work());
  cluster_.worker().Run();
  EXPECT_EQ(activity.calls, 1u);
  EXPECT_EQ(activity.postings, 0u);
  EXPECT_EQ(activity.posting_nanos, 0u);
  EXPECT_GE(activity.late_nanos, 90 * kMicro);
}

// Several activities are measured at once, and one coroutine is not: each gets its own awaits.
TEST_F(ActivityTest, BelongsToItsCoroutine) {
  Activity one, other;
  cluster_.worker().Spawn(ReadTwice(&one));
  cluster_.worker().Spawn(Read(16));
  cluster_.worker().Spawn(CallOnce(&other));
  cluster_.worker().Spawn(Read(24));
  cluster_.worker().Run();
  EXPECT_EQ(one.postings, 2u);
  EXPECT_EQ(one.calls, 0u);
  EXPECT_EQ(other.calls, 1u);
  EXPECT_EQ(other.postings, 0u);
}

}  // namespace activity_test
}  // namespace gannet::rdma::sim
