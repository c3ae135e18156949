// Payment (clause 2.5): a customer pays; the warehouse and the district add the amount to their totals.
#pragma once

#include <array>
#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "tpcc/procedures/input.h"
#include "tpcc/schema/schema.h"
#include "txn/run/transaction.h"

namespace gannet::tpcc {

// Numbers the payments of one worker. With the home district they make the key of HISTORY. `worker` is unique among the
// workers of its node.
struct PaymentNumbers {
  uint32_t worker = kFirstWorker;
  uint32_t next = 1;
};

struct PaymentInput {
  uint32_t w = 0;  // place of the payment
  uint32_t d = 0;
  uint32_t c_w = 0;  // home of the customer
  uint32_t c_d = 0;
  CustomerChoice customer;
  uint32_t amount = 0;  // cents
  Date date = 0;
  PaymentNumbers number;  // `next` is the number of this payment
};

// 15% of the payments are by a customer of another warehouse, if there is one.
PaymentInput MakePaymentInput(InputSource& source, uint32_t w, PaymentNumbers& numbers);

// What the terminal shows in addition to the input (clause 2.5.3.3).
struct PaymentOutput {
  uint32_t c;
  Warehouse warehouse;
  DistrictInfo district;
  CustomerInfo customer;
  Cents balance;
  Text<200> data;  // the first 200 characters of C_DATA, if the customer has bad credit
};

struct PaymentScratch {
  WarehouseYtd warehouse_ytd;
  DistrictYtd district_ytd;
  Customer customer;
  CustomerData data;
  CustomerData new_data;
  std::array<txn::GetRequest, 6> requests;
  txn::ScanRows rows;
};

coro::Task<Status> Payment(txn::Transaction& transaction, const Tables& tables, const PaymentInput& input,
                           PaymentScratch& scratch, PaymentOutput* output);

}  // namespace gannet::tpcc
