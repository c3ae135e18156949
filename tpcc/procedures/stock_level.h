// StockLevel (clause 2.8): counts the distinct items of a district's last 20 orders that are low in stock. Read-only.
#pragma once

#include <array>
#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "tpcc/procedures/input.h"
#include "tpcc/schema/schema.h"
#include "txn/run/transaction.h"

namespace gannet::tpcc {

struct StockLevelInput {
  uint32_t w = 0;
  uint32_t d = 0;
  int32_t threshold = 0;  // 10 to 20
};

StockLevelInput MakeStockLevelInput(InputSource& source, uint32_t w);

struct StockLevelOutput {
  uint32_t low_stock;       // items with less than the threshold
  uint32_t distinct_items;  // in the last 20 orders
};

// The distinct numbers of a sequence of at most kCapacity, in the order of their first appearance. Never allocates.
class DistinctItems {
 public:
  static constexpr size_t kCapacity = size_t{20} * kMaxLines;

  void Clear();
  // Item numbers begin at 1.
  void Add(uint32_t item);
  size_t size() const { return size_; }
  uint32_t operator[](size_t i) const { return items_[i]; }

 private:
  static constexpr size_t kSlots = 1024;  // a power of two, more than three times the capacity
  std::array<uint32_t, kSlots> slots_{};  // open addressing; 0 is free
  std::array<uint32_t, kCapacity> items_;
  size_t size_ = 0;
};

struct StockLevelScratch {
  DistinctItems items;
  std::array<int32_t, DistinctItems::kCapacity> quantities;
  std::array<txn::GetRequest, DistinctItems::kCapacity> requests;
  txn::ScanRows rows;
};

coro::Task<Status> StockLevel(txn::Transaction& transaction, const Tables& tables, const StockLevelInput& input,
                              StockLevelScratch& scratch, StockLevelOutput* output);

}  // namespace gannet::tpcc
