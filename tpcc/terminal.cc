#include "tpcc/terminal.h"

namespace gannet::tpcc {

coro::Task<Status> Terminal::Run(Procedure procedure, uint32_t w, Date now, txn::RunOutcome* outcome) {
  // Not a coroutine: the bodies only refer to members, which outlive the returned task.
  source_.now = now;
  switch (procedure) {
    case Procedure::kNewOrder:
      new_order_ = MakeNewOrderInput(source_, w);
      return session_->Run(
          [this](txn::Transaction& transaction) {
            return NewOrder(transaction, *tables_, new_order_, new_order_scratch_, &new_order_output_);
          },
          outcome);
    case Procedure::kPayment:
      payment_ = MakePaymentInput(source_, w, *numbers_);
      return session_->Run(
          [this](txn::Transaction& transaction) {
            return Payment(transaction, *tables_, payment_, payment_scratch_, &payment_output_);
          },
          outcome);
    case Procedure::kOrderStatus:
      order_status_ = MakeOrderStatusInput(source_, w);
      return session_->Run(
          [this](txn::Transaction& transaction) {
            return OrderStatus(transaction, *tables_, order_status_, order_status_scratch_, &order_status_output_);
          },
          outcome);
    case Procedure::kDelivery:
      delivery_ = MakeDeliveryInput(source_, w);
      delivery_.first_to_look_at = undelivered_[w - 1];
      return RunDelivery(outcome);
    case Procedure::kStockLevel:
      break;
  }
  stock_level_ = MakeStockLevelInput(source_, w);
  return session_->Run(
      [this](txn::Transaction& transaction) {
        return StockLevel(transaction, *tables_, stock_level_, stock_level_scratch_, &stock_level_output_);
      },
      outcome);
}

coro::Task<Status> Terminal::RunDelivery(txn::RunOutcome* outcome) {
  coro::Task<Status> run = session_->Run(
      [this](txn::Transaction& transaction) {
        return Delivery(transaction, *tables_, delivery_, delivery_scratch_, &delivery_output_);
      },
      outcome);
  Status status = co_await run;
  if (!status.ok()) co_return status;
  for (uint32_t d = 0; d < kDistricts; ++d) {
    if (delivery_output_.orders[d] != 0) undelivered_[delivery_.w - 1][d] = delivery_output_.orders[d] + 1;
  }
  co_return status;
}

}  // namespace gannet::tpcc
