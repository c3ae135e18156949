// One corrupted row, written through a transaction, makes exactly the expected conditions fail.
//
// Some conditions imply others, so some corruptions break more than one: W_YTD is in 1 and 8, D_YTD in 1 and 9,
// O_OL_CNT in 4 and 6. There is a test for each condition.
#include "tpcc/consistency.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tpcc/small_tpcc.h"

namespace gannet::tpcc {
namespace consistency_test {

using ::testing::StartsWith;

constexpr uint32_t kW = 2, kD = 3;  // the corrupted rows
constexpr uint64_t kDistrictKey = DistrictKey(kW, kD);

class ConsistencyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    small_ = SmallTpcc::Make({});
    ASSERT_NE(small_, nullptr);
    ASSERT_EQ(small_->FailingConditions(), std::set<int>{});
  }

  template <class Row, class ChangeRow>
  void Corrupt(const txn::Table* table, uint64_t key, ChangeRow change) {
    auto row = small_->Read<Row>(table, key);
    ASSERT_TRUE(row);
    change(*row);
    const Status status = small_->Write(table, key, *row);
    ASSERT_TRUE(status.ok()) << status;
  }

  // The condition's detail must begin with the place of the corruption.
  void ExpectFailing(const std::set<int>& expected, int named, const char* place) {
    StatusOr<std::vector<ConditionResult>> results = CheckConsistency(small_->nodes(), small_->tables());
    ASSERT_TRUE(results.ok()) << results.status();
    for (const ConditionResult& result : *results) {
      EXPECT_EQ(result.holds, !expected.contains(result.condition)) << result.condition << ": " << result.detail;
    }
    EXPECT_THAT((*results)[static_cast<size_t>(named - 1)].detail, StartsWith(place));
  }

  const Tables& tables() { return small_->table(); }

  std::unique_ptr<SmallTpcc> small_;
};

TEST_F(ConsistencyTest, Condition1) {
  Corrupt<WarehouseYtd>(tables().warehouse_ytd, WarehouseKey(kW), [](WarehouseYtd& row) { row.ytd += 1; });
  ExpectFailing({1, 8}, 1, "warehouse 2: W_YTD is 300001, sum(D_YTD) is 300000");
}

TEST_F(ConsistencyTest, Condition2) {
  Corrupt<District>(tables().district, kDistrictKey, [](District& row) { row.next_o_id += 1; });
  ExpectFailing({2}, 2, "district (2, 3): D_NEXT_O_ID - 1 is 31, max(O_ID) is 30");
}

TEST_F(ConsistencyTest, Condition3) {
  // Orders 22 to 30 are undelivered. One row in the middle of NEW_ORDER is removed, so its order waits without a new
  // order.
  ASSERT_TRUE(small_->Remove(tables().new_order, OrderKey(kW, kD, 25)).ok());
  ExpectFailing({3, 5, 11}, 3, "district (2, 3): max(NO_O_ID) - min(NO_O_ID) + 1 is 9, count(NEW_ORDER) is 8");
}

TEST_F(ConsistencyTest, Condition4) {
  const OrderLine line{.i_id = 1, .delivery = {}, .supply_w_id = kW, .quantity = 1, .dist_info = {}};
  ASSERT_TRUE(small_->Insert(tables().order_line, OrderLineKey(kW, kD, 31, 1), line).ok());  // without an order
  ExpectFailing({4}, 4, "district (2, 3): sum(O_OL_CNT) is ");
}

TEST_F(ConsistencyTest, Condition5) {
  Corrupt<Order>(tables().order, OrderKey(kW, kD, 25), [](Order& row) { row.carrier_id = 7; });
  ExpectFailing({5, 7}, 5, "district (2, 3): order 25: O_CARRIER_ID (0 = null) is 7");
}

