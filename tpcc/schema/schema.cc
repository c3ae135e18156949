#include "tpcc/schema/schema.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "index/registry.h"

namespace gannet::tpcc {
namespace {

rdma::NodeId OwnerOf(const index::Key& key, int num_nodes) {
  return OwnerOfWarehouse(WarehouseOf(key), num_nodes);
}

int OwnerOfRange(const index::Key& from, const index::Key& to, int num_nodes) {
  const uint32_t w = WarehouseOf(from);
  return w == WarehouseOf(to) ? OwnerOfWarehouse(w, num_nodes) : txn::Placement::kSeveralNodes;
}

// A table of the schema, and the member of Tables that points to it.
struct Definition {
  const txn::Table* Tables::*member;
  txn::TableOptions options;
};

std::vector<Definition> Definitions(const SchemaOptions& schema, uint32_t warehouses_of_node) {
  const uint64_t w = warehouses_of_node;
  const uint64_t districts = w * kDistricts;
  const uint64_t customers = districts * schema.scale.customers_per_district;
  std::vector<Definition> definitions;
  auto add = [&](const txn::Table* Tables::*member, const char* name, txn::IndexKind index, size_t payload_bytes,
                 uint64_t rows) {
    definitions.push_back(
        {.member = member,
         .options = {.name = name,
                     .index = index,
                     .index_rights = index == schema.ordered_index ? schema.index_rights : std::nullopt,
                     .payload_bytes = payload_bytes,
                     .expected_rows = rows,
                     .placement = PlacementByWarehouse()}});
  };
  using enum txn::IndexKind;
  const txn::IndexKind ordered = schema.ordered_index;
  add(&Tables::item, "item", kHash, sizeof(Item), schema.scale.items);
  definitions.back().options.placement = txn::Placement::Replicated();
  add(&Tables::warehouse, "warehouse", kHash, sizeof(Warehouse), w);
  add(&Tables::warehouse_ytd, "warehouse_ytd", kHash, sizeof(WarehouseYtd), w);
  add(&Tables::district, "district", kHash, sizeof(District), districts);
  add(&Tables::district_ytd, "district_ytd", kHash, sizeof(DistrictYtd), districts);
  add(&Tables::district_info, "district_info", kHash, sizeof(DistrictInfo), districts);
  add(&Tables::customer, "customer", kHash, sizeof(Customer), customers);
  add(&Tables::customer_info, "customer_info", kHash, sizeof(CustomerInfo), customers);
  add(&Tables::customer_data, "customer_data", kHash, sizeof(CustomerData), customers);
  add(&Tables::stock, "stock", kHash, sizeof(Stock), w * schema.scale.items);
  add(&Tables::stock_info, "stock_info", kHash, sizeof(StockInfo), w * schema.scale.items);
  add(&Tables::customer_by_name, "customer_by_name", ordered, 0, customers);
  definitions.back().options.key_kind = index::KeyKind::kBytes;
  definitions.back().options.max_key_bytes = CustomerNameKey::kBytes;
  add(&Tables::history, "history", ordered, sizeof(History), customers);
  add(&Tables::order, "order", ordered, sizeof(Order), customers);
  add(&Tables::order_by_customer, "order_by_customer", ordered, 0, customers);
  add(&Tables::new_order, "new_order", ordered, 0, districts * schema.scale.undelivered_orders());
  add(&Tables::order_line, "order_line", ordered, sizeof(OrderLine), customers * 10);
  return definitions;
}

Status CheckOptions(const SchemaOptions& options, int num_nodes) {
  if (options.warehouses < 1 || options.warehouses > kMaxWarehouses) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d warehouses: choose between 1 and %d", options.warehouses, kMaxWarehouses));
  }
  if (options.warehouses < static_cast<uint32_t>(num_nodes)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d warehouses on %d nodes: every node needs at least one warehouse, so use fewer nodes",
                        options.warehouses, num_nodes));
  }
  const Scale& scale = options.scale;
  if (scale.customers_per_district < 10 || scale.customers_per_district > kMaxCustomersPerDistrict) {
    return absl::InvalidArgumentError(absl::StrFormat("%d customers per district: choose between 10 and %d",
                                                      scale.customers_per_district, kMaxCustomersPerDistrict));
  }
  const index::IndexKindEntry* const ordered = index::FindIndexKind(options.ordered_index);
  if (ordered == nullptr || !ordered->traits.ordered) {
    return absl::InvalidArgumentError(
        absl::StrFormat("ordered index %s: scans find no order in it; choose another kind, such as xstore",
                        ordered == nullptr ? "of an unknown kind" : ordered->name));
  }
  GANNET_RETURN_IF_ERROR(index::RightsFor(*ordered, options.index_rights).status());
  if (scale.items < 1) return absl::InvalidArgumentError("0 items: choose at least 1");
  return absl::OkStatus();
}

}  // namespace

txn::Placement PlacementByWarehouse() {
  return {.owner = OwnerOf, .range_owner = OwnerOfRange};
}

StatusOr<Tables> Tables::Create(txn::Database& database, const SchemaOptions& options) {
  const int num_nodes = database.data_nodes();
  GANNET_RETURN_IF_ERROR(CheckOptions(options, num_nodes));
  // Tables have the same size on all nodes, so that they are created alike everywhere; but a client has almost no rows.
  const uint32_t most = database.owns_rows() ? WarehousesOfNode(options.warehouses, 0, num_nodes) : 0;
  Tables tables{.warehouses = options.warehouses, .scale = options.scale};
  for (const Definition& definition : Definitions(options, most)) {
    StatusOr<const txn::Table*> table = database.CreateTable(definition.options);
    if (!table.ok()) return table.status();
    tables.*definition.member = *table;
  }
  return tables;
}

StatusOr<Tables> Tables::Find(const txn::Database& database, const SchemaOptions& options) {
  Tables tables{.warehouses = options.warehouses, .scale = options.scale};
  for (const Definition& definition : Definitions(options, 1)) {
    const txn::Table* table = database.FindTable(definition.options.name);
    if (table == nullptr) {
      return absl::NotFoundError(
          absl::StrFormat("there is no table %s: create the tables of TPC-C first", definition.options.name));
    }
    tables.*definition.member = table;
  }
  return tables;
}

}  // namespace gannet::tpcc
