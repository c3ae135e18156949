// The population of clause 4.3.3 on a small scale; all conditions hold for it.
#include <algorithm>
#include <map>

#include "gtest/gtest.h"
#include "tests/tpcc/small_tpcc.h"
#include "tpcc/loader.h"
#include "tpcc/population.h"
#include "tpcc/schema/random.h"
#include "tpcc/table_scan.h"

namespace gannet::tpcc {
namespace load_test {

constexpr uint64_t kEnd = UINT64_MAX;

class LoadTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    small_ = SmallTpcc::Make({.nodes = GetParam(), .warehouses = 3});
    ASSERT_NE(small_, nullptr);
  }
  // The rows of one warehouse.
  template <class Row>
  std::map<uint64_t, Row> Rows(const txn::Table* table, uint32_t w) {
    std::map<uint64_t, Row> rows;
    for (const uint64_t key : small_->Keys(table, WarehouseKey(w), WarehouseKey(w + 1) - 1)) {
      rows[key] = *small_->Read<Row>(table, key);
    }
    return rows;
  }

  std::unique_ptr<SmallTpcc> small_;
};
INSTANTIATE_TEST_SUITE_P(Nodes, LoadTest, ::testing::Values(1, 2), ::testing::PrintToStringParamName());

TEST_P(LoadTest, AllConditionsHold) {
  EXPECT_EQ(small_->FailingConditions(), std::set<int>{});
}

TEST_P(LoadTest, PointTablesAreFull) {
  const Tables& tables = small_->table();
  for (uint32_t i = 1; i <= tables.scale.items; ++i) {
    const auto item = small_->Read<Item>(tables.item, ItemKey(i));
    ASSERT_TRUE(item) << i;
    EXPECT_TRUE(item->price >= 100 && item->price <= 10000);
    EXPECT_GE(item->name.view().size(), 14u);
  }
  EXPECT_FALSE(small_->Exists(tables.item, ItemKey(tables.scale.items + 1)));
  for (uint32_t w = 1; w <= 3; ++w) {
    const auto warehouse = small_->Read<Warehouse>(tables.warehouse, WarehouseKey(w));
    ASSERT_TRUE(warehouse);
    EXPECT_LE(warehouse->tax, 2000);
    EXPECT_EQ(small_->Read<WarehouseYtd>(tables.warehouse_ytd, WarehouseKey(w))->ytd, 10 * 30 * 1000);
    for (uint32_t i = 1; i <= tables.scale.items; ++i) {
      const auto stock = small_->Read<Stock>(tables.stock, StockKey(w, i));
      ASSERT_TRUE(stock);
      EXPECT_TRUE(stock->quantity >= 10 && stock->quantity <= 100);
      EXPECT_EQ(stock->ytd + stock->order_cnt + stock->remote_cnt, 0u);
      const auto info = small_->Read<StockInfo>(tables.stock_info, StockKey(w, i));
      ASSERT_TRUE(info);
      for (const Text<24>& dist : info->dist) EXPECT_EQ(dist.view().size(), 24u);
      EXPECT_GE(info->data.view().size(), 26u);
    }
    EXPECT_FALSE(small_->Exists(tables.stock, StockKey(w, tables.scale.items + 1)));
  }
  EXPECT_FALSE(small_->Exists(tables.warehouse, WarehouseKey(4)));
}

TEST_P(LoadTest, DistrictsAndCustomers) {
  const Tables& tables = small_->table();
  int bad_credits = 0;
  for (uint32_t w = 1; w <= 3; ++w) {
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      EXPECT_EQ(small_->Read<District>(tables.district, DistrictKey(w, d))->next_o_id, 31u);
      EXPECT_EQ(small_->Read<DistrictYtd>(tables.district_ytd, DistrictKey(w, d))->ytd, 30 * 1000);
      EXPECT_TRUE(small_->Exists(tables.district_info, DistrictKey(w, d)));
      for (uint32_t c = 1; c <= 30; ++c) {
        const auto customer = small_->Read<Customer>(tables.customer, CustomerKey(w, d, c));
        ASSERT_TRUE(customer);
        EXPECT_EQ(customer->balance, -1000);
        EXPECT_EQ(customer->ytd_payment, 1000);
        EXPECT_EQ(customer->payment_cnt, 1u);
        EXPECT_EQ(customer->delivery_cnt, 0u);
        const auto info = small_->Read<CustomerInfo>(tables.customer_info, CustomerKey(w, d, c));
        ASSERT_TRUE(info);
        EXPECT_EQ(info->terms.last.view(), LastName(c - 1).view());
        EXPECT_EQ(info->middle.view(), "OE");
        EXPECT_EQ(info->credit_lim, 5'000'000);
        bad_credits += info->terms.bad_credit;
        const auto data = small_->Read<CustomerData>(tables.customer_data, CustomerKey(w, d, c));
        ASSERT_TRUE(data);
        EXPECT_GE(data->data.view().size(), 300u);
      }
      EXPECT_FALSE(small_->Exists(tables.customer, CustomerKey(w, d, 31)));
    }
  }
  EXPECT_GT(bad_credits, 900 / 20);
  EXPECT_LT(bad_credits, 900 / 5);
}

