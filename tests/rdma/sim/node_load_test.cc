// The load that nodes announce, where virtual time makes it exact.
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "gtest/gtest.h"
#include "rdma/epoch.h"
#include "rdma/slab.h"
#include "tests/rdma/sim/sim_cluster.h"

namespace gannet::rdma::sim {
namespace node_load_test {

constexpr uint64_t kMilli = 1'000'000;
constexpr MethodId kWork = 60000;
constexpr MethodId kAnswerMuch = 60001;
constexpr size_t kMuch = 64 << 10;

// Two nodes with epoch managers. Node 1 serves calls that take about 10 us of a thread.
class AnnouncedLoadTest : public testing::Test {
 protected:
  explicit AnnouncedLoadTest(int server_threads = 2) : cluster_({.nic = "cx5-100g"}) {
    for (NodeId id = 0; id < 2; ++id) {
      slabs_.push_back(std::make_unique<SlabAllocator>(&cluster_.node(id)));
      epochs_.push_back(EpochManager::Create(&cluster_.fabric(), &cluster_.node(id), slabs_.back().get()).value());
    }
    cluster_.node(1).Handle(kWork, [](NodeId, std::span<const std::byte>, std::span<std::byte>) {
      Charge(Cost::kIndexStep, 125);
      return StatusOr<size_t>(0);
    });
    cluster_.node(1).Handle(
        kAnswerMuch, [](NodeId, std::span<const std::byte>, std::span<std::byte>) { return StatusOr<size_t>(kMuch); });
    EXPECT_TRUE(cluster_.node(1).Serve(server_threads).ok());
    for (auto& epochs : epochs_) EXPECT_TRUE(epochs->Start().ok());
  }
  ~AnnouncedLoadTest() override {
    for (auto& epochs : epochs_) epochs->Stop();
    epochs_.clear();
  }

  // Calls one after the other until virtual time `until`.
  coro::Task<void> CallUntil(uint64_t until, MethodId method) {
    std::vector<std::byte> response(kMuch);
    while (cluster_.now() < until) {
      const StatusOr<size_t> size = co_await cluster_.channel().Call(1, method, {}, response);
      EXPECT_TRUE(size.ok()) << size.status();
      if (!size.ok()) co_return;
    }
  }
  void CallFor(uint64_t nanos, MethodId method) {
    cluster_.worker().BlockOn(CallUntil(cluster_.now() + nanos, method));
  }

  SimCluster cluster_;
  std::vector<std::unique_ptr<SlabAllocator>> slabs_;
  std::vector<std::unique_ptr<EpochManager>> epochs_;
};

TEST_F(AnnouncedLoadTest, IsThatOfTheThreadsForCalls) {
  EXPECT_FALSE(epochs_[0]->LoadOf(1).known());
  SleepForNanos(20 * kMilli);
  ASSERT_TRUE(epochs_[0]->LoadOf(1).known());
  EXPECT_EQ(epochs_[0]->LoadOf(1).servers, 0u);
  CallFor(20 * kMilli, kWork);
  // One call after the other keeps one of two threads busy for most of the time: 10.4 of about 13 us.
  EXPECT_GT(epochs_[0]->LoadOf(1).servers, 350u);
  EXPECT_LT(epochs_[0]->LoadOf(1).servers, 450u);
  EXPECT_EQ(epochs_[0]->LoadOf(0).servers, 0u);
  SleepForNanos(20 * kMilli);
  EXPECT_EQ(epochs_[0]->LoadOf(1).servers, 0u);
  EXPECT_EQ(epochs_[1]->LoadOf(1).servers, 0u);
}

TEST_F(AnnouncedLoadTest, HasTheShareOfTheLink) {
  CallFor(20 * kMilli, kAnswerMuch);
  const NodeLoad load = epochs_[0]->LoadOf(1);
  EXPECT_EQ(load.link_megabytes_per_second, static_cast<uint32_t>(FindNicProfile("cx5-100g")->bandwidth / 1e6));
  EXPECT_GT(load.link, 300u);  // 64 KiB take 5.2 us of the link, and a call about 10 us
  SleepForNanos(20 * kMilli);
  EXPECT_LT(epochs_[0]->LoadOf(1).link, 20u);  // the READs of the epochs
}

TEST_F(AnnouncedLoadTest, NewNumbersComeEveryFewMilliseconds) {
  SleepForNanos(20 * kMilli);
  uint32_t last = epochs_[0]->LoadOf(1).number;
  int news = 0;
  for (int i = 0; i < 100; ++i) {
    SleepForNanos(kMilli);
    const uint32_t number = epochs_[0]->LoadOf(1).number;
    news += number != last ? 1 : 0;
    last = number;
  }
  EXPECT_GE(news, 10);
  EXPECT_LE(news, 25);
}

TEST_F(AnnouncedLoadTest, OfADeadNodeIsNotKnown) {
  SleepForNanos(20 * kMilli);
  ASSERT_TRUE(epochs_[0]->LoadOf(1).known());
  cluster_.fabric().Kill(1);
  SleepForNanos(20 * kMilli);
  EXPECT_FALSE(epochs_[0]->LoadOf(1).known());
}

}  // namespace node_load_test
}  // namespace gannet::rdma::sim
