#include "txn/peer/peers.h"

#include <atomic>

#include "base/thread.h"
#include "gtest/gtest.h"

namespace gannet::txn {
namespace peers_test {

using Phase = Peers::Phase;

using Verdict = Peers::Verdict;

constexpr uint64_t kConnection = 7;

Status Join(Peers* peers, rdma::NodeId node, uint64_t incarnation, uint64_t connection = kConnection) {
  return peers->Join(node, incarnation, incarnation, connection);
}

bool Admits(Peers* peers, rdma::NodeId node, uint64_t number) {
  const Peers::Stay stay(peers, node, number);
  return stay.admitted();
}

TEST(PeersTest, OnlyWhoHasJoinedIsAdmitted) {
  Peers peers(3, /*self=*/0);
  EXPECT_FALSE(Admits(&peers, 1, 100));
  ASSERT_TRUE(Join(&peers, 1, 50).ok());
  EXPECT_TRUE(Join(&peers, 1, 50).ok());
  EXPECT_TRUE(Admits(&peers, 1, 50));
  EXPECT_FALSE(Admits(&peers, 1, 49));
  EXPECT_FALSE(Admits(&peers, 2, 100));
  EXPECT_TRUE(Admits(&peers, 0, 1));
  EXPECT_FALSE(Admits(&peers, 9, 1));
  EXPECT_TRUE(absl::IsInvalidArgument(Join(&peers, 9, 1)));
}

TEST(PeersTest, NobodyJoinsInThePlaceOfOneThatIsNotRepaired) {
  Peers peers(3, 0);
  ASSERT_TRUE(Join(&peers, 1, 50).ok());
  EXPECT_TRUE(absl::IsUnavailable(Join(&peers, 1, 80)));  // this shows that the earlier one is dead
  EXPECT_EQ(peers.phase(1), Phase::kDying);
  EXPECT_FALSE(Admits(&peers, 1, 60));
  EXPECT_FALSE(Admits(&peers, 1, 90));
  peers.SetForwarded(1);
  EXPECT_TRUE(absl::IsUnavailable(Join(&peers, 1, 80)));
  peers.SetReleased(1);
  EXPECT_TRUE(Join(&peers, 1, 80).ok());
  EXPECT_FALSE(Admits(&peers, 1, 60));
  EXPECT_TRUE(Admits(&peers, 1, 90));
  EXPECT_TRUE(absl::IsFailedPrecondition(Join(&peers, 1, 50)));
}

// The join of a dead process waited for a thread until the repair was over.
TEST(PeersTest, AJoinThatComesAfterTheSuccessorsAnnouncementIsRefused) {
  Peers peers(3, 0);
  ASSERT_TRUE(Join(&peers, 1, 100).ok());
  peers.NoteDeath(1);
  peers.SetForwarded(1);
  peers.SetReleased(1);
  ASSERT_TRUE(peers.Announce(1, 200).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Join(&peers, 1, 100)));
  EXPECT_EQ(peers.phase(1), Phase::kStranger);
  EXPECT_FALSE(Admits(&peers, 1, 101));
  ASSERT_TRUE(Join(&peers, 1, 200).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Join(&peers, 1, 100)));
  EXPECT_TRUE(Admits(&peers, 1, 201));
}

TEST(PeersDeathTest, WhatALivingNodeHoldsIsNotReleased) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Peers peers(3, 0);
  ASSERT_TRUE(Join(&peers, 1, 50).ok());
  EXPECT_DEATH(peers.SetForwarded(1), "node 1 is forwarded in phase 1");
  peers.NoteDeath(1);
  EXPECT_DEATH(peers.SetReleased(1), "node 1 is released in phase 3");
}

TEST(PeersTest, WhatOthersSayOfADeathIsTakenUp) {
  Peers peers(3, 0);
  EXPECT_TRUE(peers.IsForwarded(1, 50));  // a stranger decided nothing here
  ASSERT_TRUE(Join(&peers, 1, 50).ok());
  EXPECT_FALSE(peers.IsForwarded(1, 50));
  EXPECT_EQ(peers.phase(1), Phase::kAccused);  // it may live, and continue to write here
  EXPECT_FALSE(Admits(&peers, 1, 60));
  EXPECT_TRUE(absl::IsUnavailable(Join(&peers, 1, 50)));
  EXPECT_FALSE(peers.IsForwarded(1, 50));
  peers.NoteDeath(1);
  EXPECT_EQ(peers.phase(1), Phase::kDying);
  peers.SetForwarded(1);
  EXPECT_TRUE(peers.IsForwarded(1, 50));
  peers.SetReleased(1);
  ASSERT_TRUE(Join(&peers, 1, 80).ok());
  EXPECT_TRUE(peers.IsForwarded(1, 50));  // the earlier one; the new one lives
  EXPECT_TRUE(Admits(&peers, 1, 90));
  peers.NoteDeath(2);
  EXPECT_EQ(peers.phase(2), Phase::kStranger);
}

TEST(PeersTest, AFenceIsForOneIncarnation) {
  Peers peers(2, 0);
  EXPECT_EQ(peers.Fence(1, 50), Verdict::kUnknown);
  ASSERT_TRUE(Join(&peers, 1, 80).ok());
  EXPECT_EQ(peers.Fence(1, 50), Verdict::kUnknown);  // late news of the earlier one
  EXPECT_TRUE(Admits(&peers, 1, 80));
  EXPECT_EQ(peers.Fence(1, 80), Verdict::kNotYet);
  EXPECT_FALSE(Admits(&peers, 1, 80));
  EXPECT_EQ(peers.phase(1), Phase::kAccused);
  peers.NoteDeath(1);
  EXPECT_EQ(peers.Fence(1, 80), Verdict::kFenced);
}

