#include "tpcc/consistency.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "absl/strings/str_format.h"
#include "base/share_work.h"
#include "base/stop.h"
#include "base/thread.h"
#include "tpcc/conditions.h"
#include "tpcc/fact_gatherer.h"
#include "tpcc/facts.h"

namespace gannet::tpcc {
namespace {

Facts EmptyFacts(const Tables& tables) {
  Facts facts{.scale = tables.scale, .warehouses = {}};
  facts.warehouses.resize(tables.warehouses);
  for (WarehouseFacts& warehouse : facts.warehouses) {
    for (DistrictFacts& district : warehouse.districts) district.customers.resize(tables.scale.customers_per_district);
  }
  return facts;
}

// The number of the database that reads a warehouse: the one that owns it, or the first one.
size_t ReaderOf(uint32_t warehouse, std::span<txn::Database* const> nodes) {
  const rdma::NodeId owner = OwnerOfWarehouse(warehouse, nodes[0]->data_nodes());
  const auto found = std::ranges::find(nodes, owner, &txn::Database::node_id);
  return found == nodes.end() ? 0 : static_cast<size_t>(found - nodes.begin());
}

}  // namespace

StatusOr<std::vector<ConditionResult>> CheckConsistency(std::span<txn::Database* const> nodes,
                                                        std::span<const Tables> tables, const std::atomic<bool>* stop) {
  if (nodes.empty() || nodes.size() != tables.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d nodes with %d sets of tables: give one of each per node", nodes.size(), tables.size()));
  }
  Facts facts = EmptyFacts(tables[0]);
  const auto gather = [&](size_t i, int) -> Status {
    GANNET_RETURN_IF_ERROR(CheckStop(stop, "the consistency conditions were checked"));
    const auto warehouse = static_cast<uint32_t>(i + 1);
    const size_t reader = ReaderOf(warehouse, nodes);
    const StatusOr<std::unique_ptr<txn::Session>> session = nodes[reader]->OpenSession();
    if (!session.ok()) return session.status();
    return FactGatherer(session->get(), &tables[reader], &facts).Gather(warehouse);
  };
  GANNET_RETURN_IF_ERROR(ShareWork("check", tables[0].warehouses, HardwareThreads(), gather));
  return EvaluateConditions(facts);
}

}  // namespace gannet::tpcc
