#include "tpcc/procedures/stock_level.h"

#include "gtest/gtest.h"
#include "tests/tpcc/small_tpcc.h"

namespace gannet::tpcc {
namespace stock_level_test {

class StockLevelTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    small_ =
        SmallTpcc::Make({.nodes = GetParam(), .warehouses = 2, .scale = {.items = 60, .customers_per_district = 30}});
    ASSERT_NE(small_, nullptr);
  }

  Status Run(uint32_t w, uint32_t d, int32_t threshold) {
    const StockLevelInput input{.w = w, .d = d, .threshold = threshold};
    return small_->session().RunBlocking([&](txn::Transaction& transaction) {
      return StockLevel(transaction, small_->table(), input, scratch_, &output_);
    });
  }
  // The items of orders [first, last].
  std::set<uint32_t> Items(uint32_t w, uint32_t d, uint32_t first, uint32_t last) {
    std::set<uint32_t> items;
    for (const uint64_t key :
         small_->Keys(tables().order_line, OrderLineKey(w, d, first, 0), OrderLineKey(w, d, last, 0xff))) {
      items.insert(small_->Read<OrderLine>(tables().order_line, key)->i_id);
    }
    return items;
  }
  uint32_t CountBelow(uint32_t w, const std::set<uint32_t>& items, int32_t threshold) {
    uint32_t count = 0;
    for (const uint32_t i : items) count += small_->Read<Stock>(tables().stock, StockKey(w, i))->quantity < threshold;
    return count;
  }
  const Tables& tables() { return small_->table(); }

  std::unique_ptr<SmallTpcc> small_;
  StockLevelScratch scratch_;
  StockLevelOutput output_{};
};
INSTANTIATE_TEST_SUITE_P(Nodes, StockLevelTest, ::testing::Values(1, 2), ::testing::PrintToStringParamName());

TEST_P(StockLevelTest, CountsDistinctItemsOfTheLastTwentyOrders) {
  for (uint32_t w = 1; w <= 2; ++w) {
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      const std::set<uint32_t> items = Items(w, d, 11, 30);
      for (const int32_t threshold : {10, 20, 50, 101}) {
        ASSERT_TRUE(Run(w, d, threshold).ok());
        EXPECT_EQ(output_.distinct_items, items.size());
        EXPECT_EQ(output_.low_stock, CountBelow(w, items, threshold));
      }
      EXPECT_EQ(output_.low_stock, items.size()) << "every stock is below 101";
    }
  }
}

TEST_P(StockLevelTest, FewerThanTwentyOrders) {
  District district = *small_->Read<District>(tables().district, DistrictKey(1, 1));
  for (const uint32_t next : {6u, 1u}) {
    district.next_o_id = next;
    ASSERT_TRUE(small_->Write(tables().district, DistrictKey(1, 1), district).ok());
    ASSERT_TRUE(Run(1, 1, 101).ok());
    EXPECT_EQ(output_.low_stock, next == 1 ? 0 : Items(1, 1, 1, next - 1).size());
  }
}

}  // namespace stock_level_test
}  // namespace gannet::tpcc
