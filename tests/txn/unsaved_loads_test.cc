#include "txn/durable/unsaved_loads.h"

#include "gtest/gtest.h"

namespace gannet::txn {
namespace unsaved_loads_test {

constexpr TableId kTable = 7;

// The walk says so in order that the checkpoint can give up what the end of the wait may depend on.
TEST(UnsavedLoadsTest, AWalkThatMustWaitSaysSoBefore) {
  UnsavedLoads loads;
  int told = 0;
  loads.BeginWalk(kTable, [&] { ++told; });
  loads.EndWalk();
  EXPECT_EQ(told, 0) << "nothing is in its way";
  loads.Hold(kTable);
  loads.BeginWalk(kTable + 1, [&] { ++told; });
  loads.EndWalk();
  EXPECT_EQ(told, 0) << "another table";
  loads.BeginWalk(kTable, [&] {
    ++told;
    loads.Release(kTable);  // without this the walk would wait without end
  });
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(loads.TryHold(kTable));
  loads.EndWalk();
  EXPECT_TRUE(loads.TryHold(kTable));
  loads.Release(kTable);
}

}  // namespace unsaved_loads_test
}  // namespace gannet::txn
