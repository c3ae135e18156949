// Load: the initial population of clause 4.3.3.
//
// Each node is filled by its own process through BulkLoader, several tables at once; a client node gets its copy of
// ITEM. The same seed gives the same rows for a warehouse on any number of nodes and threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "tpcc/schema/schema.h"
#include "txn/database.h"

namespace gannet::tpcc {

struct LoadOptions {
  int threads = 2;  // of this process; more than 5 per node are not used
  uint64_t seed = 1;
  // The initial dates (H_DATE, O_ENTRY_D, C_SINCE); 0: now.
  Date date = 0;
};

struct LoadProgress {
  // Each warehouse of this process's nodes has kPartsPerWarehouse: itself and its districts, its stock, its customers,
  // and their orders. The rows of a loaded part exist; indexes may still be built.
  uint32_t parts_loaded = 0;
  uint32_t parts = 0;
  uint64_t rows = 0;  // so far, in all tables
};

// Called after each part of a warehouse, one call at a time, on a loading thread. The parts of one kind are loaded for
// all warehouses of a node before those of the next kind, so a load by few threads has whole warehouses at its end
// only.
using LoadCallback = std::function<void(const LoadProgress&)>;

// Fills the empty tables of the nodes of this process: `tables[i]` are those of `nodes[i]`. They must not be used yet.
// `progress` may be null. After an error the tables are not usable, and the incomplete load must not be kept
// (Database::CloseWithoutCheckpoint). Cancelled by DatabaseOptions::stop.
Status Load(std::span<txn::Database* const> nodes, std::span<const Tables> tables, const LoadOptions& options,
            const LoadCallback& progress);

}  // namespace gannet::tpcc
