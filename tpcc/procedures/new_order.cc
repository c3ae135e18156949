#include "tpcc/procedures/new_order.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "absl/strings/str_format.h"

namespace gannet::tpcc {
namespace {

using txn::GetRequest;

// The first requests of the batch. Three per line follow, in the order of PerLine.
enum Head { kWarehouse, kDistrict, kCustomer, kFirstLine };
enum PerLine { kItem, kStock, kStockInfo, kRequestsPerLine };

template <class Part>
GetRequest PartOf(const txn::Table& table, uint64_t key, Part* part, size_t offset) {
  GetRequest request = GetRequest::Of(table, key, part);
  request.offset = static_cast<uint32_t>(offset);
  return request;
}

// The first line that takes from the same stock as `line`; may be `line` itself.
uint32_t FirstOfSameStock(const NewOrderInput& input, uint32_t line) {
  const NewOrderInput::Line& wanted = input.lines[line];
  for (uint32_t i = 0; i < line; ++i) {
    if (input.lines[i].item == wanted.item && input.lines[i].supply_w == wanted.supply_w) return i;
  }
  return line;
}

// Fills in the requests for all rows whose keys follow from the input; returns them.
std::span<GetRequest> AskForAll(const Tables& tables, const NewOrderInput& input, NewOrderScratch& scratch) {
  auto& requests = scratch.requests;
  requests[kWarehouse] = PartOf(*tables.warehouse, WarehouseKey(input.w), &scratch.w_tax, offsetof(Warehouse, tax));
  requests[kDistrict] = GetRequest::Of(*tables.district, DistrictKey(input.w, input.d), &scratch.district, true);
  requests[kCustomer] = PartOf(*tables.customer_info, CustomerKey(input.w, input.d, input.c), &scratch.customer,
                               offsetof(CustomerInfo, terms));
  uint32_t next = kFirstLine;
  for (uint32_t i = 0; i < input.line_count; ++i) {
    const NewOrderInput::Line& line = input.lines[i];
    NewOrderScratch::LineRows& rows = scratch.lines[i];
    rows.first = FirstOfSameStock(input, i);
    if (rows.first != i) continue;
    rows.request = next;
    const uint64_t stock_key = StockKey(line.supply_w, line.item);
    requests[next + kItem] = GetRequest::Of(*tables.item, ItemKey(line.item), &rows.item);
    requests[next + kStock] = GetRequest::Of(*tables.stock, stock_key, &rows.stock, true);
    requests[next + kStockInfo] = PartOf(*tables.stock_info, stock_key, &rows.dist,
                                         offsetof(StockInfo, dist) + (input.d - 1) * sizeof(rows.dist));
    next += kRequestsPerLine;
  }
  return std::span(requests).first(next);
}

// Sets `found` of every line. An error if anything but an item is missing.
Status CheckAnswers(const NewOrderInput& input, NewOrderScratch& scratch) {
  GANNET_RETURN_IF_ERROR(AllFound(std::span(scratch.requests).first(kFirstLine)));
  for (uint32_t i = 0; i < input.line_count; ++i) {
    NewOrderScratch::LineRows& rows = scratch.lines[i];
    if (rows.first != i) continue;
    const GetRequest* answers = &scratch.requests[rows.request];
    rows.found = answers[kItem].status.ok();
    if (!rows.found && !absl::IsNotFound(answers[kItem].status)) [[unlikely]]
      return answers[kItem].status;
    if (!rows.found) continue;
    GANNET_RETURN_IF_ERROR(AllFound({answers + kStock, answers + kRequestsPerLine}));
  }
  return absl::OkStatus();
}

// Clause 2.4.2.2 retrieves S_DATA for every item, but only where I_DATA has "ORIGINAL" (every tenth item) does the
// output depend on it. Returns the requests for those; sets `original`.
std::span<GetRequest> AskForStockData(const Tables& tables, const NewOrderInput& input, NewOrderScratch& scratch) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < input.line_count; ++i) {
    NewOrderScratch::LineRows& rows = scratch.lines[i];
    if (rows.first != i) continue;
    rows.original = rows.found && IsOriginal(rows.item.data);
    if (!rows.original) continue;
    scratch.data_requests[next++] = PartOf(*tables.stock_info, StockKey(input.lines[i].supply_w, input.lines[i].item),
                                           &rows.stock_data, offsetof(StockInfo, data));
  }
  return std::span(scratch.data_requests).first(next);
}

// Clause 2.4.2.2: S_QUANTITY stays above 9 by restocking 91.
void TakeFromStock(const NewOrderInput& input, const NewOrderInput::Line& line, Stock& stock) {
  const int32_t quantity = static_cast<int32_t>(line.quantity);
  stock.quantity -= quantity;
  if (stock.quantity < 10) stock.quantity += 91;
  stock.ytd += line.quantity;
  stock.order_cnt += 1;
  stock.remote_cnt += line.supply_w != input.w;
}

// Takes line `i` from its stock, inserts its order line, and returns OL_AMOUNT.
StatusOr<Cents> AddLine(txn::Transaction& transaction, const Tables& tables, const NewOrderInput& input,
                        NewOrderScratch& scratch, uint32_t i, NewOrderOutput* output) {
  const NewOrderInput::Line& line = input.lines[i];
  NewOrderScratch::LineRows& rows = scratch.lines[scratch.lines[i].first];
  TakeFromStock(input, line, rows.stock);
  const uint32_t amount = line.quantity * rows.item.price;
  const OrderLine order_line{.i_id = line.item,
                             .delivery = {.delivery_d = 0, .amount = amount},
                             .supply_w_id = static_cast<uint16_t>(line.supply_w),
                             .quantity = static_cast<uint8_t>(line.quantity),
                             .dist_info = rows.dist};
  GANNET_RETURN_IF_ERROR(transaction.Insert(
      *tables.order_line, OrderLineKey(input.w, input.d, scratch.district.next_o_id, i + 1), order_line));
  const bool brand = rows.original && IsOriginal(rows.stock_data);
  output->lines[i] = {.item_name = rows.item.name,
                      .stock_quantity = rows.stock.quantity,
                      .brand_generic = brand ? 'B' : 'G',
                      .price = rows.item.price,
                      .amount = amount};
  return Cents{amount};
}

