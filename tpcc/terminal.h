// Terminal: one coroutine's inputs, buffers and outputs for the five transactions. Allocates nothing once it is made.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rdma/base/status.h"
#include "rdma/coro/task.h"
#include "tpcc/procedures/delivery.h"
#include "tpcc/procedures/new_order.h"
#include "tpcc/procedures/order_status.h"
#include "tpcc/procedures/payment.h"
#include "tpcc/procedures/stock_level.h"
#include "tpcc/report.h"
#include "txn/database.h"

namespace gannet::tpcc {

// Large: make it on the heap. Used by one coroutine at a time, on its session's thread.
class Terminal {
 public:
  // All must outlive this. `numbers` is shared by the terminals of one worker.
  Terminal(txn::Session* session, const Tables* tables, const InputSource& source, PaymentNumbers* numbers)
      : session_(session), tables_(tables), source_(source), numbers_(numbers), undelivered_(source.warehouses) {}

  // Draws an input for home warehouse `w` and runs the transaction until it commits. The status is Ok; that of
  // RolledBack(); or why it failed. `outcome` must live until the await returns.
  coro::Task<Status> Run(Procedure procedure, uint32_t w, Date now, txn::RunOutcome* outcome);

  Random& random() { return source_.random; }

 private:
  coro::Task<Status> RunDelivery(txn::RunOutcome* outcome);

  txn::Session* session_;
  const Tables* tables_;
  InputSource source_;
  PaymentNumbers* numbers_;
  // DeliveryInput::first_to_look_at by warehouse - 1: after what this terminal delivered.
  std::vector<std::array<uint32_t, kDistricts>> undelivered_;

  NewOrderInput new_order_;
  NewOrderScratch new_order_scratch_;
  NewOrderOutput new_order_output_;
  PaymentInput payment_;
  PaymentScratch payment_scratch_;
  PaymentOutput payment_output_;
  OrderStatusInput order_status_;
  OrderStatusScratch order_status_scratch_;
  OrderStatusOutput order_status_output_;
  DeliveryInput delivery_;
  DeliveryScratch delivery_scratch_;
  DeliveryOutput delivery_output_;
  StockLevelInput stock_level_;
  StockLevelScratch stock_level_scratch_;
  StockLevelOutput stock_level_output_;
};

}  // namespace gannet::tpcc