TEST_P(LoadTest, OrdersArePermutationsWithTheirLines) {
  const Tables& tables = small_->table();
  for (uint32_t w = 1; w <= 3; ++w) {
    const auto orders = Rows<Order>(tables.order, w);
    const auto lines = Rows<OrderLine>(tables.order_line, w);
    ASSERT_EQ(orders.size(), 300u);
    size_t expected_lines = 0;
    std::map<uint32_t, std::set<uint32_t>> customers;
    for (const auto& [key, order] : orders) {
      const uint32_t d = DistrictOf(key), o = OrderIdOf(key);
      customers[d].insert(order.c_id);
      expected_lines += order.ol_cnt;
      const bool delivered = o <= 21;
      EXPECT_EQ(order.carrier_id != 0, delivered);
      EXPECT_EQ(small_->Exists(tables.new_order, key), !delivered);
      EXPECT_TRUE(small_->Exists(tables.order_by_customer, OrderByCustomerKey(w, d, order.c_id, o)));
      for (uint32_t line = 1; line <= order.ol_cnt; ++line) {
        const auto found = lines.find(OrderLineKey(w, d, o, line));
        ASSERT_NE(found, lines.end());
        EXPECT_EQ(found->second.delivery.amount == 0, delivered);
        EXPECT_EQ(+found->second.delivery.delivery_d, delivered ? SmallTpcc::kLoadDate : 0);
        EXPECT_EQ(+found->second.quantity, 5);
        EXPECT_EQ(+found->second.supply_w_id, w);
      }
    }
    EXPECT_EQ(lines.size(), expected_lines);
    for (uint32_t d = 1; d <= kDistricts; ++d) EXPECT_EQ(customers[d].size(), 30u);
    EXPECT_EQ(small_->Keys(tables.new_order, WarehouseKey(w), WarehouseKey(w + 1) - 1).size(), 90u);
    EXPECT_EQ(small_->Keys(tables.order_by_customer, WarehouseKey(w), WarehouseKey(w + 1) - 1).size(), 300u);
    const auto history = Rows<History>(tables.history, w);
    EXPECT_EQ(history.size(), 300u);
    for (const auto& [key, row] : history) {
      EXPECT_EQ(+row.amount, 1000u);
      EXPECT_EQ(+row.c_id, SequenceOf(key));
      EXPECT_EQ(+row.c_d_id, DistrictOf(key));
      EXPECT_EQ(+row.c_w_id, w);
    }
  }
  EXPECT_TRUE(small_->Keys(tables.order, WarehouseKey(4), kEnd).empty());
}

// The population depends on the seed, not on the number of nodes.
TEST_P(LoadTest, SameSeedSameRows) {
  auto other = SmallTpcc::Make({.nodes = 1, .warehouses = 3});
  ASSERT_NE(other, nullptr);
  for (uint32_t w = 1; w <= 3; ++w) {
    for (uint32_t i = 1; i <= 20; ++i) {
      const auto a = small_->Read<StockInfo>(small_->table().stock_info, StockKey(w, i));
      const auto b = other->Read<StockInfo>(other->table().stock_info, StockKey(w, i));
      ASSERT_TRUE(a && b);
      EXPECT_EQ(a->data, b->data);
      const auto c = small_->Read<CustomerInfo>(small_->table().customer_info, CustomerKey(w, 3, i));
      const auto d = other->Read<CustomerInfo>(other->table().customer_info, CustomerKey(w, 3, i));
      EXPECT_EQ(c->first, d->first);
    }
  }
}

TEST(LoadOptionsTest, ProgressCountsEveryPartOnce) {
  auto small = SmallTpcc::Make({.nodes = 2, .warehouses = 5, .load = false});
  ASSERT_NE(small, nullptr);
  std::vector<LoadProgress> calls;
  const Status status = Load(small->nodes(), small->tables(), {.threads = 3},
                             [&](const LoadProgress& progress) { calls.push_back(progress); });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(calls.size(), 5u * kPartsPerWarehouse);
  for (uint32_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].parts_loaded, i + 1);
    EXPECT_EQ(calls[i].parts, 5 * kPartsPerWarehouse);
  }
  EXPECT_GT(calls.back().rows, calls.front().rows);
  EXPECT_EQ(small->FailingConditions(), std::set<int>{});
}

TEST(LoadOptionsTest, BadOptionsAreNamed) {
  auto small = SmallTpcc::Make({.load = false});
  ASSERT_NE(small, nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(Load(small->nodes(), small->tables(), {.threads = 0}, nullptr)));
  EXPECT_TRUE(absl::IsInvalidArgument(Load(small->nodes(), {}, {}, nullptr)));
}

TEST(SchemaTest, BadOptionsAreNamed) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{64} << 20});
  ASSERT_TRUE(fabric.ok());
  auto database = txn::Database::Open(fabric->get(), 0, {});
  ASSERT_TRUE(database.ok()) << database.status();
  auto create = [&](const SchemaOptions& options) { return Tables::Create(**database, options).status(); };
  EXPECT_TRUE(absl::IsInvalidArgument(create({.warehouses = 0})));
  EXPECT_TRUE(absl::IsInvalidArgument(create({.warehouses = 70000})));
  EXPECT_TRUE(absl::IsInvalidArgument(create({.warehouses = 1}))) << "two nodes, one warehouse";
  EXPECT_TRUE(absl::IsInvalidArgument(create({.warehouses = 2, .scale = {.customers_per_district = 5000}})));
  EXPECT_TRUE(absl::IsInvalidArgument(create({.warehouses = 2, .scale = {.items = 0}})));
  EXPECT_TRUE(absl::IsInvalidArgument(create({.warehouses = 2, .ordered_index = txn::IndexKind::kHash})));
  EXPECT_TRUE(absl::IsInvalidArgument(create({.warehouses = 2, .ordered_index = static_cast<txn::IndexKind>(99)})));
  EXPECT_TRUE(absl::IsNotFound(Tables::Find(**database, {.warehouses = 2}).status()));
}

}  // namespace load_test
}  // namespace gannet::tpcc
