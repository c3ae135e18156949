#include "tpcc/procedures/delivery.h"

#include <array>

#include "gtest/gtest.h"
#include "tests/tpcc/small_tpcc.h"

namespace gannet::tpcc {
namespace delivery_test {

constexpr Date kDelivered = 1'700'000'000;

// Orders 22 to 30 of every district are undelivered.
class DeliveryTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    small_ = SmallTpcc::Make({.nodes = GetParam()});
    ASSERT_NE(small_, nullptr);
  }

  // Delivers in warehouse 2, which with two nodes is on the other node.
  Status Run(const std::array<uint32_t, kDistricts>& first_to_look_at = {}) {
    const DeliveryInput input{.w = 2, .carrier = 6, .delivery_d = kDelivered, .first_to_look_at = first_to_look_at};
    return small_->session().RunBlocking([&](txn::Transaction& transaction) {
      return Delivery(transaction, small_->table(), input, scratch_, &output_);
    });
  }
  const Tables& tables() { return small_->table(); }

  std::unique_ptr<SmallTpcc> small_;
  DeliveryScratch scratch_;
  DeliveryOutput output_{};
};
INSTANTIATE_TEST_SUITE_P(Nodes, DeliveryTest, ::testing::Values(1, 2), ::testing::PrintToStringParamName());

TEST_P(DeliveryTest, DeliversTheOldestOfEveryDistrict) {
  for (const uint32_t oldest : {22u, 23u, 24u}) {
    ASSERT_TRUE(Run().ok());
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      EXPECT_EQ(output_.orders[d - 1], oldest);
      EXPECT_FALSE(small_->Exists(tables().new_order, OrderKey(2, d, oldest)));
      EXPECT_TRUE(small_->Exists(tables().new_order, OrderKey(2, d, oldest + 1)));
      EXPECT_TRUE(small_->Exists(tables().new_order, OrderKey(1, d, oldest))) << "another warehouse's";
    }
  }
  EXPECT_EQ(small_->FailingConditions(), std::set<int>{});
}

TEST_P(DeliveryTest, LooksFromWhereItIsTold) {
  std::array<uint32_t, kDistricts> from;
  for (const uint32_t oldest : {22u, 23u, 24u}) {
    from.fill(oldest);
    from[3] = 0;
    ASSERT_TRUE(Run(from).ok());
    for (uint32_t d = 1; d <= kDistricts; ++d) EXPECT_EQ(output_.orders[d - 1], oldest);
  }
  from.fill(31);  // beyond the last order
  ASSERT_TRUE(Run(from).ok());
  for (uint32_t d = 1; d <= kDistricts; ++d) EXPECT_EQ(output_.orders[d - 1], 0u);
  EXPECT_EQ(small_->FailingConditions(), std::set<int>{});
}

TEST_P(DeliveryTest, UpdatesOrderLinesAndCustomer) {
  ASSERT_TRUE(Run().ok());
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    const auto order = small_->Read<Order>(tables().order, OrderKey(2, d, 22));
    EXPECT_EQ(+order->carrier_id, 6);
    EXPECT_EQ(+order->entry_d, SmallTpcc::kLoadDate) << "the rest of the row stays";
    Cents sum = 0;
    for (uint32_t line = 1; line <= order->ol_cnt; ++line) {
      const auto row = small_->Read<OrderLine>(tables().order_line, OrderLineKey(2, d, 22, line));
      EXPECT_EQ(+row->delivery.delivery_d, kDelivered);
      EXPECT_EQ(+row->quantity, 5);
      sum += row->delivery.amount;
    }
    EXPECT_GT(sum, 0);
    const auto customer = small_->Read<Customer>(tables().customer, CustomerKey(2, d, order->c_id));
    EXPECT_EQ(+customer->balance, -1000 + sum);
    EXPECT_EQ(+customer->delivery_cnt, 1u);
    EXPECT_EQ(+customer->payment_cnt, 1u);
    EXPECT_EQ(+small_->Read<Order>(tables().order, OrderKey(2, d, 23))->carrier_id, 0);
  }
}

TEST_P(DeliveryTest, SkipsEmptyDistricts) {
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Run().ok());
  // One order waits in each district; that of district 4 is removed.
  ASSERT_TRUE(small_->Remove(tables().new_order, OrderKey(2, 4, 30)).ok());
  ASSERT_TRUE(Run().ok());
  for (uint32_t d = 1; d <= kDistricts; ++d) EXPECT_EQ(output_.orders[d - 1], d == 4 ? 0u : 30u);
  ASSERT_TRUE(Run().ok()) << "nothing is left, and that is no error";
  for (uint32_t d = 1; d <= kDistricts; ++d) EXPECT_EQ(output_.orders[d - 1], 0u);
  EXPECT_EQ(+small_->Read<Order>(tables().order, OrderKey(2, 4, 30))->carrier_id, 0);
}

}  // namespace delivery_test
}  // namespace gannet::tpcc
