// The tables of TPC-C in a Database: their indexes, their sizes, and the owners of their rows.
//
// Tables with point access have hash indexes; those scanned by range have ordered indexes, of a kind that can be
// chosen. Warehouse w and all its rows are owned by node (w - 1) % num_nodes, counting the nodes that own rows; every
// node has a copy of ITEM, which never changes.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "tpcc/schema/keys.h"
#include "tpcc/schema/rows.h"
#include "txn/database.h"
#include "txn/store/table.h"

namespace gannet::tpcc {

inline constexpr uint32_t kDistricts = 10;  // per warehouse

// Sizes of the initial population. The default is the specification's; tests use smaller ones.
struct Scale {
  uint32_t items = 100000;                 // also stocks per warehouse
  uint32_t customers_per_district = 3000;  // also initial orders per district

  // Initially undelivered orders: the last 30%.
  constexpr uint32_t undelivered_orders() const { return customers_per_district * 3 / 10; }
  constexpr uint32_t delivered_orders() const { return customers_per_district - undelivered_orders(); }
  // Number of last names in use (clause 4.3.3.1 gives the first customers all of them).
  constexpr uint32_t last_names() const { return customers_per_district < 1000 ? customers_per_district : 1000; }
};

struct SchemaOptions {
  uint32_t warehouses = 1;  // at most kMaxWarehouses, at least one per node
  Scale scale = {};
  // The kind of the ordered tables. It must be ordered. CUSTOMER_BY_NAME has byte keys: if this kind takes integer keys
  // only, that table has kXStore.
  txn::IndexKind ordered_index = txn::IndexKind::kXStore;
  // Rights of the ordered tables. None: the most that the kind allows. CUSTOMER_BY_NAME, if it has another kind, has
  // the rights of that kind.
  std::optional<txn::IndexRights> index_rights = {};
};

// The tables; every node creates them before Database::Start. Plain data: pointers into the database, which must
// outlive this.
struct Tables {
  // InvalidArgument says which option is wrong.
  static StatusOr<Tables> Create(txn::Database& database, const SchemaOptions& options);
  // Finds the tables that Create made in this database earlier. NotFound names the first missing one.
  static StatusOr<Tables> Find(const txn::Database& database, const SchemaOptions& options);

  uint32_t warehouses = 0;
  Scale scale = {};

  const txn::Table* item = nullptr;
  const txn::Table* warehouse = nullptr;
  const txn::Table* warehouse_ytd = nullptr;
  const txn::Table* district = nullptr;
  const txn::Table* district_ytd = nullptr;
  const txn::Table* district_info = nullptr;
  const txn::Table* customer = nullptr;
  const txn::Table* customer_info = nullptr;
  const txn::Table* customer_data = nullptr;
  const txn::Table* stock = nullptr;
  const txn::Table* stock_info = nullptr;
  const txn::Table* customer_by_name = nullptr;  // no payload: the customer's number is in the key
  const txn::Table* history = nullptr;
  const txn::Table* order = nullptr;
  const txn::Table* order_by_customer = nullptr;  // no payload
  const txn::Table* new_order = nullptr;          // no payload
  const txn::Table* order_line = nullptr;
};

// The owner of warehouse w (1-based), and the number of warehouses that a node owns.
constexpr rdma::NodeId OwnerOfWarehouse(uint32_t w, int num_nodes) {
  return static_cast<rdma::NodeId>((w - 1) % static_cast<uint32_t>(num_nodes));
}
constexpr uint32_t WarehousesOfNode(uint32_t warehouses, rdma::NodeId node, int num_nodes) {
  const uint32_t nodes = static_cast<uint32_t>(num_nodes);
  if (node >= nodes) return 0;
  return warehouses / nodes + (node < warehouses % nodes ? 1 : 0);
}

// The placement of every table but ITEM.
txn::Placement PlacementByWarehouse();

}  // namespace gannet::tpcc
