#include <string>

#include "cli/tpcc/result.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace tpcc_text_test {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TpccTextTest, TellsDeliveriesThatSkippedDistrictsIfTheyWereMany) {
  TpccResult result;
  result.options.ordered_index = index::IndexKind::kXStore;
  result.run.emplace().procedures[static_cast<size_t>(tpcc::Procedure::kDelivery)].committed = 200;
  result.run->skipped_deliveries = 2;
  result.run->skipped_districts = 5;
  EXPECT_THAT(ToText(result, {}), Not(HasSubstr("clause 2.7.4.2")));
  result.run->skipped_deliveries = 3;
  EXPECT_THAT(ToText(result, {}), HasSubstr("3 of 200 deliveries skipped 5 districts without an order"));
}

}  // namespace tpcc_text_test
}  // namespace gannet::cli
