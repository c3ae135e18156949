#include "tpcc/procedures/stock_level.h"

#include <cstddef>
#include <span>

#include "base/check.h"

namespace gannet::tpcc {
namespace {

using txn::GetRequest;

constexpr uint32_t kLastOrders = 20;

// Reads the lines of the orders [next - 20, next) and collects their items.
coro::Task<Status> CollectItems(txn::Transaction& transaction, const Tables& tables, const StockLevelInput& input,
                                uint32_t next_o_id, StockLevelScratch& scratch) {
  const uint32_t first = next_o_id > kLastOrders ? next_o_id - kLastOrders : 1;
  // The limit is the most lines that 20 orders can have. It bounds the result of a read of an inconsistent state.
  const index::ScanRange range{.from = OrderLineKey(input.w, input.d, first, 0),
                               .to = OrderLineKey(input.w, input.d, next_o_id - 1, 0xff),
                               .limit = DistinctItems::kCapacity};
  Status status = co_await transaction.Scan(*tables.order_line, range, &scratch.rows);
  if (!status.ok()) co_return status;
  scratch.items.Clear();
  for (size_t i = 0; i < scratch.rows.size(); ++i) scratch.items.Add(scratch.rows.As<OrderLine>(i).i_id);
  co_return absl::OkStatus();
}

std::span<GetRequest> AskForStocks(const Tables& tables, uint32_t w, StockLevelScratch& scratch) {
  for (size_t i = 0; i < scratch.items.size(); ++i) {
    scratch.requests[i] = GetRequest::Of(*tables.stock, StockKey(w, scratch.items[i]), &scratch.quantities[i]);
    scratch.requests[i].offset = offsetof(Stock, quantity);
  }
  return std::span(scratch.requests).first(scratch.items.size());
}

}  // namespace

void DistinctItems::Clear() {
  slots_.fill(0);
  size_ = 0;
}

void DistinctItems::Add(uint32_t item) {
  size_t slot = (item * 0x9e3779b1u) >> 22;  // the top 10 bits
  static_assert(kSlots == 1 << 10);
  while (slots_[slot] != 0) {
    if (slots_[slot] == item) return;
    slot = (slot + 1) % kSlots;
  }
  GANNET_CHECK(size_ < kCapacity, "size=%d", size_);
  slots_[slot] = item;
  items_[size_++] = item;
}

StockLevelInput MakeStockLevelInput(InputSource& source, uint32_t w) {
  return {.w = w,
          .d = source.terminal_district != 0 ? source.terminal_district : source.RandomDistrict(),
          .threshold = static_cast<int32_t>(source.random.Between(10, 20))};
}

coro::Task<Status> StockLevel(txn::Transaction& transaction, const Tables& tables, const StockLevelInput& input,
                              StockLevelScratch& scratch, StockLevelOutput* output) {
  District district;
  Status status = co_await transaction.Get(*tables.district, DistrictKey(input.w, input.d), &district);
  if (absl::IsNotFound(status)) co_return MissingRow(tables.district->name(), DistrictKey(input.w, input.d));
  if (!status.ok()) co_return status;
  status = co_await CollectItems(transaction, tables, input, district.next_o_id, scratch);
  if (!status.ok()) co_return status;

  const std::span<GetRequest> stocks = AskForStocks(tables, input.w, scratch);
  status = co_await transaction.GetMany(stocks);
  if (!status.ok()) co_return status;
  status = AllFound(stocks);
  if (!status.ok()) co_return status;
  output->low_stock = 0;
  output->distinct_items = static_cast<uint32_t>(stocks.size());
  for (size_t i = 0; i < stocks.size(); ++i) {
    output->low_stock += scratch.quantities[i] < input.threshold;
  }
  co_return absl::OkStatus();
}

}  // namespace gannet::tpcc
