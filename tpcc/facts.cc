#include "tpcc/facts.h"

#include <algorithm>

namespace gannet::tpcc {

OrderMerger::OrderMerger(DistrictFacts* district, const std::vector<OrderFacts>& orders,
                         const std::vector<uint32_t>& new_orders)
    : district_(district), orders_(orders) {
  CountOrders(new_orders);
}

void OrderMerger::CountOrders(const std::vector<uint32_t>& new_orders) {
  district_->orders = orders_.size();
  district_->max_order = orders_.empty() ? 0 : orders_.back().o_id;
  district_->new_orders = new_orders.size();
  district_->min_new_order = new_orders.empty() ? 0 : new_orders.front();
  district_->max_new_order = new_orders.empty() ? 0 : new_orders.back();
  auto waiting = new_orders.begin();
  for (const OrderFacts& order : orders_) {
    district_->lines_promised += order.ol_cnt;
    waiting = std::find_if(waiting, new_orders.end(), [&](uint32_t o_id) { return o_id >= order.o_id; });
    const bool waits = waiting != new_orders.end() && *waiting == order.o_id;
    if ((order.carrier_id == 0) != waits && !district_->condition_5) {
      district_->condition_5 = {.o_id = order.o_id, .left = order.carrier_id, .right = waits};
    }
  }
}

void OrderMerger::AddLine(uint32_t o_id, uint32_t line, const OrderLineDelivery& delivery) {
  ++district_->order_lines;
  while (current_ < orders_.size() && orders_[current_].o_id < o_id) EndOrder();
  if (current_ == orders_.size() || orders_[current_].o_id != o_id) return;  // no order: see condition 4
  ++lines_;
  const OrderFacts& order = orders_[current_];
  const bool delivered = delivery.delivery_d != 0;
  if (delivered != (order.carrier_id != 0) && !district_->condition_7) {
    district_->condition_7 = {.o_id = o_id, .line = line, .left = delivery.delivery_d, .right = order.carrier_id};
  }
  if (delivered && order.c_id >= 1 && order.c_id <= district_->customers.size()) {
    district_->customers[order.c_id - 1].delivered += delivery.amount;
  }
}

void OrderMerger::EndOrder() {
  const OrderFacts& order = orders_[current_];
  if (order.ol_cnt != lines_ && !district_->condition_6) {
    district_->condition_6 = {.o_id = order.o_id, .left = order.ol_cnt, .right = lines_};
  }
  ++current_;
  lines_ = 0;
}

void OrderMerger::Finish() {
  while (current_ < orders_.size()) EndOrder();
}

}  // namespace gannet::tpcc
