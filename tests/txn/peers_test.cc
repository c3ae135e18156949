#include "txn/peers.h"

#include <atomic>

#include "gtest/gtest.h"
#include "rdma/base/thread.h"

namespace gannet::txn {
namespace {

using Phase = Peers::Phase;

bool Admits(Peers* peers, rdma::NodeId node, uint64_t number) {
  const Peers::Stay stay(peers, node, number);
  return stay.admitted();
}

TEST(PeersTest, OnlyWhoHasJoinedIsAdmitted) {
  Peers peers(3, /*self=*/0);
  EXPECT_FALSE(Admits(&peers, 1, 100));
  ASSERT_TRUE(peers.Join(1, 50).ok());
  EXPECT_TRUE(peers.Join(1, 50).ok());
  EXPECT_TRUE(Admits(&peers, 1, 50));
  EXPECT_FALSE(Admits(&peers, 1, 49));
  EXPECT_FALSE(Admits(&peers, 2, 100));
  EXPECT_TRUE(Admits(&peers, 0, 1));
  EXPECT_FALSE(Admits(&peers, 9, 1));
  EXPECT_TRUE(absl::IsInvalidArgument(peers.Join(9, 1)));
}

TEST(PeersTest, NobodyJoinsInThePlaceOfOneThatIsNotRepaired) {
  Peers peers(3, 0);
  ASSERT_TRUE(peers.Join(1, 50).ok());
  EXPECT_TRUE(absl::IsUnavailable(peers.Join(1, 80)));  // which tells that the one before is dead
  EXPECT_EQ(peers.phase(1), Phase::kDying);
  EXPECT_FALSE(Admits(&peers, 1, 60));
  EXPECT_FALSE(Admits(&peers, 1, 90));
  peers.SetForwarded(1);
  EXPECT_TRUE(absl::IsUnavailable(peers.Join(1, 80)));
  peers.SetReleased(1);
  EXPECT_TRUE(peers.Join(1, 80).ok());
  EXPECT_FALSE(Admits(&peers, 1, 60));
  EXPECT_TRUE(Admits(&peers, 1, 90));
  EXPECT_TRUE(absl::IsFailedPrecondition(peers.Join(1, 50)));
}

TEST(PeersTest, WhatOthersSayOfADeathIsTakenUp) {
  Peers peers(3, 0);
  EXPECT_TRUE(peers.IsForwarded(1, 50));  // a stranger decided nothing here
  ASSERT_TRUE(peers.Join(1, 50).ok());
  EXPECT_FALSE(peers.IsForwarded(1, 50));
  EXPECT_EQ(peers.phase(1), Phase::kDying);
  peers.SetForwarded(1);
  EXPECT_TRUE(peers.IsForwarded(1, 50));
  peers.SetReleased(1);
  ASSERT_TRUE(peers.Join(1, 80).ok());
  EXPECT_TRUE(peers.IsForwarded(1, 50));  // of the one before; the new one lives
  EXPECT_TRUE(Admits(&peers, 1, 90));
  peers.NoteDeath(2);
  EXPECT_EQ(peers.phase(2), Phase::kStranger);
}

TEST(PeersTest, AFenceIsForOneIncarnation) {
  Peers peers(2, 0);
  EXPECT_FALSE(peers.Fence(1, 50));
  ASSERT_TRUE(peers.Join(1, 80).ok());
  EXPECT_FALSE(peers.Fence(1, 50));  // late news of the one before
  EXPECT_TRUE(Admits(&peers, 1, 80));
  EXPECT_TRUE(peers.Fence(1, 80));
  EXPECT_FALSE(Admits(&peers, 1, 80));
  EXPECT_EQ(peers.phase(1), Phase::kDying);
}

TEST(PeersTest, RepairWaitsForWhoIsInside) {
  Peers peers(2, 0);
  ASSERT_TRUE(peers.Join(1, 1).ok());
  std::atomic<bool> quiet{false};
  Thread repair;
  {
    const Peers::Stay stay(&peers, 1, 5);
    ASSERT_TRUE(stay.admitted());
    peers.NoteDeath(1);
    repair = Thread("repair", [&] {
      peers.AwaitQuiet(1);
      quiet = true;
    });
    for (int i = 0; i < 100; ++i) YieldThread();
    EXPECT_FALSE(quiet.load());
  }
  repair.join();
  EXPECT_TRUE(quiet.load());
}

}  // namespace
}  // namespace gannet::txn
