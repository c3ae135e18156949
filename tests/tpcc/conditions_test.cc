// The conditions on hand-made facts, and the merge of orders, new orders and order lines.
#include "tpcc/conditions.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::tpcc {
namespace conditions_test {

using ::testing::HasSubstr;

// Two warehouses of ten districts. Each district has customers 1 and 2 and orders 1 to 10 of one line each; 8 to 10 are
// undelivered.
Facts GoodFacts() {
  Facts facts{.scale = {.items = 10, .customers_per_district = 10}, .warehouses = {}};
  facts.warehouses.resize(2);
  for (WarehouseFacts& warehouse : facts.warehouses) {
    warehouse.ytd = 10 * 1000;
    for (DistrictFacts& district : warehouse.districts) {
      district.ytd = 1000;
      district.paid = 1000;
      district.next_o_id = 11;
      district.orders = 10;
      district.max_order = 10;
      district.lines_promised = 10;
      district.order_lines = 10;
      district.new_orders = 3;
      district.min_new_order = 8;
      district.max_new_order = 10;
      district.customers.resize(10);
      for (CustomerFacts& customer : district.customers) {
        customer = {.balance = -40, .ytd_payment = 100, .paid = 100, .delivered = 60};
      }
    }
  }
  return facts;
}

std::set<int> Failing(const Facts& facts) {
  std::set<int> failing;
  const std::vector<ConditionResult> results = EvaluateConditions(facts);
  EXPECT_EQ(results.size(), 12u);
  for (int i = 0; i < kConditions; ++i) {
    EXPECT_EQ(results[i].condition, i + 1);
    EXPECT_FALSE(results[i].detail.empty());
    if (!results[i].holds) failing.insert(i + 1);
  }
  return failing;
}

TEST(ConditionsTest, GoodFactsHold) {
  EXPECT_EQ(Failing(GoodFacts()), std::set<int>{});
}

TEST(ConditionsTest, EachFactIsChecked) {
  auto failing = [](auto change) {
    Facts facts = GoodFacts();
    change(facts.warehouses[1].districts[2], facts.warehouses[1]);
    return Failing(facts);
  };
  using D = DistrictFacts;
  using W = WarehouseFacts;
  EXPECT_EQ(failing([](D&, W& w) { w.ytd += 1; }), (std::set<int>{1, 8}));
  EXPECT_EQ(failing([](D& d, W&) { d.ytd += 1; }), (std::set<int>{1, 9}));
  EXPECT_EQ(failing([](D& d, W&) { d.paid += 1; }), (std::set<int>{8, 9}));
  EXPECT_EQ(failing([](D& d, W&) { d.next_o_id += 1; }), (std::set<int>{2}));
  EXPECT_EQ(failing([](D& d, W&) { d.max_order -= 1; }), (std::set<int>{2}));
  EXPECT_EQ(failing([](D& d, W&) { d.max_new_order -= 1; }), (std::set<int>{2, 3}));
  EXPECT_EQ(failing([](D& d, W&) { d.min_new_order -= 1; }), (std::set<int>{3}));
  EXPECT_EQ(failing([](D& d, W&) { d.order_lines += 1; }), (std::set<int>{4}));
  EXPECT_EQ(failing([](D& d, W&) { d.condition_5 = Offender{.o_id = 3}; }), (std::set<int>{5}));
  EXPECT_EQ(failing([](D& d, W&) { d.condition_6 = Offender{.o_id = 3}; }), (std::set<int>{6}));
  EXPECT_EQ(failing([](D& d, W&) { d.condition_7 = Offender{.o_id = 3}; }), (std::set<int>{7}));
  EXPECT_EQ(failing([](D& d, W&) { d.customers[3].balance += 1; }), (std::set<int>{10, 12}));
  EXPECT_EQ(failing([](D& d, W&) { d.customers[3].paid += 1; }), (std::set<int>{10}));
  EXPECT_EQ(failing([](D& d, W&) { d.delivery_count += 1; }), (std::set<int>{11}));
  EXPECT_EQ(failing([](D& d, W&) { d.orders += 1; }), (std::set<int>{11}));
  EXPECT_EQ(failing([](D& d, W&) { d.customers[3].ytd_payment += 1; }), (std::set<int>{12}));
}

TEST(ConditionsTest, DetailNamesTheFirstOffenderAndBothValues) {
  Facts facts = GoodFacts();
  facts.warehouses[1].districts[2].next_o_id = 15;
  facts.warehouses[1].districts[4].next_o_id = 16;
  facts.warehouses[1].districts[6].condition_7 = Offender{.o_id = 77, .line = 3, .left = 123, .right = 0};
  facts.warehouses[0].districts[9].customers[4].ytd_payment = 101;
  const std::vector<ConditionResult> results = EvaluateConditions(facts);
  EXPECT_EQ(results[1].detail, "district (2, 3): D_NEXT_O_ID - 1 is 14, max(O_ID) is 10");
  EXPECT_THAT(results[6].detail, HasSubstr("district (2, 7): order 77 line 3: OL_DELIVERY_D (0 = null) is 123"));
  EXPECT_EQ(results[11].detail,
            "district (1, 10): customer 5: C_BALANCE + C_YTD_PAYMENT is 61, sum(delivered OL_AMOUNT) is 60");
}

// Conditions 2 and 3 say nothing about NEW_ORDER when a district has delivered everything.
TEST(ConditionsTest, DistrictWithoutNewOrders) {
  Facts facts = GoodFacts();
  DistrictFacts& district = facts.warehouses[0].districts[0];
  district.new_orders = 0;
  district.min_new_order = district.max_new_order = 0;
  district.delivery_count = 3;
  EXPECT_EQ(Failing(facts), std::set<int>{});
}

TEST(ConditionsTest, ConditionElevenHoldsAfterDeliveries) {
  Facts facts = GoodFacts();
  DistrictFacts& district = facts.warehouses[0].districts[0];
  district.new_orders = 1;
  district.min_new_order = 10;
  district.delivery_count = 2;
  EXPECT_EQ(Failing(facts), std::set<int>{});
}

class OrderMergerTest : public ::testing::Test {
 protected:
  OrderMergerTest() { district_.customers.resize(3); }

