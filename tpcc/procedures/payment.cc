#include "tpcc/procedures/payment.h"

#include <charconv>
#include <cstring>
#include <span>

#include "tpcc/procedures/customer_lookup.h"

namespace gannet::tpcc {
namespace {

using txn::GetRequest;

enum Row { kWarehouseRow, kWarehouseYtd, kDistrictRow, kDistrictYtd, kCustomerRow, kCustomerInfo };

void AskForAll(const Tables& tables, const PaymentInput& input, PaymentScratch& scratch, PaymentOutput* output) {
  const uint64_t warehouse = WarehouseKey(input.w);
  const uint64_t district = DistrictKey(input.w, input.d);
  const uint64_t customer = CustomerKey(input.c_w, input.c_d, output->c);
  auto& requests = scratch.requests;
  requests[kWarehouseRow] = GetRequest::Of(*tables.warehouse, warehouse, &output->warehouse);
  requests[kWarehouseYtd] = GetRequest::Of(*tables.warehouse_ytd, warehouse, &scratch.warehouse_ytd, true);
  requests[kDistrictRow] = GetRequest::Of(*tables.district_info, district, &output->district);
  requests[kDistrictYtd] = GetRequest::Of(*tables.district_ytd, district, &scratch.district_ytd, true);
  requests[kCustomerRow] = GetRequest::Of(*tables.customer, customer, &scratch.customer, true);
  requests[kCustomerInfo] = GetRequest::Of(*tables.customer_info, customer, &output->customer);
}

// Appends a number and a space; returns the position after them.
char* Append(char* to, char* end, uint64_t number) {
  to = std::to_chars(to, end - 1, number).ptr;
  *to = ' ';
  return to + 1;
}

// Clause 2.5.2.2: amount, place and customer of the payment go before the old C_DATA, which is cut at 500 characters.
void PrependPayment(const PaymentInput& input, uint32_t c, const CustomerData& old_data, CustomerData* new_data) {
  char* const begin = new_data->data.bytes;
  char* const end = begin + sizeof(new_data->data.bytes);
  char* at = begin;
  for (const uint64_t number : {c, input.c_d, input.c_w, input.d, input.w, input.amount}) at = Append(at, end, number);
  std::memcpy(at, old_data.data.bytes, static_cast<size_t>(end - at));
}

History MakeHistory(const PaymentInput& input, const PaymentOutput& output) {
  History history{.c_id = output.c,
                  .c_d_id = static_cast<uint8_t>(input.c_d),
                  .c_w_id = static_cast<uint16_t>(input.c_w),
                  .date = input.date,
                  .amount = input.amount,
                  .data = {}};
  // W_NAME, four spaces, D_NAME: at most 10 + 4 + 10 characters.
  const std::string_view warehouse = output.warehouse.name.view();
  const std::string_view district = output.district.name.view();
  char* at = history.data.bytes;
  std::memcpy(at, warehouse.data(), warehouse.size());
  std::memset(at + warehouse.size(), ' ', 4);
  std::memcpy(at + warehouse.size() + 4, district.data(), district.size());
  return history;
}

// Writes everything but C_DATA.
Status WritePayment(txn::Transaction& transaction, const Tables& tables, const PaymentInput& input,
                    PaymentScratch& scratch, PaymentOutput* output) {
  const Cents amount = input.amount;
  scratch.warehouse_ytd.ytd += amount;
  scratch.district_ytd.ytd += amount;
  scratch.customer.balance -= amount;
  scratch.customer.ytd_payment += amount;
  scratch.customer.payment_cnt += 1;
  output->balance = scratch.customer.balance;
  GANNET_RETURN_IF_ERROR(transaction.Update(scratch.requests[kWarehouseYtd].handle, scratch.warehouse_ytd));
  GANNET_RETURN_IF_ERROR(transaction.Update(scratch.requests[kDistrictYtd].handle, scratch.district_ytd));
  GANNET_RETURN_IF_ERROR(transaction.Update(scratch.requests[kCustomerRow].handle, scratch.customer));
  return transaction.Insert(*tables.history, HistoryKey(input.w, input.d, input.number.worker, input.number.next),
                            MakeHistory(input, *output));
}

}  // namespace

PaymentInput MakePaymentInput(InputSource& source, uint32_t w, PaymentNumbers& numbers) {
  PaymentInput input;
  input.w = w;
  input.d = source.RandomDistrict();
  const bool remote = source.warehouses > 1 && source.Percent(15);
  input.c_w = remote ? source.OtherWarehouse(w) : w;
  input.c_d = remote ? source.RandomDistrict() : input.d;
  input.customer = CustomerChoice::Draw(source);
  input.amount = static_cast<uint32_t>(source.random.Between(100, 500'000));
  input.date = source.now;
  input.number = numbers;
  ++numbers.next;
  return input;
}

coro::Task<Status> Payment(txn::Transaction& transaction, const Tables& tables, const PaymentInput& input,
                           PaymentScratch& scratch, PaymentOutput* output) {
  output->c = input.customer.c;
  if (input.customer.by_name) {
    StatusOr<uint32_t> c =
        co_await FindCustomerByName(transaction, tables, input.c_w, input.c_d, input.customer.last, &scratch.rows);
    if (!c.ok()) co_return c.status();
    output->c = *c;
  }
  AskForAll(tables, input, scratch, output);
  Status status = co_await transaction.GetMany(scratch.requests);
  if (!status.ok()) co_return status;
  status = AllFound(scratch.requests);
  if (!status.ok()) co_return status;

  if (output->customer.terms.bad_credit != 0) {
    StatusOr<txn::RecordHandle> handle = co_await transaction.GetForUpdate(
        *tables.customer_data, CustomerKey(input.c_w, input.c_d, output->c), &scratch.data);
    if (!handle.ok()) co_return handle.status();
    PrependPayment(input, output->c, scratch.data, &scratch.new_data);
    status = transaction.Update(*handle, scratch.new_data);
    if (!status.ok()) co_return status;
    std::memcpy(output->data.bytes, scratch.new_data.data.bytes, sizeof(output->data.bytes));
  }
  co_return WritePayment(transaction, tables, input, scratch, output);
}

}  // namespace gannet::tpcc