Status InsertOrder(txn::Transaction& transaction, const Tables& tables, const NewOrderInput& input, uint32_t o_id) {
  const auto lines = std::span(input.lines).first(input.line_count);
  const bool all_local = std::all_of(lines.begin(), lines.end(),
                                     [&](const NewOrderInput::Line& line) { return line.supply_w == input.w; });
  const Order order{.c_id = input.c,
                    .entry_d = input.entry_d,
                    .carrier_id = 0,
                    .ol_cnt = static_cast<uint8_t>(input.line_count),
                    .all_local = all_local};
  const uint64_t key = OrderKey(input.w, input.d, o_id);
  constexpr std::span<const std::byte> kNoPayload;
  GANNET_RETURN_IF_ERROR(transaction.Insert(*tables.order, key, order));
  GANNET_RETURN_IF_ERROR(transaction.Insert(*tables.new_order, key, kNoPayload));
  return transaction.Insert(*tables.order_by_customer, OrderByCustomerKey(input.w, input.d, input.c, o_id), kNoPayload);
}

// sum(OL_AMOUNT) * (1 - C_DISCOUNT) * (1 + W_TAX + D_TAX), rounded to the cent.
Cents Total(Cents sum, uint16_t discount, uint16_t w_tax, uint16_t d_tax) {
  constexpr Cents kUnit = Cents{kRateScale} * kRateScale;
  return (sum * (kRateScale - discount) * (kRateScale + w_tax + d_tax) + kUnit / 2) / kUnit;
}

// Does everything after the reads. RolledBack() if an item does not exist.
Status WriteOrder(txn::Transaction& transaction, const Tables& tables, const NewOrderInput& input,
                  NewOrderScratch& scratch, NewOrderOutput* output) {
  const uint32_t o_id = scratch.district.next_o_id;
  if (o_id == kMaxOrderId) {
    return absl::OutOfRangeError(absl::StrFormat("district (%d, %d) has used all order numbers", input.w, input.d));
  }
  Cents sum = 0;
  bool all_found = true;
  for (uint32_t i = 0; i < input.line_count; ++i) {
    if (!scratch.lines[scratch.lines[i].first].found) {
      all_found = false;
      continue;
    }
    StatusOr<Cents> amount = AddLine(transaction, tables, input, scratch, i, output);
    if (!amount.ok()) return amount.status();
    sum += *amount;
  }
  for (uint32_t i = 0; i < input.line_count; ++i) {
    const NewOrderScratch::LineRows& rows = scratch.lines[i];
    if (rows.first != i || !rows.found) continue;
    GANNET_RETURN_IF_ERROR(transaction.Update(scratch.requests[rows.request + kStock].handle, rows.stock));
  }
  District district = scratch.district;
  district.next_o_id = o_id + 1;
  GANNET_RETURN_IF_ERROR(transaction.Update(scratch.requests[kDistrict].handle, district));
  GANNET_RETURN_IF_ERROR(InsertOrder(transaction, tables, input, o_id));

  output->o_id = o_id;
  output->last = scratch.customer.last;
  output->bad_credit = scratch.customer.bad_credit != 0;
  output->discount = scratch.customer.discount;
  output->w_tax = scratch.w_tax;
  output->d_tax = scratch.district.tax;
  output->total = Total(sum, output->discount, output->w_tax, output->d_tax);
  return all_found ? absl::OkStatus() : RolledBack();
}

}  // namespace

NewOrderInput MakeNewOrderInput(InputSource& source, uint32_t w) {
  NewOrderInput input;
  input.w = w;
  input.d = source.RandomDistrict();
  input.c = source.RandomCustomer();
  input.entry_d = source.now;
  input.line_count = static_cast<uint32_t>(source.random.Between(5, kMaxLines));
  for (uint32_t i = 0; i < input.line_count; ++i) {
    const bool remote = source.warehouses > 1 && source.Percent(1);
    input.lines[i] = {.item = source.non_uniform.Item(source.random, source.scale.items),
                      .supply_w = remote ? source.OtherWarehouse(w) : w,
                      .quantity = static_cast<uint32_t>(source.random.Between(1, 10))};
  }
  if (source.Percent(1)) input.lines[input.line_count - 1].item = source.scale.items + 1;
  return input;
}

coro::Task<Status> NewOrder(txn::Transaction& transaction, const Tables& tables, const NewOrderInput& input,
                            NewOrderScratch& scratch, NewOrderOutput* output) {
  const std::span<GetRequest> requests = AskForAll(tables, input, scratch);
  Status status = co_await transaction.GetMany(requests);
  if (!status.ok()) co_return status;
  status = CheckAnswers(input, scratch);
  if (!status.ok()) co_return status;

  const std::span<GetRequest> data_requests = AskForStockData(tables, input, scratch);
  if (!data_requests.empty()) {
    status = co_await transaction.GetMany(data_requests);
    if (!status.ok()) co_return status;
    status = AllFound(data_requests);
    if (!status.ok()) co_return status;
  }
  co_return WriteOrder(transaction, tables, input, scratch, output);
}

}  // namespace gannet::tpcc
