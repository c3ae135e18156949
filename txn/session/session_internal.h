// The insides of Database and Session, shared by the files of txn/ only.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coro/worker.h"
#include "base/random.h"
#include "base/thread.h"
#include "index/service.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"
#include "txn/access/path_chooser.h"
#include "txn/commit/debts.h"
#include "txn/commit/precedence.h"
#include "txn/database.h"
#include "txn/durable/commit_log.h"
#include "txn/repair/peers.h"
#include "txn/repair/repair.h"
#include "txn/session.h"

namespace gannet::txn {

class Durability;
class OwnerService;
class RunSessions;
class TransactionImpl;

// Bytes of live records by table. One writer adds (a session, or a server thread under a lock), anybody reads.
class LiveBytes {
 public:
  explicit LiveBytes(size_t tables) : bytes_(tables) {}
  void Add(TableId table, int64_t bytes) {
    std::atomic<int64_t>& counter = bytes_[table];
    counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  int64_t Of(TableId table) const { return bytes_[table].load(std::memory_order_relaxed); }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::atomic<int64_t>> bytes_;
};

struct DatabaseState {
  ~DatabaseState();

  Database* database = nullptr;
  DatabaseOptions options;
  std::unique_ptr<rdma::Fabric> owned_fabric;  // of a database that was opened with a directory alone
  rdma::Fabric* fabric = nullptr;
  int data_nodes = 0;  // as DatabaseOptions says, but never 0
  std::unique_ptr<rdma::Node> node;
  std::unique_ptr<rdma::SlabAllocator> slab;
  std::unique_ptr<rdma::EpochManager> epochs;
  std::unique_ptr<Precedence> precedence;
  std::unique_ptr<index::IndexService> indexes;
  std::unique_ptr<OwnerService> owner_service;
  std::unique_ptr<Durability> durability;
  std::vector<std::unique_ptr<Table>> tables;
  // Numbers of requests (wire.h): above those of whoever was this node before.
  std::atomic<uint64_t> next_request{0};
  uint64_t incarnation = 0;  // the first of them
  std::unique_ptr<Peers> peers;
  std::unique_ptr<Repairer> repairer;         // null on a node that is alone
  std::vector<std::atomic<uint64_t>> joined;  // by which connection, at each other node (peers.h); 0: not
  bool started = false;

  Mutex sessions_mutex;                   // guards what follows, but for run_sessions
  bool closed = false;                    // no session is opened any more
  std::vector<LiveBytes*> session_bytes;  // of open sessions
  std::vector<int64_t> settled_bytes;     // of closed sessions and of calls served for others
  uint64_t sessions_opened = 0;
  // What closed sessions could not settle, by owner bits: for the next session that has them.
  std::vector<std::pair<uint64_t, std::vector<std::shared_ptr<Debt>>>> left_debts;
  std::unique_ptr<RunSessions> run_sessions;

  // Whether sessions of this node call, or await verbs: a node alone whose CPU may do everything itself does not.
  bool calls() const { return fabric->num_nodes() > 1 || !fabric->capabilities().cpu_coherent_atomics; }
  const Table* TableById(TableId id) const { return id < tables.size() ? tables[id].get() : nullptr; }
};

struct SessionState {
  DatabaseState* db = nullptr;
  Session* session = nullptr;
  std::unique_ptr<rdma::Channel> channel;
  std::unique_ptr<CommitLog> log;
  std::unique_ptr<rdma::SlabCache> slab;
  std::unique_ptr<rdma::EpochManager::Participant> participant;  // of all its transactions
  index::Context context;                                        // of these two
  std::unique_ptr<LiveBytes> live_bytes;
  Debts debts{this};  // before the worker, whose coroutines settle them
  coro::Worker worker;
  Random random{1};
  rdma::NodeId self = 0;
  uint64_t owner_bits = 0;
  std::byte* memory = nullptr;
  // The owner's CPU may lock, read and write records beside one-sided verbs. If not, own records take the remote path.
  bool direct = true;

  // remote_indexes[table * nodes + node], opened at first use.
  std::vector<std::unique_ptr<index::RemoteIndex>> remote_indexes;
  PathChooser paths;
  std::vector<std::unique_ptr<TransactionImpl>> idle_transactions;
  std::vector<const TransactionImpl*> transactions;  // all, also those that are not idle

  // A record of this node, for its CPU.
  std::byte* Direct(rdma::GlobalAddress record) const { return memory + record.offset(); }
  bool OwnedHere(const Table& table, const Key& key, rdma::NodeId* owner) const {
    *owner = table.OwnerOf(key, self);
    return *owner == self && direct;
  }
  StatusOr<index::RemoteIndex*> RemoteIndexOf(const Table& table, rdma::NodeId node);
};

// How commits and reads of this layer are numbered among the methods of rdma/fabric.h (256-511).
inline constexpr rdma::MethodId kTxnPrepare = 256;    // make locked placeholders for inserts
inline constexpr rdma::MethodId kTxnFinish = 257;     // take records out of the index and mark them absent
inline constexpr rdma::MethodId kTxnRead = 258;       // find a record and return it: the RPC read path
inline constexpr rdma::MethodId kTxnLog = 259;        // append changes of the owner's records to its log
inline constexpr rdma::MethodId kTxnCancel = 260;     // undo a kTxnPrepare if it was done, and never do it if not
inline constexpr rdma::MethodId kTxnDecide = 261;     // note a commit over several nodes, and do the owner's part
inline constexpr rdma::MethodId kTxnFinishFor = 262;  // do the owner's part of what a dead node has decided
inline constexpr rdma::MethodId kTxnJoin = 263;       // ask for locks from now on
inline constexpr rdma::MethodId kTxnScan = 265;       // find the records of a range and return them
inline constexpr rdma::MethodId kTxnForwarded = 264;  // are all decisions of a dead node carried out?

}  // namespace gannet::txn