TEST_F(ConsistencyTest, Condition6) {
  Corrupt<Order>(tables().order, OrderKey(kW, kD, 30), [](Order& row) { row.ol_cnt += 1; });
  ExpectFailing({4, 6}, 6, "district (2, 3): order 30: O_OL_CNT is ");
}

TEST_F(ConsistencyTest, Condition7) {
  // A delivered order of the population, whose lines cost nothing: no balance changes.
  Corrupt<OrderLine>(tables().order_line, OrderLineKey(kW, kD, 9, 2),
                     [](OrderLine& row) { row.delivery.delivery_d = 0; });
  ExpectFailing({7}, 7, "district (2, 3): order 9 line 2: OL_DELIVERY_D (0 = null) is 0");
}

TEST_F(ConsistencyTest, Condition8) {
  const History history{.c_id = 4, .c_d_id = kD, .c_w_id = kW, .date = 1, .amount = 5, .data = {}};
  ASSERT_TRUE(small_->Insert(tables().history, HistoryKey(kW, kD, kLastWorker, 1), history).ok());
  ExpectFailing({8, 9, 10}, 8, "warehouse 2: W_YTD is 300000, sum(H_AMOUNT) is 300005");
}

TEST_F(ConsistencyTest, Condition9) {
  Corrupt<DistrictYtd>(tables().district_ytd, kDistrictKey, [](DistrictYtd& row) { row.ytd -= 2; });
  ExpectFailing({1, 9}, 9, "district (2, 3): D_YTD is 29998, sum(H_AMOUNT) is 30000");
}

TEST_F(ConsistencyTest, Condition10) {
  // The payment of customer 5 is moved to customer 6; the sums of district and warehouse stay.
  Corrupt<History>(tables().history, HistoryKey(kW, kD, kLoaderWorker, 5), [](History& row) { row.c_id = 6; });
  ExpectFailing({10}, 10, "district (2, 3): customer 5: C_BALANCE is -1000");
}

TEST_F(ConsistencyTest, Condition11) {
  Corrupt<Customer>(tables().customer, CustomerKey(kW, kD, 8), [](Customer& row) { row.delivery_cnt += 1; });
  ExpectFailing({11}, 11, "district (2, 3): count(ORDER) - count(NEW_ORDER) is 21");
}

TEST_F(ConsistencyTest, Condition12) {
  Corrupt<Customer>(tables().customer, CustomerKey(kW, kD, 8), [](Customer& row) { row.ytd_payment += 3; });
  ExpectFailing({12}, 12, "district (2, 3): customer 8: C_BALANCE + C_YTD_PAYMENT is 3");
}

// A warehouse of another node is corrupted and read from there.
TEST(ConsistencyOnTwoNodesTest, FindsWhatFailsElsewhere) {
  auto small = SmallTpcc::Make({.nodes = 2});
  ASSERT_NE(small, nullptr);
  auto row = small->Read<Customer>(small->table().customer, CustomerKey(kW, kD, 8));
  ASSERT_TRUE(row);
  row->ytd_payment += 3;
  ASSERT_TRUE(small->Write(small->table().customer, CustomerKey(kW, kD, 8), *row).ok());
  EXPECT_EQ(small->FailingConditions(), std::set<int>{12});
  // The result as one of the two processes of a cluster would see it.
  StatusOr<std::vector<ConditionResult>> results = CheckConsistency(small->nodes().first(1), small->tables().first(1));
  ASSERT_TRUE(results.ok()) << results.status();
  for (const ConditionResult& result : *results) EXPECT_EQ(result.holds, result.condition != 12) << result.detail;
}

TEST(ConsistencyOptionsTest, MissingRowsAreAnError) {
  auto small = SmallTpcc::Make({.load = false});
  ASSERT_NE(small, nullptr);
  EXPECT_FALSE(CheckConsistency(small->nodes(), small->tables()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckConsistency({}, {}).status()));
}

}  // namespace consistency_test
}  // namespace gannet::tpcc
