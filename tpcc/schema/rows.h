// The rows of TPC-C as records: their layout, and the reasons for it.
//
// A record is a versioned object of 64-byte lines (rdma/versioned.h): 40 payload bytes fit next to an integer key in
// its first line, 56 in every further one. A commit writes all lines of a record that it updates, so the tables of the
// specification are partitioned vertically, as clause 1.4 allows:
//
//   WAREHOUSE = Warehouse (never changes)      + WarehouseYtd (Payment)
//   DISTRICT  = District (NewOrder, and D_TAX, which NewOrder reads) + DistrictYtd (Payment) + DistrictInfo (never)
//   CUSTOMER  = Customer (Payment, Delivery)   + CustomerInfo (never changes) + CustomerData (Payment, bad credit)
//   STOCK     = Stock (NewOrder)               + StockInfo (never changes)
//
// The part that changes fits one line, and no transaction conflicts with another over a column that it does not need:
// NewOrder reads W_TAX while a Payment adds to W_YTD. Within a part, the columns that NewOrder reads come first.
//
// Representation. Money is integer cents; taxes and discounts are in 1/10000; dates are seconds since 1970, 0 for null;
// O_CARRIER_ID 0 is null. Columns that are in the key are not repeated in the row. C_CREDIT is a flag ("BC" or "GC").
#pragma once

#include <cstdint>

#include "tpcc/schema/text.h"

namespace gannet::tpcc {

using Cents = int64_t;
using Date = uint32_t;  // seconds since 1970; 0 = null

inline constexpr int kRateScale = 10000;      // scale of taxes and discounts
inline constexpr size_t kOneLineBytes = 40;   // payload next to an integer key in the first line
inline constexpr size_t kTwoLinesBytes = 96;  // ... in the first two lines

#pragma pack(push, 1)

struct Address {
  Text<20> street_1;
  Text<20> street_2;
  Text<20> city;
  Text<2> state;
  Text<9> zip;
};
static_assert(sizeof(Address) == 71);

struct Warehouse {
  uint16_t tax;
  Text<10> name;
  Address address;
};
static_assert(sizeof(Warehouse) == 83 && sizeof(Warehouse) <= kTwoLinesBytes);

struct WarehouseYtd {
  Cents ytd;
};

struct District {
  uint32_t next_o_id;
  uint16_t tax;
};
static_assert(sizeof(District) <= kOneLineBytes);

struct DistrictYtd {
  Cents ytd;
};

struct DistrictInfo {
  Text<10> name;
  Address address;
};
static_assert(sizeof(DistrictInfo) <= kTwoLinesBytes);

struct Customer {
  Cents balance;
  Cents ytd_payment;
  uint32_t payment_cnt;
  uint32_t delivery_cnt;
};
static_assert(sizeof(Customer) <= kOneLineBytes);

// The columns of CustomerInfo that NewOrder reads: its first line.
struct CustomerTerms {
  Text<16> last;
  uint16_t discount;
  uint8_t bad_credit;  // 1: C_CREDIT is "BC"
};
static_assert(sizeof(CustomerTerms) <= kOneLineBytes);

struct CustomerInfo {
  CustomerTerms terms;
  Text<2> middle;
  Text<16> first;
  Address address;
  Text<16> phone;
  Date since;
  Cents credit_lim;
};
static_assert(sizeof(CustomerInfo) == 136);

struct CustomerData {
  Text<500> data;
};

struct History {
  uint32_t c_id;
  uint8_t c_d_id;
  uint16_t c_w_id;
  Date date;
  uint32_t amount;  // cents
  Text<24> data;
};
static_assert(sizeof(History) == 39 && sizeof(History) <= kOneLineBytes);

struct Order {
  uint32_t c_id;
  Date entry_d;
  uint8_t carrier_id;  // 0 = null
  uint8_t ol_cnt;
  uint8_t all_local;
};
static_assert(sizeof(Order) <= kOneLineBytes);

// The part of OrderLine that Delivery changes and sums up.
struct OrderLineDelivery {
  Date delivery_d;
  uint32_t amount;  // cents
};

struct OrderLine {
  uint32_t i_id;
  OrderLineDelivery delivery;
  uint16_t supply_w_id;
  uint8_t quantity;
  Text<24> dist_info;
};
static_assert(sizeof(OrderLine) == 39 && sizeof(OrderLine) <= kOneLineBytes);

struct Item {
  uint32_t price;  // cents
  uint32_t im_id;
  Text<24> name;
  Text<50> data;
};
static_assert(sizeof(Item) == 82 && sizeof(Item) <= kTwoLinesBytes);

struct Stock {
  int32_t quantity;
  uint32_t ytd;
  uint32_t order_cnt;
  uint32_t remote_cnt;
};
static_assert(sizeof(Stock) <= kOneLineBytes);

struct StockInfo {
  Text<24> dist[10];
  Text<50> data;
};
static_assert(sizeof(StockInfo) == 290);

#pragma pack(pop)

}  // namespace gannet::tpcc
