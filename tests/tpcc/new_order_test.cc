#include "tpcc/procedures/new_order.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "index/registry.h"
#include "log/file/simulated/faulty_file_system.h"
#include "tests/index/kinds.h"
#include "tests/tpcc/small_tpcc.h"

namespace gannet::tpcc {
namespace new_order_test {

// Tests new orders with one node, and with the second warehouse on another node.
class NewOrderTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    small_ = SmallTpcc::Make({.nodes = GetParam()});
    ASSERT_NE(small_, nullptr);
  }

  // Customer 4 of district (1, 2): items 5, 7 (from warehouse 2), and 5 again.
  static NewOrderInput ThreeLines() {
    NewOrderInput input{.w = 1, .d = 2, .c = 4, .entry_d = 1'700'000'000, .line_count = 3, .lines = {}};
    input.lines[0] = {.item = 5, .supply_w = 1, .quantity = 4};
    input.lines[1] = {.item = 7, .supply_w = 2, .quantity = 10};
    input.lines[2] = {.item = 5, .supply_w = 1, .quantity = 3};
    return input;
  }

  Status Run(const NewOrderInput& input) {
    return small_->session().RunBlocking([&](txn::Transaction& transaction) {
      return NewOrder(transaction, small_->table(), input, scratch_, &output_);
    });
  }

  Stock StockOf(uint32_t w, uint32_t item) { return *small_->Read<Stock>(tables().stock, StockKey(w, item)); }
  void SetQuantity(uint32_t w, uint32_t item, int32_t quantity) {
    Stock stock = StockOf(w, item);
    stock.quantity = quantity;
    ASSERT_TRUE(small_->Write(tables().stock, StockKey(w, item), stock).ok());
  }
  const Tables& tables() { return small_->table(); }

  std::unique_ptr<SmallTpcc> small_;
  NewOrderScratch scratch_;
  NewOrderOutput output_{};
};
INSTANTIATE_TEST_SUITE_P(Nodes, NewOrderTest, ::testing::Values(1, 2), ::testing::PrintToStringParamName());

TEST_P(NewOrderTest, InsertsOrderAndLines) {
  const NewOrderInput input = ThreeLines();
  ASSERT_TRUE(Run(input).ok());
  EXPECT_EQ(output_.o_id, 31u);
  EXPECT_EQ(+small_->Read<District>(tables().district, DistrictKey(1, 2))->next_o_id, 32u);
  const auto order = small_->Read<Order>(tables().order, OrderKey(1, 2, 31));
  ASSERT_TRUE(order);
  EXPECT_EQ(+order->c_id, 4u);
  EXPECT_EQ(+order->entry_d, 1'700'000'000u);
  EXPECT_EQ(+order->carrier_id, 0);
  EXPECT_EQ(+order->ol_cnt, 3);
  EXPECT_EQ(+order->all_local, 0);
  EXPECT_TRUE(small_->Exists(tables().new_order, OrderKey(1, 2, 31)));
  EXPECT_TRUE(small_->Exists(tables().order_by_customer, OrderByCustomerKey(1, 2, 4, 31)));
  for (uint32_t i = 0; i < 3; ++i) {
    const auto line = small_->Read<OrderLine>(tables().order_line, OrderLineKey(1, 2, 31, i + 1));
    ASSERT_TRUE(line) << i;
    const auto item = small_->Read<Item>(tables().item, ItemKey(input.lines[i].item));
    const auto info =
        small_->Read<StockInfo>(tables().stock_info, StockKey(input.lines[i].supply_w, input.lines[i].item));
    EXPECT_EQ(+line->i_id, input.lines[i].item);
    EXPECT_EQ(+line->delivery.delivery_d, 0u);
    EXPECT_EQ(+line->delivery.amount, item->price * input.lines[i].quantity);
    EXPECT_EQ(+line->supply_w_id, input.lines[i].supply_w);
    EXPECT_EQ(+line->quantity, input.lines[i].quantity);
    EXPECT_EQ(line->dist_info, info->dist[1]);
    EXPECT_EQ(output_.lines[i].item_name, item->name);
    EXPECT_EQ(output_.lines[i].price, item->price);
    EXPECT_EQ(+output_.lines[i].amount, +line->delivery.amount);
  }
  EXPECT_FALSE(small_->Exists(tables().order_line, OrderLineKey(1, 2, 31, 4)));
  EXPECT_EQ(small_->FailingConditions(), std::set<int>{});
}

TEST_P(NewOrderTest, TakesFromStock) {
  SetQuantity(1, 5, 21);
  SetQuantity(2, 7, 19);
  ASSERT_TRUE(Run(ThreeLines()).ok());
  const Stock twice = StockOf(1, 5);
  EXPECT_EQ(+twice.quantity, 21 - 4 - 3);
  EXPECT_EQ(+twice.ytd, 7u);
  EXPECT_EQ(twice.order_cnt, 2u);
  EXPECT_EQ(twice.remote_cnt, 0u);
  const Stock remote = StockOf(2, 7);
  EXPECT_EQ(+remote.quantity, 19 - 10 + 91) << "9 is restocked";
  EXPECT_EQ(+remote.ytd, 10u);
  EXPECT_EQ(remote.order_cnt, 1u);
  EXPECT_EQ(remote.remote_cnt, 1u);
  EXPECT_EQ(output_.lines[0].stock_quantity, 17);
  EXPECT_EQ(output_.lines[1].stock_quantity, 100);
  EXPECT_EQ(output_.lines[2].stock_quantity, 14);
}

TEST_P(NewOrderTest, TenLeftIsNotRestocked) {
  SetQuantity(1, 5, 17);
  ASSERT_TRUE(Run(ThreeLines()).ok());
  EXPECT_EQ(StockOf(1, 5).quantity, 10);
}

TEST_P(NewOrderTest, OutputHasTermsAndTotal) {
  ASSERT_TRUE(Run(ThreeLines()).ok());
  const auto warehouse = small_->Read<Warehouse>(tables().warehouse, WarehouseKey(1));
  const auto district = small_->Read<District>(tables().district, DistrictKey(1, 2));
  const auto customer = small_->Read<CustomerInfo>(tables().customer_info, CustomerKey(1, 2, 4));
  EXPECT_EQ(output_.last, customer->terms.last);
  EXPECT_EQ(output_.bad_credit, customer->terms.bad_credit != 0);
  EXPECT_EQ(output_.discount, customer->terms.discount);
  EXPECT_EQ(output_.w_tax, warehouse->tax);
  EXPECT_EQ(output_.d_tax, district->tax);
  double sum = 0;
  for (uint32_t i = 0; i < 3; ++i) sum += static_cast<double>(output_.lines[i].amount);
  const double total = sum * (1 - output_.discount / 10000.0) * (1 + (output_.w_tax + output_.d_tax) / 10000.0);
  EXPECT_NEAR(static_cast<double>(output_.total), total, 0.51);
}

// B only if both I_DATA and S_DATA have "ORIGINAL".
TEST_P(NewOrderTest, BrandGeneric) {
  uint32_t original = 0, other = 0;
  for (uint32_t i = 1; i <= tables().scale.items; ++i) {
    (IsOriginal(small_->Read<Item>(tables().item, ItemKey(i))->data) ? original : other) = i;
  }
  ASSERT_NE(original, 0u);
  ASSERT_NE(other, 0u);
  for (const bool stock_original : {false, true}) {
    for (const uint32_t item : {original, other}) {
      auto info = small_->Read<StockInfo>(tables().stock_info, StockKey(1, item));
      info->data.Assign(stock_original ? "an ORIGINAL in the middle of it" : "nothing of that kind in here");
      ASSERT_TRUE(small_->Write(tables().stock_info, StockKey(1, item), *info).ok());
    }
    NewOrderInput input = ThreeLines();
    input.lines[0].item = input.lines[2].item = original;
    input.lines[1] = {.item = other, .supply_w = 1, .quantity = 1};
    ASSERT_TRUE(Run(input).ok());
    EXPECT_EQ(output_.lines[0].brand_generic, stock_original ? 'B' : 'G');
    EXPECT_EQ(output_.lines[1].brand_generic, 'G');
    EXPECT_EQ(output_.lines[2].brand_generic, stock_original ? 'B' : 'G');
  }
}

TEST_P(NewOrderTest, AllLocalIsSet) {
  NewOrderInput input = ThreeLines();
  input.lines[1].supply_w = 1;
  ASSERT_TRUE(Run(input).ok());
  EXPECT_EQ(+small_->Read<Order>(tables().order, OrderKey(1, 2, 31))->all_local, 1);
}

TEST_P(NewOrderTest, RollbackLeavesNoTrace) {
  const Stock before = StockOf(1, 5), remote_before = StockOf(2, 7);
  NewOrderInput input = ThreeLines();
  input.lines[2].item = tables().scale.items + 1;
  const Status status = Run(input);
  EXPECT_TRUE(IsRolledBack(status)) << status;
  EXPECT_EQ(output_.o_id, 31u) << "the order was made before it was rolled back";
  EXPECT_EQ(+small_->Read<District>(tables().district, DistrictKey(1, 2))->next_o_id, 31u);
  EXPECT_FALSE(small_->Exists(tables().order, OrderKey(1, 2, 31)));
  EXPECT_FALSE(small_->Exists(tables().new_order, OrderKey(1, 2, 31)));
  EXPECT_FALSE(small_->Exists(tables().order_by_customer, OrderByCustomerKey(1, 2, 4, 31)));
  EXPECT_TRUE(small_->Keys(tables().order_line, OrderLineKey(1, 2, 31, 0), OrderLineKey(1, 2, 31, 0xff)).empty());
  EXPECT_EQ(StockOf(1, 5).quantity, +before.quantity);
  EXPECT_EQ(StockOf(1, 5).order_cnt, before.order_cnt);
  EXPECT_EQ(StockOf(2, 7).quantity, +remote_before.quantity);
  EXPECT_EQ(small_->FailingConditions(), std::set<int>{});
  ASSERT_TRUE(Run(ThreeLines()).ok());
  EXPECT_EQ(output_.o_id, 31u);
}

TEST_P(NewOrderTest, MissingRowIsNamed) {
  NewOrderInput input = ThreeLines();
  input.c = 31;
  const Status status = Run(input);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(std::string(status.message()).find("customer_info"), std::string::npos) << status;
}

TEST_P(NewOrderTest, GeneratedInputsRun) {
  InputSource source{.random = Random(5),
                     .non_uniform = NonUniform::ForLoad(1),
                     .scale = tables().scale,
                     .warehouses = 2,
                     .now = 1'700'000'000};
  uint32_t committed = 0;
  for (int i = 0; i < 300; ++i) {
    const Status status = Run(MakeNewOrderInput(source, 1));
    ASSERT_TRUE(status.ok() || IsRolledBack(status)) << status;
    committed += status.ok();
  }
  uint32_t orders = 0;
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    orders += small_->Read<District>(tables().district, DistrictKey(1, d))->next_o_id - 31;
  }
  EXPECT_EQ(orders, committed);
  EXPECT_EQ(small_->FailingConditions(), std::set<int>{});
}

// Reads, locks with the validation, installs; with a log also a call that appends to the other one.
TEST(NewOrderOfTwoNodesTest, TakesThreeRoundTrips) {
  for (const index::IndexKind kind : index::OrderedKinds()) {
    for (const bool has_log : {false, true}) {
      txn::DatabaseOptions database;
      if (has_log) {
        database = {.directory = "/data",
                    .create_if_missing = true,
                    .durability = txn::DurabilityMode::kAsync,
                    .files = std::make_shared<log::FaultyFileSystem>(1)};
      }
      const auto small = SmallTpcc::Make({.nodes = 2, .ordered_index = kind, .database = database});
      ASSERT_NE(small, nullptr);
      NewOrderInput input{.w = 1, .d = 3, .c = 1, .entry_d = 1'700'000'000, .line_count = 10, .lines = {}};
      for (uint32_t i = 0; i < 10; ++i) input.lines[i] = {.item = i + 1, .supply_w = i < 2 ? 2u : 1u, .quantity = 1};
      NewOrderScratch scratch;
      NewOrderOutput output{};
      // At first the cache does not know where the rows are, and an epoch may end in the middle of an order.
      uint64_t round_trips = UINT64_MAX;
      for (int order = 0; order < 8; ++order) {
        const rdma::VerbCounters before = small->session().channel().counters();
        ASSERT_TRUE(small->session()
                        .RunBlocking([&](txn::Transaction& transaction) {
                          return NewOrder(transaction, small->table(), input, scratch, &output);
                        })
                        .ok());
        round_trips = std::min(round_trips, (small->session().channel().counters() - before).round_trips);
      }
      EXPECT_EQ(round_trips, has_log ? 4u : 3u) << index::EntryOf(kind).name;
      EXPECT_EQ(small->FailingConditions(), std::set<int>{});
    }
  }
}

// All rows of the order are at another node, and there is a log. With inserts by verbs the only calls are those for the
// log and for the decision, and most orders take no more round trips than with inserts by calls: reads, locks, prepare,
// validation, log, decision.
TEST(NewOrderOfAnotherNodeTest, InsertsNeedNoCallWithALog) {
  for (const auto kind : index::KindsThatClientsChange()) {
    txn::DatabaseOptions database{.read_path = txn::ReadPathPolicy::kOneSided,
                                  .directory = "/data",
                                  .create_if_missing = true,
                                  .durability = txn::DurabilityMode::kAsync,
                                  .files = std::make_shared<log::FaultyFileSystem>(1)};
    const auto small = SmallTpcc::Make({.nodes = 2, .ordered_index = kind, .database = database});
    ASSERT_NE(small, nullptr);
    NewOrderInput input{.w = 2, .d = 3, .c = 1, .entry_d = 1'700'000'000, .line_count = 10, .lines = {}};
    for (uint32_t i = 0; i < 10; ++i) input.lines[i] = {.item = i + 1, .supply_w = 2, .quantity = 1};
    NewOrderScratch scratch;
    NewOrderOutput output{};
    uint64_t calls = UINT64_MAX;
    std::vector<uint64_t> round_trips;
    for (int order = 0; order < 30; ++order) {
      const rdma::VerbCounters before = small->session().channel().counters();
      ASSERT_TRUE(small->session()
                      .RunBlocking([&](txn::Transaction& transaction) {
                        return NewOrder(transaction, small->table(), input, scratch, &output);
                      })
                      .ok());
      // Some orders borrow blocks, and some meet a full inner node.
      const rdma::VerbCounters used = small->session().channel().counters() - before;
      calls = std::min(calls, used.calls);
      round_trips.push_back(used.round_trips);
    }
    std::ranges::sort(round_trips);
    EXPECT_LE(round_trips[round_trips.size() / 2], 6u);
    EXPECT_EQ(calls, 2u);
    EXPECT_EQ(small->FailingConditions(), std::set<int>{});
  }
}

}  // namespace new_order_test
}  // namespace gannet::tpcc
