#include "tpcc/procedures/delivery.h"

#include <cstddef>
#include <span>

#include "absl/strings/str_format.h"

namespace gannet::tpcc {
namespace {

using txn::GetRequest;

// Removes the oldest row of NEW_ORDER in every district and records the orders in scratch.orders.
coro::Task<Status> TakeOldest(txn::Transaction& transaction, const Tables& tables, const DeliveryInput& input,
                              DeliveryScratch& scratch, DeliveryOutput* output) {
  scratch.count = 0;
  for (uint32_t d = 1; d <= kDistricts; ++d) {
    const index::ScanRange range{.from = OrderKey(input.w, d, input.first_to_look_at[d - 1]),
                                 .to = OrderKey(input.w, d, kMaxOrderId),
                                 .limit = 1};
    const txn::ScanOptions options{.keys_only = true, .for_update = true};
    Status status = co_await transaction.Scan(*tables.new_order, range, &scratch.rows, options);
    if (!status.ok()) co_return status;
    output->orders[d - 1] = 0;
    if (scratch.rows.empty()) continue;
    status = transaction.Remove(scratch.rows.handle(0));
    if (!status.ok()) co_return status;
    const uint32_t o_id = OrderIdOf(scratch.rows.key(0).integer());
    output->orders[d - 1] = o_id;
    DeliveryScratch::Delivered& delivered = scratch.orders[scratch.count++];
    delivered.d = d;
    delivered.o_id = o_id;
  }
  co_return absl::OkStatus();
}

std::span<GetRequest> AskForOrders(const Tables& tables, const DeliveryInput& input, DeliveryScratch& scratch) {
  for (uint32_t i = 0; i < scratch.count; ++i) {
    DeliveryScratch::Delivered& delivered = scratch.orders[i];
    scratch.order_requests[i] =
        GetRequest::Of(*tables.order, OrderKey(input.w, delivered.d, delivered.o_id), &delivered.order, true);
  }
  return std::span(scratch.order_requests).first(scratch.count);
}

// Fills in the requests for the customers and lines of all orders; returns them.
StatusOr<std::span<GetRequest>> AskForRows(const Tables& tables, const DeliveryInput& input, DeliveryScratch& scratch) {
  size_t next = 0;
  for (uint32_t i = 0; i < scratch.count; ++i) {
    DeliveryScratch::Delivered& delivered = scratch.orders[i];
    if (delivered.order.ol_cnt > kMaxLines) {
      return absl::DataLossError(absl::StrFormat("order (%d, %d, %d) has %d lines, more than %d", input.w, delivered.d,
                                                 delivered.o_id, delivered.order.ol_cnt, kMaxLines));
    }
    scratch.row_requests[next++] = GetRequest::Of(
        *tables.customer, CustomerKey(input.w, delivered.d, delivered.order.c_id), &delivered.customer, true);
    for (uint32_t line = 0; line < delivered.order.ol_cnt; ++line) {
      GetRequest& request = scratch.row_requests[next++];
      request = GetRequest::Of(*tables.order_line, OrderLineKey(input.w, delivered.d, delivered.o_id, line + 1),
                               &delivered.lines[line], true);
      request.offset = offsetof(OrderLine, delivery);
    }
  }
  return std::span(scratch.row_requests).first(next);
}

// Updates the order, its lines and its customer. `rows` are the answers for the customer and the lines; returns the
// next order's answers.
StatusOr<const GetRequest*> Deliver(txn::Transaction& transaction, const DeliveryInput& input,
                                    DeliveryScratch::Delivered& delivered, txn::RecordHandle order,
                                    const GetRequest* rows) {
  GANNET_RETURN_IF_ERROR(transaction.Update(order, &Order::carrier_id, input.carrier));
  const GetRequest* const customer = rows++;
  for (uint32_t line = 0; line < delivered.order.ol_cnt; ++line, ++rows) {
    delivered.customer.balance += delivered.lines[line].amount;
    GANNET_RETURN_IF_ERROR(transaction.Update(rows->handle, input.delivery_d,
                                              offsetof(OrderLine, delivery) + offsetof(OrderLineDelivery, delivery_d)));
  }
  delivered.customer.delivery_cnt += 1;
  GANNET_RETURN_IF_ERROR(transaction.Update(customer->handle, delivered.customer));
  return rows;
}

}  // namespace

DeliveryInput MakeDeliveryInput(InputSource& source, uint32_t w) {
  return {.w = w, .carrier = static_cast<uint8_t>(source.random.Between(1, 10)), .delivery_d = source.now};
}

coro::Task<Status> Delivery(txn::Transaction& transaction, const Tables& tables, const DeliveryInput& input,
                            DeliveryScratch& scratch, DeliveryOutput* output) {
  Status status = co_await TakeOldest(transaction, tables, input, scratch, output);
  if (!status.ok() || scratch.count == 0) co_return status;

  const std::span<GetRequest> orders = AskForOrders(tables, input, scratch);
  status = co_await transaction.GetMany(orders);
  if (!status.ok()) co_return status;
  status = AllFound(orders);
  if (!status.ok()) co_return status;

  StatusOr<std::span<GetRequest>> rows = AskForRows(tables, input, scratch);
  if (!rows.ok()) co_return rows.status();
  status = co_await transaction.GetMany(*rows);
  if (!status.ok()) co_return status;
  status = AllFound(*rows);
  if (!status.ok()) co_return status;

  const GetRequest* next = rows->data();
  for (uint32_t i = 0; i < scratch.count; ++i) {
    StatusOr<const GetRequest*> after = Deliver(transaction, input, scratch.orders[i], orders[i].handle, next);
    if (!after.ok()) co_return after.status();
    next = *after;
  }
  co_return absl::OkStatus();
}

}  // namespace gannet::tpcc
