#include "tpcc/procedures/order_status.h"

#include <algorithm>
#include <span>

#include "tpcc/procedures/customer_lookup.h"

namespace gannet::tpcc {
namespace {

using txn::GetRequest;

// The number of the customer's newest order, or 0.
coro::Task<StatusOr<uint32_t>> FindLastOrder(txn::Transaction& transaction, const Tables& tables,
                                             const OrderStatusInput& input, uint32_t c, txn::ScanRows* rows) {
  const index::ScanRange range{.from = OrderByCustomerKey(input.w, input.d, c, 0),
                               .to = OrderByCustomerKey(input.w, input.d, c, kMaxOrderId),
                               .reverse = true,
                               .limit = 1};
  const txn::ScanOptions options{.keys_only = true};
  Status status = co_await transaction.Scan(*tables.order_by_customer, range, rows, options);
  if (!status.ok()) co_return status;
  if (rows->empty()) co_return uint32_t{0};
  co_return OrderIdOfCustomer(rows->key(0).integer());
}

// Fills in the requests for the customer, and for the order if there is one; returns them.
std::span<GetRequest> AskForRows(const Tables& tables, const OrderStatusInput& input, OrderStatusScratch& scratch,
                                 OrderStatusOutput* output) {
  const uint64_t key = CustomerKey(input.w, input.d, output->c);
  auto& requests = scratch.requests;
  requests[0] = GetRequest::Of(*tables.customer, key, &scratch.customer);
  requests[1] = GetRequest::Of(*tables.customer_info, key, &output->customer);
  if (output->o_id == 0) return std::span(requests).first(2);
  requests[2] = GetRequest::Of(*tables.order, OrderKey(input.w, input.d, output->o_id), &output->order);
  return requests;
}

coro::Task<Status> ReadLines(txn::Transaction& transaction, const Tables& tables, const OrderStatusInput& input,
                             OrderStatusScratch& scratch, OrderStatusOutput* output) {
  const index::ScanRange range{.from = OrderLineKey(input.w, input.d, output->o_id, 0),
                               .to = OrderLineKey(input.w, input.d, output->o_id, 0xff)};
  Status status = co_await transaction.Scan(*tables.order_line, range, &scratch.rows);
  if (!status.ok()) co_return status;
  output->line_count = static_cast<uint32_t>(std::min<size_t>(scratch.rows.size(), kMaxLines));
  for (uint32_t i = 0; i < output->line_count; ++i) output->lines[i] = scratch.rows.As<OrderLine>(i);
  co_return absl::OkStatus();
}

}  // namespace

OrderStatusInput MakeOrderStatusInput(InputSource& source, uint32_t w) {
  OrderStatusInput input;
  input.w = w;
  input.d = source.RandomDistrict();
  input.customer = CustomerChoice::Draw(source);
  return input;
}

coro::Task<Status> OrderStatus(txn::Transaction& transaction, const Tables& tables, const OrderStatusInput& input,
                               OrderStatusScratch& scratch, OrderStatusOutput* output) {
  output->c = input.customer.c;
  if (input.customer.by_name) {
    StatusOr<uint32_t> c =
        co_await FindCustomerByName(transaction, tables, input.w, input.d, input.customer.last, &scratch.rows);
    if (!c.ok()) co_return c.status();
    output->c = *c;
  }
  StatusOr<uint32_t> last = co_await FindLastOrder(transaction, tables, input, output->c, &scratch.rows);
  if (!last.ok()) co_return last.status();
  output->o_id = *last;
  output->line_count = 0;

  const std::span<GetRequest> requests = AskForRows(tables, input, scratch, output);
  Status status = co_await transaction.GetMany(requests);
  if (!status.ok()) co_return status;
  status = AllFound(requests);
  if (!status.ok()) co_return status;
  output->balance = scratch.customer.balance;
  if (output->o_id == 0) co_return absl::OkStatus();
  co_return co_await ReadLines(transaction, tables, input, scratch, output);
}

}  // namespace gannet::tpcc
