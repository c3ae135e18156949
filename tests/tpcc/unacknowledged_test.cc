#include "tpcc/unacknowledged.h"

#include <vector>

#include "gtest/gtest.h"

namespace gannet::tpcc {
namespace unacknowledged_test {

TEST(Unacknowledged, TellsInOrderWhatIsDurableAndNothingElse) {
  Unacknowledged results;
  for (const uint64_t epoch : {3, 3, 5, 4, 6}) results.Add({.durable_at = epoch, .begun_nanos = results.size()});
  std::vector<uint64_t> told;
  const auto tell = [&](const Result& result) { told.push_back(result.begun_nanos); };
  EXPECT_EQ(results.TakeDurable(2, tell), 0u);
  EXPECT_EQ(results.TakeDurable(3, tell), 2u);
  EXPECT_EQ(results.next_epoch(), 5u);
  EXPECT_EQ(results.TakeDurable(4, tell), 0u);  // the fourth waits behind the third
  EXPECT_EQ(results.TakeDurable(5, tell), 2u);
  EXPECT_EQ(results.TakeDurable(100, tell), 1u);
  EXPECT_TRUE(results.empty());
  EXPECT_EQ(told, (std::vector<uint64_t>{0, 1, 2, 3, 4}));
}

}  // namespace unacknowledged_test
}  // namespace gannet::tpcc
