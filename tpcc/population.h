// The parts of the initial population that can be loaded in parallel: groups of tables whose rows depend on each other.
// Each function fills its tables on one node, warehouse by warehouse in ascending order, as ordered tables require.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "tpcc/schema/random.h"
#include "tpcc/schema/schema.h"
#include "txn/run/session.h"

namespace gannet::tpcc {

struct PopulationContext {
  const Tables* tables = nullptr;
  std::vector<uint32_t> warehouses;  // of the node, ascending
  uint64_t seed = 1;
  Date date = 0;
  NonUniform non_uniform;
  // Called after the part has made `rows` rows for a warehouse; for ITEM with warehouse 0.
  std::function<void(uint32_t w, uint64_t rows)> loaded;
};

using PopulationPart = Status (*)(txn::Session& session, const PopulationContext& context);

Status LoadItems(txn::Session& session, const PopulationContext& context);
Status LoadWarehouses(txn::Session& session, const PopulationContext& context);  // and districts
Status LoadStock(txn::Session& session, const PopulationContext& context);
Status LoadCustomers(txn::Session& session, const PopulationContext& context);  // and their names and history
Status LoadOrders(txn::Session& session, const PopulationContext& context);     // and new orders and order lines

// The largest part first, so that threads end at about the same time.
inline constexpr PopulationPart kPopulationParts[] = {LoadOrders, LoadStock, LoadCustomers, LoadItems, LoadWarehouses};
// Number of parts that call `loaded` for each warehouse.
inline constexpr uint32_t kPartsPerWarehouse = 4;

}  // namespace gannet::tpcc
