// Delivery (clause 2.7): delivers the oldest undelivered order in each district of a warehouse. Run immediately and as
// one transaction, not deferred.
#pragma once

#include <array>
#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "tpcc/procedures/input.h"
#include "tpcc/schema/schema.h"
#include "txn/run/transaction.h"

namespace gannet::tpcc {

struct DeliveryInput {
  uint32_t w = 0;
  uint8_t carrier = 0;  // 1 to 10
  Date delivery_d = 0;
  // The lower bound of the undelivered orders, where the search begins, by district - 1. Order numbers only grow, so
  // the number after an order that is known to be delivered is correct. A search from a lower number would read the
  // leaf into which new orders of the previous district go, and so conflict with them.
  std::array<uint32_t, kDistricts> first_to_look_at{};
};

DeliveryInput MakeDeliveryInput(InputSource& source, uint32_t w);

struct DeliveryOutput {
  // The orders by district - 1: the order delivered, or 0 if none waited.
  std::array<uint32_t, kDistricts> orders;
};

struct DeliveryScratch {
  struct Delivered {
    uint32_t d;
    uint32_t o_id;
    Order order;
    Customer customer;
    std::array<OrderLineDelivery, kMaxLines> lines;
  };
  uint32_t count;
  std::array<Delivered, kDistricts> orders;
  std::array<txn::GetRequest, kDistricts> order_requests;
  // The requests of each order: its customer, then its lines.
  std::array<txn::GetRequest, size_t{kDistricts} * (1 + kMaxLines)> row_requests;
  txn::ScanRows rows;
};

coro::Task<Status> Delivery(txn::Transaction& transaction, const Tables& tables, const DeliveryInput& input,
                            DeliveryScratch& scratch, DeliveryOutput* output);

}  // namespace gannet::tpcc
