// Internals of Database and Session, shared only by the files of txn/.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/coro/worker.h"
#include "base/home_process.h"
#include "base/random.h"
#include "base/thread.h"
#include "index/own_locations.h"
#include "index/service.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"
#include "txn/access/calm.h"
#include "txn/access/conflict.h"
#include "txn/access/measured_access.h"
#include "txn/access/offload_chooser.h"
#include "txn/commit/debt_collector.h"
#include "txn/commit/debts.h"
#include "txn/commit/precedence.h"
#include "txn/database.h"
#include "txn/durable/commit_log.h"
#include "txn/owner/index_damage.h"
#include "txn/repair/incarnation.h"
#include "txn/repair/peers.h"
#include "txn/repair/repair.h"
#include "txn/session.h"
#include "txn/session/client_caches.h"
#include "txn/session/local_node.h"
#include "txn/session/record_bytes.h"
#include "txn/session/session_registry.h"
#include "txn/session/table_digests.h"
#include "txn/session/table_set.h"
#include "txn/session/transaction_meter.h"

namespace gannet::txn {

class Durability;
class OwnerService;
class RunSessions;
class TransactionImpl;

// Everything that a Database owns. Other parts get what they need of it (LocalNode, and the arguments of their
// constructors).
struct DatabaseState {
  ~DatabaseState();

  DatabaseOptions options;
  std::unique_ptr<rdma::Fabric> owned_fabric;  // of a database that was opened with a directory alone
  rdma::Fabric* fabric = nullptr;
  std::unique_ptr<rdma::Node> node;
  std::unique_ptr<rdma::SlabAllocator> slab;
  std::unique_ptr<rdma::EpochManager> epochs;
  std::unique_ptr<Precedence> precedence;
  std::unique_ptr<index::IndexService> indexes;
  TableSet tables;
  std::vector<std::unique_ptr<Table>> unused_tables;  // whose creation failed
  uint32_t next_table = 0;                            // number of the next one
  uint32_t first_new_table = 0;                       // tables with smaller numbers were in the directory at Open
  uint64_t catalog_generation = 0;                    // the greatest that a manifest may have (catalog.h)
  // Held while tables are created, renamed or dropped, and by Start and Close.
  Mutex create_mutex;
  RecordBytes record_bytes;
  ClientCaches client_caches;
  std::shared_ptr<index::LocationBudget> location_budget;
  std::unique_ptr<LentRecords> lent_records;
  std::unique_ptr<RecordStock> record_stock;
  IndexDamage index_damage;
  std::unique_ptr<TableDigests> table_digests;
  std::unique_ptr<LocalNode> local;  // refers to members above
  std::unique_ptr<Incarnation> incarnation;
  std::unique_ptr<Peers> peers;
  std::unique_ptr<Durability> durability;
  std::unique_ptr<OwnerService> owner_service;
  std::unique_ptr<Repairer> repairer;  // null on a node that is alone
  std::unique_ptr<DebtCollector> debts;
  ChangeCounters change_counters;
  SessionRegistry sessions;
  std::unique_ptr<RunSessions> run_sessions;
  bool start_was_called = false;
  std::atomic<bool> started{false};
};

// The entries of all tables and kinds with an access.
template <class Of>
std::vector<TablePaths> PathsOf(const TableSet& tables, const Of& of) {
  std::vector<TablePaths> result;
  for (const Table* table : tables) {
    for (size_t kind = 0; kind < kAccessKinds; ++kind) {
      const PathStatistics paths = of(table->id(), static_cast<AccessKind>(kind));
      if (paths.accesses() > 0) result.push_back({table->name(), static_cast<AccessKind>(kind), paths});
    }
  }
  return result;
}

// One session, with the parts of the database that its transactions use.
struct SessionState {
  Database* database = nullptr;
  const LocalNode* local = nullptr;
  Precedence* precedence = nullptr;
  Incarnation* incarnation = nullptr;
  Durability* durability = nullptr;
  SessionRegistry* registry = nullptr;
  Session* session = nullptr;
  std::unique_ptr<rdma::Channel> channel;
  std::unique_ptr<CommitLog> log;
  std::unique_ptr<rdma::SlabCache> slab;
  std::unique_ptr<rdma::EpochManager::Participant> participant;  // of all its transactions
  index::Context context;                                        // of these two
  std::unique_ptr<LiveBytes> live_bytes;
  Debts debts{this};
  DebtCollector* collector = nullptr;
  coro::Worker worker;
  Random random{1};
  rdma::NodeId self = 0;
  uint64_t owner_bits = 0;
  std::byte* memory = nullptr;
  HomeProcess home;  // that of the database
  // The owner's CPU may lock, read and write records while others use one-sided verbs. If not, own records take the
  // remote path.
  bool direct = true;
  // On a node that is alone: its own counter, and those of all sessions (calm.h).
  ChangeCounter* change_counter = nullptr;
  const ChangeCounters* change_counters = nullptr;

  // remote_indexes[table * nodes + node], opened at first use.
  std::vector<std::unique_ptr<index::RemoteIndex>> remote_indexes;
  // The size of the rows when it was opened; 0: variable. Those of a table that was widened are opened again, because
  // they may lead to blocks that are too small for a READ of a row.
  std::vector<size_t> opened_for_bytes;
  size_t forgotten_tables = 0;  // TableSet::removals when ForgetDroppedTables looked last
  OffloadChooser paths;
  const rdma::EpochManager* epochs = nullptr;  // knows what loads the nodes announce
  std::vector<std::unique_ptr<TransactionImpl>> idle_transactions;
  std::vector<TransactionImpl*> transactions;  // all, also those in use
  TransactionMeter meter;
  ConflictPlace conflict;  // of the last conflict, if it was with a row that is known

  // A record of this node, for its CPU.
  std::byte* Direct(rdma::GlobalAddress record) const { return memory + record.offset(); }
  bool OwnedHere(const Table& table, const Key& key, rdma::NodeId* owner) const {
    *owner = table.OwnerOf(key, self);
    return *owner == self && direct;
  }
  StatusOr<index::RemoteIndex*> RemoteIndexOf(const Table& table, rdma::NodeId node);
  // Gives back the clients of indexes of dropped tables, and their caches.
  void ForgetDroppedTables();
  // The same for one of them, which no transaction uses. `place`: in remote_indexes.
  void ForgetIndex(size_t place);

  // Worker::Yield for accesses, which may be measured.
  MeasuredYield Yield() { return {channel.get(), &worker}; }
  MeasuredAccess Measure(bool measured) { return {channel.get(), &paths, measured}; }
};

}  // namespace gannet::txn
