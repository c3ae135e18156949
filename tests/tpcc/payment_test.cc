#include "tpcc/procedures/payment.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "tests/tpcc/small_tpcc.h"

namespace gannet::tpcc {
namespace payment_test {

coro::Task<Status> InsertName(txn::Transaction& transaction, const txn::Table& table, const CustomerNameKey& key) {
  co_return transaction.Insert(table, key.key(), std::span<const std::byte>());
}

class PaymentTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    small_ = SmallTpcc::Make({.nodes = GetParam()});
    ASSERT_NE(small_, nullptr);
  }

  // Customer `c` of district (2, 4) pays 12.34 in district (1, 3).
  PaymentInput Remote(uint32_t c) {
    return {.w = 1,
            .d = 3,
            .c_w = 2,
            .c_d = 4,
            .customer = {.by_name = false, .last = {}, .c = c},
            .amount = 1234,
            .date = 1'700'000'000,
            .number = {.worker = 1, .next = next_number_++}};
  }

  Status Run(const PaymentInput& input) {
    return small_->session().RunBlocking([&](txn::Transaction& transaction) {
      return Payment(transaction, small_->table(), input, scratch_, &output_);
    });
  }

  // A customer of district (2, 4) with the given credit.
  uint32_t CustomerWith(bool bad_credit) {
    for (uint32_t c = 1; c <= 30; ++c) {
      auto info = *small_->Read<CustomerInfo>(tables().customer_info, CustomerKey(2, 4, c));
      if ((info.terms.bad_credit != 0) == bad_credit) return c;
    }
    ADD_FAILURE() << "no customer with this credit; choose another seed";
    return 1;
  }
  const Tables& tables() { return small_->table(); }

  std::unique_ptr<SmallTpcc> small_;
  uint32_t next_number_ = 1;
  PaymentScratch scratch_;
  PaymentOutput output_{};
};
INSTANTIATE_TEST_SUITE_P(Nodes, PaymentTest, ::testing::Values(1, 2), ::testing::PrintToStringParamName());

TEST_P(PaymentTest, MovesTheAmount) {
  const uint32_t c = CustomerWith(/*bad_credit=*/false);
  const auto data_before = small_->Read<CustomerData>(tables().customer_data, CustomerKey(2, 4, c));
  ASSERT_TRUE(Run(Remote(c)).ok());
  EXPECT_EQ(+small_->Read<WarehouseYtd>(tables().warehouse_ytd, WarehouseKey(1))->ytd, 300'000 + 1234);
  EXPECT_EQ(+small_->Read<WarehouseYtd>(tables().warehouse_ytd, WarehouseKey(2))->ytd, 300'000);
  EXPECT_EQ(+small_->Read<DistrictYtd>(tables().district_ytd, DistrictKey(1, 3))->ytd, 30'000 + 1234);
  const auto customer = small_->Read<Customer>(tables().customer, CustomerKey(2, 4, c));
  EXPECT_EQ(+customer->balance, -1000 - 1234);
  EXPECT_EQ(+customer->ytd_payment, 1000 + 1234);
  EXPECT_EQ(+customer->payment_cnt, 2u);
  EXPECT_EQ(+output_.balance, -2234);
  EXPECT_EQ(output_.c, c);
  EXPECT_EQ(small_->Read<CustomerData>(tables().customer_data, CustomerKey(2, 4, c))->data, data_before->data);
  EXPECT_EQ(small_->FailingConditions(), std::set<int>{});
}

TEST_P(PaymentTest, InsertsHistory) {
  ASSERT_TRUE(Run(Remote(7)).ok());
  const auto history = small_->Read<History>(tables().history, HistoryKey(1, 3, 1, 1));
  ASSERT_TRUE(history);
  EXPECT_EQ(+history->c_id, 7u);
  EXPECT_EQ(+history->c_d_id, 4);
  EXPECT_EQ(+history->c_w_id, 2);
  EXPECT_EQ(+history->amount, 1234u);
  EXPECT_EQ(+history->date, 1'700'000'000u);
  const auto warehouse = small_->Read<Warehouse>(tables().warehouse, WarehouseKey(1));
  const auto district = small_->Read<DistrictInfo>(tables().district_info, DistrictKey(1, 3));
  EXPECT_EQ(history->data.view(), std::string(warehouse->name.view()) + "    " + std::string(district->name.view()));
  EXPECT_EQ(output_.warehouse.name, warehouse->name);
  EXPECT_EQ(output_.district.address.city, district->address.city);
}

TEST_P(PaymentTest, BadCreditPrependsToData) {
  const uint32_t c = CustomerWith(/*bad_credit=*/true);
  const auto before = small_->Read<CustomerData>(tables().customer_data, CustomerKey(2, 4, c));
  ASSERT_TRUE(Run(Remote(c)).ok());
  const auto after = small_->Read<CustomerData>(tables().customer_data, CustomerKey(2, 4, c));
  const std::string added = std::to_string(c) + " 4 2 3 1 1234 ";
  const std::string expected = (added + std::string(before->data.view())).substr(0, 500);
  EXPECT_EQ(after->data.view(), expected);
  EXPECT_EQ(std::string_view(output_.data.bytes, 200), expected.substr(0, 200));
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(Run(Remote(c)).ok());
  const auto full = small_->Read<CustomerData>(tables().customer_data, CustomerKey(2, 4, c));
  EXPECT_EQ(full->data.view().size(), 500u);
}

TEST_P(PaymentTest, ByNameTakesTheMiddleCustomer) {
  // Five customers with one last name; their order by first name is not that of their numbers.
  const std::vector<std::pair<uint32_t, const char*>> firsts = {
      {3, "eve"}, {5, "ann"}, {9, "dan"}, {12, "bob"}, {20, "cat"}};
  Text<16> last;
  last.Assign("PRESPRESPRES");
  auto add = [&](uint32_t c, const char* first_name) {
    Text<16> first;
    first.Assign(first_name);
    const CustomerNameKey key(2, 4, last, first, c);
    return small_->session().RunBlocking(
        [&](txn::Transaction& transaction) { return InsertName(transaction, *tables().customer_by_name, key); });
  };
  PaymentInput input = Remote(0);
  input.customer = {.by_name = true, .last = last, .c = 0};
  EXPECT_TRUE(absl::IsNotFound(Run(input)));
  for (size_t n = 0; n < firsts.size(); ++n) {
    ASSERT_TRUE(add(firsts[n].first, firsts[n].second).ok());
    input.number.next = next_number_++;
    ASSERT_TRUE(Run(input).ok());
    std::vector<std::pair<std::string, uint32_t>> sorted;
    for (size_t i = 0; i <= n; ++i) sorted.emplace_back(firsts[i].second, firsts[i].first);
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(output_.c, sorted[(n + 2) / 2 - 1].second) << "position n/2 rounded up of " << n + 1;
  }
}

}  // namespace payment_test
}  // namespace gannet::tpcc
