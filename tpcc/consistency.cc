#include "tpcc/consistency.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/strings/str_format.h"
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

// The warehouses that one database reads; its threads take them one by one.
struct Share {
  txn::Database* database = nullptr;
  const Tables* tables = nullptr;
  std::vector<uint32_t> warehouses;
  std::atomic<size_t> next{0};
};

Status GatherShare(Share& share, Facts* facts, const std::atomic<bool>* stop) {
  StatusOr<std::unique_ptr<txn::Session>> session = share.database->OpenSession();
  if (!session.ok()) return session.status();
  FactGatherer gatherer(session->get(), share.tables, facts);
  for (size_t i = share.next++; i < share.warehouses.size(); i = share.next++) {
    GANNET_RETURN_IF_ERROR(CheckStop(stop, "the consistency conditions were checked"));
    GANNET_RETURN_IF_ERROR(gatherer.Gather(share.warehouses[i]));
  }
  return absl::OkStatus();
}

// Assigns each warehouse to the database that owns it, or to the first one.
void Distribute(uint32_t warehouses, std::span<Share> shares) {
  const int num_nodes = shares[0].database->data_nodes();
  for (uint32_t w = 1; w <= warehouses; ++w) {
    const rdma::NodeId owner = OwnerOfWarehouse(w, num_nodes);
    auto share = std::find_if(shares.begin(), shares.end(),
                              [&](const Share& candidate) { return candidate.database->node_id() == owner; });
    (share == shares.end() ? shares.front() : *share).warehouses.push_back(w);
  }
}

}  // namespace

StatusOr<std::vector<ConditionResult>> CheckConsistency(std::span<txn::Database* const> nodes,
                                                        std::span<const Tables> tables, const std::atomic<bool>* stop) {
  if (nodes.empty() || nodes.size() != tables.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d nodes with %d sets of tables: give one of each per node", nodes.size(), tables.size()));
  }
  std::vector<Share> shares(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    shares[n].database = nodes[n];
    shares[n].tables = &tables[n];
  }
  Distribute(tables[0].warehouses, shares);

  Facts facts = EmptyFacts(tables[0]);
  Mutex mutex;
  Status result;
  std::vector<Thread> threads;
  const size_t per_node = std::max<size_t>(1, static_cast<size_t>(HardwareThreads()) / nodes.size());
  for (Share& share : shares) {
    for (size_t i = 0; i < std::min(per_node, share.warehouses.size()); ++i) {
      threads.emplace_back("check", [&] {
        Status status = GatherShare(share, &facts, stop);
        std::lock_guard lock(mutex);
        result.Update(std::move(status));
      });
    }
  }
  for (Thread& thread : threads) thread.join();
  GANNET_RETURN_IF_ERROR(result);
  return EvaluateConditions(facts);
}

}  // namespace gannet::tpcc
