// Terminal: the state of one coroutine's transactions, and the desks that a worker's terminals share. Allocates nothing
// after the warm-up.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "tpcc/procedures/delivery.h"
#include "tpcc/procedures/new_order.h"
#include "tpcc/procedures/order_status.h"
#include "tpcc/procedures/payment.h"
#include "tpcc/procedures/stock_level.h"
#include "tpcc/report.h"
#include "txn/run/session.h"

namespace gannet::tpcc {

// The buffers of a running transaction: rows that it reads, and its output. Needed only while its body runs, not while
// the commit waits to become durable. So the many terminals of a worker share few desks, which stay in the cache.
struct Desk {
  NewOrderScratch new_order_scratch;
  NewOrderOutput new_order_output;
  PaymentScratch payment_scratch;
  PaymentOutput payment_output;
  OrderStatusScratch order_status_scratch;
  OrderStatusOutput order_status_output;
  DeliveryScratch delivery_scratch;
  DeliveryOutput delivery_output;
  StockLevelScratch stock_level_scratch;
  StockLevelOutput stock_level_output;
};

// State shared by the terminals of one worker. Not thread-safe.
class Office {
 public:
  explicit Office(size_t warehouses) : undelivered(warehouses) {}

  // Returns the desk that was used last.
  std::unique_ptr<Desk> TakeDesk() {
    if (desks_.empty()) return std::make_unique<Desk>();
    std::unique_ptr<Desk> desk = std::move(desks_.back());
    desks_.pop_back();
    return desk;
  }
  void ReturnDesk(std::unique_ptr<Desk> desk) { desks_.push_back(std::move(desk)); }

  PaymentNumbers numbers;
  // DeliveryInput::first_to_look_at by warehouse - 1, from the deliveries of this worker.
  std::vector<std::array<uint32_t, kDistricts>> undelivered;

 private:
  std::vector<std::unique_ptr<Desk>> desks_;
};

// Used by one coroutine at a time, on its session's thread.
class Terminal {
 public:
  // All must outlive this.
  Terminal(txn::Session* session, const Tables* tables, const InputSource& source, Office* office)
      : session_(session), tables_(tables), source_(source), office_(office) {}

  // Draws the input of the next Run, for home warehouse `w`.
  void Draw(Procedure procedure, uint32_t w, Date now);
  // Runs the transaction with the input that was drawn for it last, until it commits. Returns Ok, RolledBack(), or the
  // error. `outcome` must live until the await returns.
  coro::Task<Status> Run(Procedure procedure, txn::RunOutcome* outcome, txn::Until until = txn::Until::kDurable);
  // Number of districts in which the last Delivery found no order.
  uint8_t skipped_districts() const { return static_cast<uint8_t>(std::ranges::count(delivered_, 0u)); }

  Random& random() { return source_.random; }

 private:
  class PooledDesk;
  // Each runs one attempt with the current input.
  coro::Task<Status> TryNewOrder(txn::Transaction& transaction);
  coro::Task<Status> TryPayment(txn::Transaction& transaction);
  coro::Task<Status> TryOrderStatus(txn::Transaction& transaction);
  coro::Task<Status> TryDelivery(txn::Transaction& transaction);
  coro::Task<Status> TryStockLevel(txn::Transaction& transaction);
  coro::Task<Status> RunDelivery(txn::RunOutcome* outcome, txn::Until until);

  txn::Session* session_;
  const Tables* tables_;
  InputSource source_;
  Office* office_;

  NewOrderInput new_order_;
  PaymentInput payment_;
  OrderStatusInput order_status_;
  DeliveryInput delivery_;
  std::array<uint32_t, kDistricts> delivered_{};  // by the last attempt; 0: none in that district
  StockLevelInput stock_level_;
};

}  // namespace gannet::tpcc
