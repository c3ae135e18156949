#include "rdma/global_address.h"

#include "gtest/gtest.h"

namespace gannet::rdma {
namespace global_address_test {

TEST(GlobalAddress, KeepsItsParts) {
  const GlobalAddress address(kMaxNodes - 1, GlobalAddress::kOffsetMask);
  EXPECT_EQ(address.node(), kMaxNodes - 1);
  EXPECT_EQ(address.offset(), GlobalAddress::kOffsetMask);
  EXPECT_FALSE(address.marked());
  EXPECT_EQ(GlobalAddress::FromBits(address.bits()), address);
}

TEST(GlobalAddress, AMarkChangesNothingButItself) {
  const GlobalAddress address(3, 4096);
  const GlobalAddress marked = address.WithMark(true);
  EXPECT_TRUE(marked.marked());
  EXPECT_EQ(marked.node(), 3);
  EXPECT_EQ(marked.offset(), 4096u);
  EXPECT_NE(marked, address);
  EXPECT_EQ(marked.WithMark(false), address);
}

TEST(GlobalAddress, NullIsNullMarkedOrNot) {
  EXPECT_TRUE(GlobalAddress().is_null());
  EXPECT_TRUE(GlobalAddress().WithMark(true).is_null());
  EXPECT_FALSE(GlobalAddress(0, 8).is_null());
  EXPECT_FALSE(GlobalAddress(1, 0).is_null());
}

TEST(GlobalAddress, PointsFurtherOn) {
  EXPECT_EQ(GlobalAddress(2, 64) + 64, GlobalAddress(2, 128));
}

TEST(GlobalAddress, PrintsNodeAndOffset) {
  EXPECT_EQ(GlobalAddress(2, 4096).ToString(), "2:0x1000");
}

}  // namespace global_address_test
}  // namespace gannet::rdma