  struct Line {
    uint32_t o_id;
    uint32_t line;
    OrderLineDelivery delivery;
  };
  void Merge(const std::vector<OrderFacts>& orders, const std::vector<uint32_t>& new_orders,
             const std::vector<Line>& lines) {
    OrderMerger merger(&district_, orders, new_orders);
    for (const Line& line : lines) merger.AddLine(line.o_id, line.line, line.delivery);
    merger.Finish();
  }

  DistrictFacts district_;
  const std::vector<OrderFacts> orders_ = {{.o_id = 1, .c_id = 2, .carrier_id = 4, .ol_cnt = 2},
                                           {.o_id = 2, .c_id = 3, .carrier_id = 5, .ol_cnt = 1},
                                           {.o_id = 4, .c_id = 1, .carrier_id = 0, .ol_cnt = 1}};
  const std::vector<Line> lines_ = {{1, 1, {9, 100}}, {1, 2, {9, 20}}, {2, 1, {9, 3}}, {4, 1, {0, 4000}}};
};

TEST_F(OrderMergerTest, CountsAndSums) {
  Merge(orders_, {4}, lines_);
  EXPECT_EQ(district_.orders, 3u);
  EXPECT_EQ(district_.max_order, 4u);
  EXPECT_EQ(district_.lines_promised, 4u);
  EXPECT_EQ(district_.order_lines, 4u);
  EXPECT_EQ(district_.new_orders, 1u);
  EXPECT_EQ(district_.min_new_order, 4u);
  EXPECT_EQ(district_.max_new_order, 4u);
  EXPECT_EQ(district_.customers[0].delivered, 0);
  EXPECT_EQ(district_.customers[1].delivered, 120);
  EXPECT_EQ(district_.customers[2].delivered, 3);
  EXPECT_FALSE(district_.condition_5 || district_.condition_6 || district_.condition_7);
}

TEST_F(OrderMergerTest, NewOrderOfADeliveredOrderBreaksFive) {
  Merge(orders_, {2, 4}, lines_);
  ASSERT_TRUE(district_.condition_5);
  EXPECT_EQ(district_.condition_5->o_id, 2u);
  EXPECT_EQ(district_.condition_5->left, 5u);
  EXPECT_EQ(district_.condition_5->right, 1u);
}

TEST_F(OrderMergerTest, MissingNewOrderBreaksFive) {
  Merge(orders_, {}, lines_);
  ASSERT_TRUE(district_.condition_5);
  EXPECT_EQ(district_.condition_5->o_id, 4u);
}

TEST_F(OrderMergerTest, MissingLinesBreakSixAtTheFirstAndLastOrder) {
  Merge(orders_, {4}, {{1, 1, {9, 1}}, {2, 1, {9, 3}}});
  ASSERT_TRUE(district_.condition_6);
  EXPECT_EQ(district_.condition_6->o_id, 1u);
  EXPECT_EQ(district_.condition_6->left, 2u);
  EXPECT_EQ(district_.condition_6->right, 1u);
  district_.condition_6.reset();
  Merge(orders_, {4}, {lines_.begin(), lines_.end() - 1});
  ASSERT_TRUE(district_.condition_6);
  EXPECT_EQ(district_.condition_6->o_id, 4u);
}

TEST_F(OrderMergerTest, LineOfNoOrderIsOnlyCounted) {
  std::vector<Line> lines = lines_;
  lines.insert(lines.begin() + 3, {3, 1, {0, 7}});
  lines.push_back({5, 1, {0, 7}});
  Merge(orders_, {4}, lines);
  EXPECT_EQ(district_.order_lines, 6u);
  EXPECT_FALSE(district_.condition_5 || district_.condition_6 || district_.condition_7);
}

TEST_F(OrderMergerTest, DeliveryDateThatDisagreesBreaksSeven) {
  std::vector<Line> lines = lines_;
  lines[1].delivery.delivery_d = 0;
  Merge(orders_, {4}, lines);
  ASSERT_TRUE(district_.condition_7);
  EXPECT_EQ(district_.condition_7->o_id, 1u);
  EXPECT_EQ(district_.condition_7->line, 2u);
  district_.condition_7.reset();
  lines = lines_;
  lines[3].delivery.delivery_d = 8;
  Merge(orders_, {4}, lines);
  ASSERT_TRUE(district_.condition_7);
  EXPECT_EQ(district_.condition_7->o_id, 4u);
  EXPECT_EQ(district_.condition_7->left, 8u);
}

}  // namespace conditions_test
}  // namespace gannet::tpcc