TEST(PeersTest, AJoinIsGoodForOneConnection) {
  Peers peers(2, 0);
  ASSERT_TRUE(peers.Join(1, 50, 60, kConnection).ok());
  EXPECT_FALSE(Admits(&peers, 1, 59));  // from before the join
  EXPECT_TRUE(Admits(&peers, 1, 60));
  EXPECT_TRUE(Admits(&peers, 1, Peers::kUnnumbered));
  ASSERT_TRUE(peers.Join(1, 50, 70, kConnection).ok());
  EXPECT_TRUE(Admits(&peers, 1, 60));  // it joined again; its requests in progress continue
  EXPECT_FALSE(peers.IsLost(1, kConnection));
  EXPECT_TRUE(peers.IsLost(1, kConnection + 1));
  EXPECT_TRUE(absl::IsUnavailable(peers.Join(1, 50, 70, kConnection + 1)));
  EXPECT_EQ(peers.phase(1), Phase::kDying);
  peers.SetForwarded(1);
  peers.SetReleased(1);
  EXPECT_TRUE(absl::IsUnavailable(peers.Join(1, 50, 70, 0)));
  ASSERT_TRUE(peers.Join(1, 50, 70, kConnection + 1).ok());
  EXPECT_FALSE(Admits(&peers, 1, 65));
  EXPECT_TRUE(Admits(&peers, 1, 70));
}

TEST(PeersTest, WhoOnlyAnnouncesItselfHoldsNothingButProvesThatItsPredecessorIsDead) {
  Peers peers(3, 0);
  EXPECT_TRUE(peers.Announce(1, 50).ok());
  EXPECT_EQ(peers.phase(1), Phase::kStranger);
  EXPECT_FALSE(Admits(&peers, 1, 60));
  EXPECT_TRUE(peers.IsForwarded(1, 50));
  EXPECT_EQ(peers.phase(1), Phase::kStranger);  // no node is cut off because of that
  ASSERT_TRUE(Join(&peers, 1, 50).ok());
  EXPECT_TRUE(peers.Announce(1, 50).ok());
  EXPECT_TRUE(absl::IsUnavailable(peers.Announce(1, 80)));
  EXPECT_EQ(peers.phase(1), Phase::kDying);
}

TEST(PeersTest, ANewerIncarnationProvesThatTheAccusedOneIsGone) {
  Peers peers(2, 0);
  ASSERT_TRUE(Join(&peers, 1, 50).ok());
  EXPECT_FALSE(peers.IsForwarded(1, 50));
  EXPECT_TRUE(absl::IsUnavailable(Join(&peers, 1, 80)));
  EXPECT_EQ(peers.phase(1), Phase::kDying);
}

TEST(PeersTest, RepairWaitsForWhoIsInside) {
  Peers peers(2, 0);
  ASSERT_TRUE(Join(&peers, 1, 1).ok());
  std::atomic<bool> quiet{false};
  Thread repair;
  {
    const Peers::Stay stay(&peers, 1, 5);
    ASSERT_TRUE(stay.admitted());
    peers.NoteDeath(1);
    repair = Thread("repair", [&] {
      while (!peers.IsQuiet(1)) YieldThread();
      quiet = true;
    });
    for (int i = 0; i < 100; ++i) YieldThread();
    EXPECT_FALSE(quiet.load());
  }
  repair.join();
  EXPECT_TRUE(quiet.load());
}

bool NoteConnection(Peers* peers, rdma::NodeId node, uint64_t connection, uint64_t now) {
  return peers->NoteConnection(
      node, [&] { return connection; }, now);
}

TEST(PeersTest, EachConnectionThatEndsIsNotedOnce) {
  Peers peers(3, 0);
  EXPECT_FALSE(NoteConnection(&peers, 1, 0, 10));  // it has never been there
  EXPECT_FALSE(NoteConnection(&peers, 1, 5, 20));
  EXPECT_FALSE(NoteConnection(&peers, 1, 5, 30));
  EXPECT_EQ(peers.lost_at(1), 0u);
  EXPECT_TRUE(NoteConnection(&peers, 1, 0, 40));
  EXPECT_FALSE(NoteConnection(&peers, 1, 0, 50));
  EXPECT_EQ(peers.lost_at(1), 40u);
  EXPECT_FALSE(NoteConnection(&peers, 1, 6, 60));
  EXPECT_TRUE(NoteConnection(&peers, 1, 7, 70));  // it was lost, and is back
  EXPECT_EQ(peers.lost_at(1), 0u);
}

TEST(PeersTest, TheLossOfANodeThatJoinedBetweenTwoLooksIsNoted) {
  Peers peers(3, 0);
  EXPECT_FALSE(NoteConnection(&peers, 1, 0, 10));
  ASSERT_TRUE(Join(&peers, 1, 50).ok());
  EXPECT_EQ(peers.lost_at(1), 0u);
  EXPECT_TRUE(NoteConnection(&peers, 1, 0, 20));
  EXPECT_FALSE(NoteConnection(&peers, 2, 5, 30));
  ASSERT_TRUE(Join(&peers, 2, 50, /*connection=*/6).ok());  // 5 has been lost
  EXPECT_TRUE(NoteConnection(&peers, 2, 6, 40));
  EXPECT_FALSE(NoteConnection(&peers, 2, 6, 50));
}

}  // namespace peers_test
}  // namespace gannet::txn
