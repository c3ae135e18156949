// OrderStatus (clause 2.6): a customer asks for the state of their last order. Read-only.
#pragma once

#include <array>
#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "tpcc/procedures/input.h"
#include "tpcc/schema/schema.h"
#include "txn/run/transaction.h"

namespace gannet::tpcc {

struct OrderStatusInput {
  uint32_t w = 0;
  uint32_t d = 0;
  CustomerChoice customer;
};

OrderStatusInput MakeOrderStatusInput(InputSource& source, uint32_t w);

// What the terminal shows (clause 2.6.3.3).
struct OrderStatusOutput {
  uint32_t c;
  CustomerInfo customer;
  Cents balance;
  uint32_t o_id;  // 0: the customer never ordered
  Order order;
  uint32_t line_count;
  std::array<OrderLine, kMaxLines> lines;
};

struct OrderStatusScratch {
  Customer customer;
  std::array<txn::GetRequest, 3> requests;
  txn::ScanRows rows;
};

coro::Task<Status> OrderStatus(txn::Transaction& transaction, const Tables& tables, const OrderStatusInput& input,
                               OrderStatusScratch& scratch, OrderStatusOutput* output);

}  // namespace gannet::tpcc
