// NewOrder (clause 2.4): a customer orders 5 to 15 items.
#pragma once

#include <array>
#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "tpcc/procedures/input.h"
#include "tpcc/schema/schema.h"
#include "txn/run/transaction.h"

namespace gannet::tpcc {

struct NewOrderInput {
  struct Line {
    uint32_t item = 0;
    uint32_t supply_w = 0;
    uint32_t quantity = 0;
  };
  uint32_t w = 0;
  uint32_t d = 0;
  uint32_t c = 0;
  Date entry_d = 0;
  uint32_t line_count = 0;
  std::array<Line, kMaxLines> lines;
};

// 1% of the lines are supplied by another warehouse, if there is one. In 1% of the orders the last item does not exist.
NewOrderInput MakeNewOrderInput(InputSource& source, uint32_t w);

// What the terminal shows (clause 2.4.3.3).
struct NewOrderOutput {
  struct Line {
    Text<24> item_name;
    int32_t stock_quantity;
    char brand_generic;  // 'B' or 'G'
    Cents price;
    Cents amount;
  };
  uint32_t o_id;
  Text<16> last;
  bool bad_credit;
  uint16_t discount;
  uint16_t w_tax;
  uint16_t d_tax;
  Cents total;
  std::array<Line, kMaxLines> lines;  // a line whose item does not exist stays unchanged
};

// Buffers, reused between calls.
struct NewOrderScratch {
  struct LineRows {
    Item item;
    Stock stock;
    Text<24> dist;
    Text<50> stock_data;
    // Index of the line's first request. A line with the same stock as an earlier line uses that line's rows.
    uint32_t request;
    uint32_t first;  // the line whose rows these are: itself or an earlier one
    bool found;      // the item exists
    bool original;   // I_DATA has "ORIGINAL"; S_DATA was read
  };
  uint16_t w_tax;
  District district;
  CustomerTerms customer;
  std::array<LineRows, kMaxLines> lines;
  std::array<txn::GetRequest, 3 + 3 * kMaxLines> requests;
  std::array<txn::GetRequest, kMaxLines> data_requests;  // S_DATA, where it is needed
};

// Returns RolledBack() if an item does not exist, after all other work is done. All rows whose keys are known at the
// start are requested at once: one wait for warehouse, district, customer, items and stocks.
coro::Task<Status> NewOrder(txn::Transaction& transaction, const Tables& tables, const NewOrderInput& input,
                            NewOrderScratch& scratch, NewOrderOutput* output);

}  // namespace gannet::tpcc
