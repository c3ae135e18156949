// The generated inputs: ranges and rates of clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1, 2.8.1.
#include <array>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tpcc/procedures/delivery.h"
#include "tpcc/procedures/new_order.h"
#include "tpcc/procedures/order_status.h"
#include "tpcc/procedures/payment.h"
#include "tpcc/procedures/stock_level.h"

namespace gannet::tpcc {
namespace inputs_test {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

constexpr int kDraws = 50'000;

InputSource Source(uint32_t warehouses) {
  return {.random = Random(7),
          .non_uniform = NonUniform::ForLoad(1),
          .scale = {},
          .warehouses = warehouses,
          .now = 1'700'000'000};
}

// `count` of kDraws must be `percent`, within a fifth of it.
void ExpectRate(int count, double percent) {
  const double rate = 100.0 * count / kDraws;
  EXPECT_THAT(rate, AllOf(Ge(percent * 0.8), Le(percent * 1.2)));
}

TEST(NewOrderInputTest, RangesAndRates) {
  InputSource source = Source(4);
  int rollbacks = 0, remote_lines = 0, lines = 0;
  std::set<uint32_t> counts, districts, supplies;
  for (int i = 0; i < kDraws; ++i) {
    const NewOrderInput input = MakeNewOrderInput(source, 3);
    EXPECT_EQ(input.w, 3u);
    EXPECT_EQ(input.entry_d, source.now);
    ASSERT_THAT(input.c, AllOf(Ge(1u), Le(3000u)));
    counts.insert(input.line_count);
    districts.insert(input.d);
    for (uint32_t j = 0; j < input.line_count; ++j) {
      const NewOrderInput::Line& line = input.lines[j];
      const bool unused = line.item == source.scale.items + 1;
      ASSERT_TRUE(!unused || j == input.line_count - 1) << "only the last item may be unused";
      ASSERT_THAT(line.item, AllOf(Ge(1u), Le(100001u)));
      ASSERT_THAT(line.quantity, AllOf(Ge(1u), Le(10u)));
      rollbacks += unused;
      remote_lines += line.supply_w != 3;
      supplies.insert(line.supply_w);
      ++lines;
    }
  }
  EXPECT_EQ(counts, (std::set<uint32_t>{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(districts, (std::set<uint32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(supplies, (std::set<uint32_t>{1, 2, 3, 4}));
  ExpectRate(rollbacks, 1);
  ExpectRate(remote_lines * kDraws / lines, 1);
}

TEST(NewOrderInputTest, OneWarehouseSuppliesItself) {
  InputSource source = Source(1);
  for (int i = 0; i < 1000; ++i) {
    const NewOrderInput input = MakeNewOrderInput(source, 1);
    for (uint32_t j = 0; j < input.line_count; ++j) ASSERT_EQ(input.lines[j].supply_w, 1u);
  }
}

TEST(PaymentInputTest, RangesAndRates) {
  InputSource source = Source(3);
  PaymentNumbers numbers{.worker = 5, .next = 100};
  int remote = 0, by_name = 0;
  for (int i = 0; i < kDraws; ++i) {
    const PaymentInput input = MakePaymentInput(source, 2, numbers);
    EXPECT_EQ(input.w, 2u);
    ASSERT_EQ(input.number.worker, 5u);
    ASSERT_EQ(input.number.next, 100u + static_cast<uint32_t>(i));
    ASSERT_THAT(input.d, AllOf(Ge(1u), Le(10u)));
    ASSERT_THAT(input.c_d, AllOf(Ge(1u), Le(10u)));
    ASSERT_THAT(input.c_w, AllOf(Ge(1u), Le(3u)));
    ASSERT_THAT(input.amount, AllOf(Ge(100u), Le(500'000u)));
    if (input.c_w == 2) {
      ASSERT_EQ(input.c_d, input.d) << "a local customer pays in his own district";
    }
    remote += input.c_w != 2;
    by_name += input.customer.by_name;
    if (!input.customer.by_name) {
      ASSERT_THAT(input.customer.c, AllOf(Ge(1u), Le(3000u)));
    }
  }
  ExpectRate(remote, 15);
  ExpectRate(by_name, 60);
}

TEST(OrderStatusInputTest, SixtyPercentByName) {
  InputSource source = Source(1);
  int by_name = 0;
  for (int i = 0; i < kDraws; ++i) by_name += MakeOrderStatusInput(source, 1).customer.by_name;
  ExpectRate(by_name, 60);
}

TEST(DeliveryInputTest, AllCarriers) {
  InputSource source = Source(1);
  std::set<int> carriers;
  for (int i = 0; i < 1000; ++i) carriers.insert(MakeDeliveryInput(source, 1).carrier);
  EXPECT_EQ(carriers, (std::set<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(StockLevelInputTest, ThresholdAndDistrict) {
  InputSource source = Source(1);
  std::set<int> thresholds;
  std::set<uint32_t> districts;
  for (int i = 0; i < 2000; ++i) {
    const StockLevelInput input = MakeStockLevelInput(source, 1);
    thresholds.insert(input.threshold);
    districts.insert(input.d);
  }
  EXPECT_EQ(thresholds, (std::set<int>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  EXPECT_EQ(districts.size(), 10u);
  source.terminal_district = 4;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(MakeStockLevelInput(source, 1).d, 4u);
}

TEST(InputSourceTest, OtherWarehousesAreAllButOne) {
  InputSource source = Source(5);
  std::set<uint32_t> others;
  for (int i = 0; i < 1000; ++i) others.insert(source.OtherWarehouse(3));
  EXPECT_EQ(others, (std::set<uint32_t>{1, 2, 4, 5}));
}

TEST(DistinctItemsTest, KeepsFirstAppearances) {
  DistinctItems items;
  for (int round = 0; round < 3; ++round) {
    items.Clear();
    Random random(static_cast<uint64_t>(round));
    std::set<uint32_t> model;
    for (size_t i = 0; i < DistinctItems::kCapacity; ++i) {
      const auto item = static_cast<uint32_t>(random.Between(1, 400));
      items.Add(item);
      model.insert(item);
    }
    std::set<uint32_t> got;
    for (size_t i = 0; i < items.size(); ++i) got.insert(items[i]);
    EXPECT_EQ(got, model);
    EXPECT_EQ(items.size(), model.size());
  }
}

TEST(DistinctItemsTest, HoldsAsManyAsTwentyOrdersHaveLines) {
  DistinctItems items;
  for (uint32_t i = 1; i <= DistinctItems::kCapacity; ++i) items.Add(i * 1024);
  EXPECT_EQ(items.size(), DistinctItems::kCapacity);
}

}  // namespace inputs_test
}  // namespace gannet::tpcc
