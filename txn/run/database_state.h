// DatabaseState: everything that a Database owns, for the parts of txn/ that make, change and use a database, and for
// tools. Other parts get what they need of it (LocalNode, and the arguments of their constructors).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/thread.h"
#include "index/own_locations.h"
#include "index/service.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"
#include "txn/node/client_caches.h"
#include "txn/node/index_damage.h"
#include "txn/node/local_node.h"
#include "txn/node/record_bytes.h"
#include "txn/node/table_set.h"
#include "txn/peer/incarnation.h"
#include "txn/peer/peers.h"
#include "txn/peer/pending_completer.h"
#include "txn/peer/precedence.h"
#include "txn/peer/repair.h"
#include "txn/peer/table_digests.h"
#include "txn/session/quiescent_interval.h"
#include "txn/session/session_registry.h"
#include "txn/store/options.h"
#include "txn/store/table.h"

namespace gannet::txn {

class Database;
class Durability;
class OwnerService;
class RunSessions;

struct DatabaseState {
  ~DatabaseState();

  Database* database = nullptr;  // that owns this
  DatabaseOptions options;
  std::unique_ptr<rdma::Fabric> owned_fabric;  // of a database that was opened with a directory alone
  rdma::Fabric* fabric = nullptr;
  std::unique_ptr<rdma::Node> node;
  uint64_t attached_nanos = 0;  // when the node took its place
  std::unique_ptr<rdma::SlabAllocator> slab;
  std::unique_ptr<rdma::EpochManager> epochs;
  std::unique_ptr<Precedence> precedence;
  std::unique_ptr<index::IndexService> indexes;
  TableSet tables;
  uint32_t next_table = 0;          // number of the next one
  uint32_t first_new_table = 0;     // tables with smaller numbers were in the directory at Open
  uint64_t catalog_generation = 0;  // the greatest that a manifest may have (catalog.h)
  // Held while tables are created, renamed or dropped, and by Start and Close.
  Mutex create_mutex;
  RecordBytes record_bytes;
  ClientCaches client_caches;
  std::shared_ptr<index::LocationBudget> location_budget;
  std::unique_ptr<LentRecords> lent_records;
  std::unique_ptr<RecordStock> record_stock;
  IndexDamage index_damage;
  std::unique_ptr<index::shared_leaf::ClaimHolder> claims;
  std::unique_ptr<TableDigests> table_digests;
  std::unique_ptr<LocalNode> local;  // refers to members above
  std::unique_ptr<Incarnation> incarnation;
  std::unique_ptr<Peers> peers;
  std::unique_ptr<Durability> durability;
  std::unique_ptr<OwnerService> owner_service;
  std::unique_ptr<Repairer> repairer;  // null on a node that is alone
  std::unique_ptr<PendingCompleter> pending;
  ChangeCounters change_counters;
  SessionRegistry sessions;
  std::unique_ptr<RunSessions> run_sessions;
  bool start_was_called = false;
  std::atomic<bool> started{false};
};

}  // namespace gannet::txn
