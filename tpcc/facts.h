// Facts: the input of the consistency conditions, gathered in one pass over the tables. Plain data, so that the
// conditions (conditions.h) can be tested without a database.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tpcc/schema/rows.h"
#include "tpcc/schema/schema.h"

namespace gannet::tpcc {

struct CustomerFacts {
  Cents balance = 0;
  Cents ytd_payment = 0;
  Cents paid = 0;       // sum of H_AMOUNT of the customer's payments at any warehouse
  Cents delivered = 0;  // sum of OL_AMOUNT of the delivered lines of the customer's orders
};

struct OrderFacts {
  uint32_t o_id = 0;
  uint32_t c_id = 0;
  uint8_t carrier_id = 0;  // 0 = null
  uint8_t ol_cnt = 0;
};

// An order that violates a condition about single orders, and how.
struct Offender {
  uint32_t o_id = 0;
  uint32_t line = 0;  // 0: the whole order
  uint64_t left = 0;  // the two values that the condition compares
  uint64_t right = 0;
};

struct DistrictFacts {
  Cents ytd = 0;
  uint32_t next_o_id = 0;
  Cents paid = 0;  // sum of H_AMOUNT of payments made in the district

  uint64_t orders = 0;
  uint32_t max_order = 0;
  uint64_t lines_promised = 0;  // sum of O_OL_CNT
  uint64_t order_lines = 0;
  uint64_t new_orders = 0;
  uint32_t min_new_order = 0;  // 0: there is none
  uint32_t max_new_order = 0;
  uint64_t delivery_count = 0;  // sum of C_DELIVERY_CNT

  std::optional<Offender> condition_5;  // left: O_CARRIER_ID, right: rows in NEW_ORDER
  std::optional<Offender> condition_6;  // left: O_OL_CNT, right: order lines
  std::optional<Offender> condition_7;  // left: OL_DELIVERY_D, right: O_CARRIER_ID

  std::vector<CustomerFacts> customers;  // by number - 1
};

struct WarehouseFacts {
  Cents ytd = 0;
  std::array<DistrictFacts, kDistricts> districts;  // by number - 1
};

struct Facts {
  Scale scale = {};
  std::vector<WarehouseFacts> warehouses = {};  // by number - 1
};

// Merges the rows of one district's ORDER, NEW_ORDER and ORDER_LINE, each in ascending order of the order number, into
// its facts. Takes all orders and new orders first, then the lines one by one, then Finish.
class OrderMerger {
 public:
  // Keeps references to all three, which must outlive this. `new_orders` has order numbers.
  OrderMerger(DistrictFacts* district, const std::vector<OrderFacts>& orders, const std::vector<uint32_t>& new_orders);
  void AddLine(uint32_t o_id, uint32_t line, const OrderLineDelivery& delivery);
  void Finish();

 private:
  void CountOrders(const std::vector<uint32_t>& new_orders);
  // Called when the lines of the current order are complete: checks their number and moves to the next order.
  void EndOrder();

  DistrictFacts* district_;
  const std::vector<OrderFacts>& orders_;
  size_t current_ = 0;
  uint32_t lines_ = 0;  // of the current order
};

}  // namespace gannet::tpcc
