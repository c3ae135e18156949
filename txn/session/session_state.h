// SessionState: one session, with the parts of the database that its transactions use. Shared only by the files of
// txn/.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "base/coro/worker.h"
#include "base/home_process.h"
#include "base/random.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "index/witness_word.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"
#include "txn/durable/commit_log.h"
#include "txn/node/local_node.h"
#include "txn/node/record_bytes.h"
#include "txn/node/table_set.h"
#include "txn/path/measured_access.h"
#include "txn/path/offload_chooser.h"
#include "txn/peer/incarnation.h"
#include "txn/peer/peers.h"
#include "txn/peer/pending_completer.h"
#include "txn/peer/precedence.h"
#include "txn/session/conflict_place.h"
#include "txn/session/pending_operations.h"
#include "txn/session/quiescent_interval.h"
#include "txn/session/session_registry.h"
#include "txn/session/transaction_meter.h"
#include "txn/store/conflict.h"

namespace gannet::txn {

class Database;
class Durability;
class Session;

// A transaction as its session sees it, whether it is in use or idle.
class OpenTransaction {
 public:
  virtual ~OpenTransaction() = default;
  // True if it asked for the record's lock, and may have it.
  virtual bool MayHold(rdma::GlobalAddress record) const = 0;
  // The index is about to be destroyed.
  virtual void ForgetIndex(const index::RemoteIndex* index) = 0;
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

struct SessionState {
  Database* database = nullptr;
  const LocalNode* local = nullptr;
  Precedence* precedence = nullptr;
  Incarnation* incarnation = nullptr;
  const Peers* peers = nullptr;
  Durability* durability = nullptr;
  SessionRegistry* registry = nullptr;
  Session* session = nullptr;
  std::unique_ptr<rdma::Channel> channel;
  std::unique_ptr<CommitLog> log;
  std::unique_ptr<rdma::SlabCache> slab;
  std::unique_ptr<rdma::EpochManager::Participant> participant;  // of all its transactions
  index::Context context;                                        // of these two
  std::unique_ptr<LiveBytes> live_bytes;
  PendingOperations pending{this};
  PendingCompleter* collector = nullptr;
  coro::Worker worker;
  Random random{1};
  rdma::NodeId self = 0;
  uint64_t owner_bits = 0;
  std::byte* memory = nullptr;
  HomeProcess home;  // that of the database
  // The owner's CPU may lock, read and write records while others use one-sided verbs. If not, own records take the
  // remote path.
  bool direct = true;
  // The session's own counter, and those of all sessions, on a node that is alone (quiescent_interval.h).
  ChangeCounter* change_counter = nullptr;
  const ChangeCounters* change_counters = nullptr;

  // The clients of indexes: remote_indexes[table * nodes + node], opened at first use.
  std::vector<std::unique_ptr<index::RemoteIndex>> remote_indexes;
  // The size of the rows when it was opened; 0: variable. Those of a table that was widened are opened again, because
  // they may lead to blocks that are too small for a READ of a row.
  std::vector<size_t> opened_for_bytes;
  std::vector<const index::CachePool*> cache_pools;  // of their kinds
  size_t forgotten_tables = 0;                       // TableSet::removals when ForgetDroppedTables looked last
  OffloadChooser paths;
  const rdma::EpochManager* epochs = nullptr;  // knows what loads the nodes announce
  std::vector<std::unique_ptr<OpenTransaction>> idle_transactions;
  std::vector<OpenTransaction*> transactions;  // all, also those in use
  TransactionMeter meter;
  ConflictPlace conflict;  // of the last conflict, if it was with a row that is known

  // A record of this node, for its CPU.
  std::byte* Direct(rdma::GlobalAddress record) const { return memory + record.offset(); }
  bool OwnedHere(const Table& table, const index::Key& key, rdma::NodeId* owner) const {
    *owner = table.OwnerOf(key, self);
    return *owner == self && direct;
  }
  // Validates a witness of another node without a verb (index::CachePool::Confirms). False: that takes a READ.
  bool Confirms(const index::Witness& witness) const {
    return std::ranges::any_of(cache_pools, [&](const auto* pool) { return pool->Confirms(witness, *local->claims); });
  }
  // A word of another node, READ just now, has the set of keys of the witness.
  bool HasSameSet(const index::Witness& witness, uint64_t now) const {
    if (index::IsSameSet(now, witness.seen)) return true;
    return local->claims != nullptr && local->claims->chains().Has(witness.word, witness.seen, now);
  }
  Status LockedTooLong(uint64_t state) const { return txn::LockedTooLong(*local, *peers, state); }
  StatusOr<index::RemoteIndex*> RemoteIndexOf(const Table& table, rdma::NodeId node);
  // Gives back the clients of indexes of dropped tables, and their caches.
  void ForgetDroppedTables();
  // Gives back one of these clients, which no transaction uses. `place`: in remote_indexes.
  void ForgetIndex(size_t place);

  // Worker::Yield for accesses, which may be measured.
  MeasuredYield Yield() { return {channel.get(), &worker}; }
  MeasuredAccess Measure(bool measured) { return {channel.get(), &paths, measured}; }
};

}  // namespace gannet::txn
