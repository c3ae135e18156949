#include "index/lock_word.h"

#include "gtest/gtest.h"

namespace gannet::index {
namespace lock_word_test {

TEST(LockWordTest, LockingNamesTheOwnerAndKeepsVersionAndAbsence) {
  const uint64_t free = 12345 | kAbsentBit;
  const uint64_t locked = Locked(free, OwnerBits(0x7abc, 0x55));
  EXPECT_TRUE(IsLocked(locked));
  EXPECT_FALSE(IsLocked(free));
  EXPECT_TRUE(IsAbsent(locked));
  EXPECT_EQ(VersionOf(locked), 12345u);
  EXPECT_EQ(LockOwnerNode(locked), 0x7abc);
  EXPECT_EQ(LockOwnerChannel(locked), 0x55);
}

TEST(LockWordTest, NextStateIsUnlockedAndOneNewer) {
  const uint64_t locked = Locked(41, OwnerBits(3, 9));
  EXPECT_EQ(NextState(locked, false), 42u);
  EXPECT_EQ(NextState(locked, true), 42u | kAbsentBit);
  EXPECT_EQ(NextState(kVersionMask, false), 0u);  // wraps within its bits
}

TEST(LockWordTest, ABusyLineCountsAsLocked) {
  EXPECT_TRUE(IsLocked(rdma::kLineBusy));
}

}  // namespace lock_word_test
}  // namespace gannet::index
