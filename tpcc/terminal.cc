#include "tpcc/terminal.h"

#include <algorithm>
#include <utility>

namespace gannet::tpcc {

class Terminal::PooledDesk {
 public:
  explicit PooledDesk(Office* office) : office_(office), desk_(office->TakeDesk()) {}
  ~PooledDesk() { office_->ReturnDesk(std::move(desk_)); }
  PooledDesk(const PooledDesk&) = delete;
  PooledDesk& operator=(const PooledDesk&) = delete;
  Desk* operator->() const { return desk_.get(); }

 private:
  Office* office_;
  std::unique_ptr<Desk> desk_;
};

coro::Task<Status> Terminal::TryNewOrder(txn::Transaction& transaction) {
  const PooledDesk desk(office_);
  co_return co_await NewOrder(transaction, *tables_, new_order_, desk->new_order_scratch, &desk->new_order_output);
}

coro::Task<Status> Terminal::TryPayment(txn::Transaction& transaction) {
  const PooledDesk desk(office_);
  co_return co_await Payment(transaction, *tables_, payment_, desk->payment_scratch, &desk->payment_output);
}

coro::Task<Status> Terminal::TryOrderStatus(txn::Transaction& transaction) {
  const PooledDesk desk(office_);
  co_return co_await OrderStatus(transaction, *tables_, order_status_, desk->order_status_scratch,
                                 &desk->order_status_output);
}

coro::Task<Status> Terminal::TryDelivery(txn::Transaction& transaction) {
  const PooledDesk desk(office_);
  Status status = co_await Delivery(transaction, *tables_, delivery_, desk->delivery_scratch, &desk->delivery_output);
  delivered_ = desk->delivery_output.orders;
  co_return status;
}

coro::Task<Status> Terminal::TryStockLevel(txn::Transaction& transaction) {
  const PooledDesk desk(office_);
  co_return co_await StockLevel(transaction, *tables_, stock_level_, desk->stock_level_scratch,
                                &desk->stock_level_output);
}

void Terminal::Draw(Procedure procedure, uint32_t w, Date now) {
  source_.now = now;
  switch (procedure) {
    case Procedure::kNewOrder:
      new_order_ = MakeNewOrderInput(source_, w);
      break;
    case Procedure::kPayment:
      payment_ = MakePaymentInput(source_, w, office_->numbers);
      break;
    case Procedure::kOrderStatus:
      order_status_ = MakeOrderStatusInput(source_, w);
      break;
    case Procedure::kDelivery:
      delivery_ = MakeDeliveryInput(source_, w);
      delivery_.first_to_look_at = office_->undelivered[w - 1];
      break;
    case Procedure::kStockLevel:
      stock_level_ = MakeStockLevelInput(source_, w);
      break;
  }
}

coro::Task<Status> Terminal::Run(Procedure procedure, txn::RunOutcome* outcome, txn::Until until) {
  // This is not a coroutine: the bodies refer only to members, which outlive the returned task.
  switch (procedure) {
    case Procedure::kNewOrder:
      return session_->Run([this](txn::Transaction& transaction) { return TryNewOrder(transaction); }, outcome, until);
    case Procedure::kPayment:
      return session_->Run([this](txn::Transaction& transaction) { return TryPayment(transaction); }, outcome, until);
    case Procedure::kOrderStatus:
      return session_->Run([this](txn::Transaction& transaction) { return TryOrderStatus(transaction); }, outcome,
                           until);
    case Procedure::kDelivery:
      return RunDelivery(outcome, until);
    case Procedure::kStockLevel:
      break;
  }
  return session_->Run([this](txn::Transaction& transaction) { return TryStockLevel(transaction); }, outcome, until);
}

coro::Task<Status> Terminal::RunDelivery(txn::RunOutcome* outcome, txn::Until until) {
  coro::Task<Status> run =
      session_->Run([this](txn::Transaction& transaction) { return TryDelivery(transaction); }, outcome, until);
  Status status = co_await run;
  if (!status.ok()) co_return status;
  // Another terminal may have delivered more in the meantime.
  std::array<uint32_t, kDistricts>& undelivered = office_->undelivered[delivery_.w - 1];
  for (uint32_t d = 0; d < kDistricts; ++d) {
    if (delivered_[d] != 0) undelivered[d] = std::max(undelivered[d], delivered_[d] + 1);
  }
  co_return status;
}

}  // namespace gannet::tpcc
