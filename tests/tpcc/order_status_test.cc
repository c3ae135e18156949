#include "tpcc/procedures/order_status.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "tests/tpcc/small_tpcc.h"
#include "tpcc/procedures/new_order.h"

namespace gannet::tpcc {
namespace order_status_test {

class OrderStatusTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    // More customers than names, so that names repeat, as the median needs.
    small_ =
        SmallTpcc::Make({.nodes = GetParam(), .warehouses = 2, .scale = {.items = 50, .customers_per_district = 1200}});
    ASSERT_NE(small_, nullptr);
  }

  Status Run(const OrderStatusInput& input) {
    return small_->session().RunBlocking([&](txn::Transaction& transaction) {
      return OrderStatus(transaction, small_->table(), input, scratch_, &output_);
    });
  }
  // The customer's only order in the population.
  uint32_t InitialOrder(uint32_t w, uint32_t d, uint32_t c) {
    for (uint32_t o = 1; o <= 1200; ++o) {
      if (small_->Read<Order>(tables().order, OrderKey(w, d, o))->c_id == c) return o;
    }
    return 0;
  }
  const Tables& tables() { return small_->table(); }

  std::unique_ptr<SmallTpcc> small_;
  OrderStatusScratch scratch_;
  OrderStatusOutput output_{};
};
INSTANTIATE_TEST_SUITE_P(Nodes, OrderStatusTest, ::testing::Values(1, 2), ::testing::PrintToStringParamName());

TEST_P(OrderStatusTest, ReadsTheLastOrder) {
  const OrderStatusInput input{.w = 2, .d = 3, .customer = {.by_name = false, .last = {}, .c = 77}};
  ASSERT_TRUE(Run(input).ok());
  EXPECT_EQ(output_.c, 77u);
  EXPECT_EQ(+output_.balance, -1000);
  EXPECT_EQ(output_.o_id, InitialOrder(2, 3, 77));
  EXPECT_EQ(output_.line_count, +output_.order.ol_cnt);
  for (uint32_t i = 0; i < output_.line_count; ++i) {
    const auto line = small_->Read<OrderLine>(tables().order_line, OrderLineKey(2, 3, output_.o_id, i + 1));
    EXPECT_EQ(+output_.lines[i].i_id, +line->i_id);
    EXPECT_EQ(+output_.lines[i].delivery.amount, +line->delivery.amount);
  }

  NewOrderInput order{.w = 2, .d = 3, .c = 77, .entry_d = 5, .line_count = 5, .lines = {}};
  for (uint32_t i = 0; i < 5; ++i) order.lines[i] = {.item = 10 + i, .supply_w = 2, .quantity = 1};
  NewOrderScratch scratch;
  NewOrderOutput ordered;
  ASSERT_TRUE(small_->session()
                  .RunBlocking([&](txn::Transaction& transaction) {
                    return NewOrder(transaction, tables(), order, scratch, &ordered);
                  })
                  .ok());
  ASSERT_TRUE(Run(input).ok());
  EXPECT_EQ(output_.o_id, 1201u);
  EXPECT_EQ(+output_.order.entry_d, 5u);
  EXPECT_EQ(+output_.order.carrier_id, 0);
  ASSERT_EQ(output_.line_count, 5u);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(+output_.lines[i].i_id, 10 + i);
}

// The result is compared with the definition, for all customers of the district: sorted by first name, position n/2
// rounded up.
TEST_P(OrderStatusTest, ByNamePicksTheMedian) {
  std::map<std::string, std::vector<std::pair<std::string, uint32_t>>> by_last;
  for (uint32_t c = 1; c <= 1200; ++c) {
    const auto info = small_->Read<CustomerInfo>(tables().customer_info, CustomerKey(1, 6, c));
    ASSERT_TRUE(info);
    by_last[std::string(info->terms.last.view())].emplace_back(info->first.view(), c);
  }
  ASSERT_EQ(by_last.size(), 1000u);
  size_t longest = 0;
  for (auto& [last, customers] : by_last) {
    std::sort(customers.begin(), customers.end());
    longest = std::max(longest, customers.size());
    OrderStatusInput input{.w = 1, .d = 6, .customer = {.by_name = true, .last = {}, .c = 0}};
    input.customer.last.Assign(last);
    ASSERT_TRUE(Run(input).ok());
    ASSERT_EQ(output_.c, customers[(customers.size() + 1) / 2 - 1].second) << last;
    ASSERT_EQ(output_.customer.terms.last.view(), last);
  }
  EXPECT_GE(longest, 3u);
}

TEST_P(OrderStatusTest, UnknownNameIsNotFound) {
  OrderStatusInput input{.w = 1, .d = 1, .customer = {.by_name = true, .last = {}, .c = 0}};
  input.customer.last.Assign("NOBODY");
  EXPECT_TRUE(absl::IsNotFound(Run(input)));
}

}  // namespace order_status_test
}  // namespace gannet::tpcc
