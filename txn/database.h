// Database: the tables of one node and its part in a cluster. Session: one worker thread's use of it.
//
//   auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1});
//   auto database = Database::Open(fabric->get(), /*node=*/0, {});
//   auto table = (*database)->CreateTable({.name = "accounts", .payload_bytes = sizeof(Account)});
//   (*database)->Start();
//   auto session = (*database)->OpenSession();
//   Status status = (*session)->RunBlocking([&](Transaction& t) { return Transfer(t, **table, 1, 2, 100); });
//
// Every node of a cluster opens the database and creates the same tables in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "index/index.h"
#include "rdma/base/random.h"
#include "rdma/base/status.h"
#include "rdma/coro/task.h"
#include "rdma/coro/worker.h"
#include "rdma/fabric.h"
#include "txn/blocking.h"
#include "txn/path_chooser.h"
#include "txn/table.h"
#include "txn/transaction.h"

namespace gannet::txn {

struct DatabaseOptions {
  ReadPathPolicy read_path = ReadPathPolicy::kAdaptive;  // how remote records are read
  int server_threads = 1;                                // run RPC handlers when the workers do not
  absl::Duration call_timeout = absl::Seconds(5);
  size_t location_cache_bytes = 1 << 20;  // per session and remote hash index
};

struct TableStatistics {
  std::string table;
  std::string index_kind;
  uint64_t record_bytes = 0;  // blocks of this node's live records
  index::Statistics index = {};
};

// What happened to one call of Run.
struct RunOutcome {
  uint32_t aborts = 0;  // attempts that met a conflict
};

struct DatabaseState;
struct SessionState;

class Database {
 public:
  // Attaches as node `node`. `fabric` must outlive the database.
  static StatusOr<std::unique_ptr<Database>> Open(rdma::Fabric* fabric, rdma::NodeId node,
                                                  const DatabaseOptions& options);
  ~Database();

  // Before Start. InvalidArgument names the option that is wrong.
  StatusOr<const Table*> CreateTable(const TableOptions& options);
  // Null if there is none.
  const Table* FindTable(const std::string& name) const;

  // Serves the other nodes and waits until they do.
  Status Start(absl::Duration wait_for_others = absl::Seconds(30));

  // One per worker thread. Thread-safe.
  StatusOr<std::unique_ptr<Session>> OpenSession();

  // For programs without coroutines (txn/blocking.h): runs `body` on the calling thread, with a session that this
  // thread keeps for the next call, until it commits. What it returns: as Session::Run.
  Status Run(const std::function<Status(BlockingTransaction&)>& body);

  // This node's part of every table. Walks the indexes: slow.
  std::vector<TableStatistics> table_statistics();
  rdma::SlabStatistics memory_statistics() const;
  rdma::Fabric& fabric();
  rdma::NodeId node_id() const;
  DatabaseState& state() { return *state_; }  // for txn/ itself

 private:
  explicit Database(std::unique_ptr<DatabaseState> state);
  std::unique_ptr<DatabaseState> state_;
};

// Not thread-safe: belongs to the thread that uses it.
class Session {
 public:
  ~Session();

  // Runs `body` (Task<Status>(Transaction&)) until it commits: conflicts are retried after a randomised back-off. What
  // it returns: Ok = committed; Unknown = perhaps committed; anything else = rolled back: the body's own error
  // (believed because its read set validated), or why the commit failed. `outcome` may be null.
  template <class Body>
  coro::Task<Status> Run(Body body, RunOutcome* outcome = nullptr) {
    for (uint32_t attempt = 0;; ++attempt) {
      if (shares_thread_) co_await worker().Yield();  // other coroutines and other nodes' calls have their turn
      Transaction transaction = Begin();
      Status status = co_await body(transaction);
      status = co_await Conclude(transaction, std::move(status));
      if (outcome != nullptr) outcome->aborts = attempt;
      if (!absl::IsAborted(status)) co_return status;
      co_await worker().SleepUntil(BackOffUntil(attempt));
    }
  }

  // The same for a thread without coroutines.
  template <class Body>
  Status RunBlocking(Body body, RunOutcome* outcome = nullptr) {
    return worker().BlockOn(Run(std::move(body), outcome));
  }

  // Begin / Commit by hand. The transaction must end before the session.
  Transaction Begin();

  Database& database();
  coro::Worker& worker();
  rdma::Channel& channel();
  // What this session's location and learned caches hold and did, by table name, over all remote nodes.
  std::vector<std::pair<std::string, index::ClientStatistics>> client_statistics() const;
  SessionState& state() { return *state_; }  // for txn/ itself

 private:
  friend class Database;
  explicit Session(std::unique_ptr<SessionState> state);
  // Commits if the body was content; else rolls back, and believes the body's error only if its read set validates.
  coro::Async<Status> Conclude(Transaction& transaction, Status body_status);
  uint64_t BackOffUntil(uint32_t attempt);
  bool shares_thread_ = false;
  std::unique_ptr<SessionState> state_;
};

// Fills this node's part of an empty table, without transactions: nobody may use the table yet.
class BulkLoader {
 public:
  BulkLoader(Session* session, const Table* table);
  ~BulkLoader();
  // Keys of an ordered table come in strictly ascending order. The key must belong to this node.
  Status Add(const Key& key, std::span<const std::byte> payload);
  template <PayloadType Row>
  Status Add(const Key& key, const Row& row) {
    return Add(key, std::as_bytes(std::span(&row, 1)));
  }
  // Builds the index. Nothing is visible before.
  Status Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gannet::txn
