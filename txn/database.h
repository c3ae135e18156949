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

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "index/index.h"
#include "log/file/file_system.h"
#include "log/log.h"
#include "rdma/base/random.h"
#include "rdma/base/status.h"
#include "rdma/coro/task.h"
#include "rdma/coro/worker.h"
#include "rdma/fabric.h"
#include "txn/blocking.h"
#include "txn/path_chooser.h"
#include "txn/precedence.h"
#include "txn/table.h"
#include "txn/transaction.h"

namespace gannet::txn {

// When the commit of a transaction is acknowledged, in a database with a directory.
enum class DurabilityMode : uint8_t {
  kNone,   // nothing is logged: what Close (or a Checkpoint while nothing runs) wrote survives, no more
  kAsync,  // at once; a crash loses at most the last group commit and what was being written: a few milliseconds, and
           // nothing that Database::durable_epoch says is durable
  kSync,   // when it is durable
};

// What the log and the checkpoints are written with.
enum class LogMedium : uint8_t {
  kFile,  // io_uring, past the page cache where the file system allows
  kPmem,  // mapped files by libpmem: persistent memory if the directory is on such
};

// A longer group commit would only make every commit wait.
inline constexpr absl::Duration kMaxGroupCommit = absl::Seconds(1);
inline constexpr size_t kMaxLogLargeBuffer = size_t{1} << 30;
// In bytes per second. A checkpoint that is written more slowly hardly ever ends, and meanwhile none of the log goes.
inline constexpr uint64_t kLeastCheckpointRate = uint64_t{1} << 20;
inline constexpr size_t kMinLogBuffer = size_t{4} << 10;
inline constexpr size_t kMaxLogBuffer = size_t{1} << 30;

struct DatabaseOptions {
  // Nodes 0 to data_nodes - 1 own the tables' rows. The others are clients: they have no rows but those of replicated
  // tables, and may come and go. The same on every node; 0: all nodes own rows.
  int data_nodes = 0;

  ReadPathPolicy read_path = ReadPathPolicy::kAdaptive;  // how remote records are read
  int server_threads = 1;                                // run RPC handlers when the workers do not
  absl::Duration call_timeout = absl::Seconds(5);
  size_t location_cache_bytes = 1 << 20;  // per session and remote hash index

  // Calls of Database::Run that go on at a time. Further ones wait.
  int run_sessions = 64;

  uint64_t seed = 0;  // of the back-off after conflicts

  // A Run that loses against other transactions for too long goes first, and the commits of others wait for it
  // (txn/precedence.h): at most so long, and at most 65 s. 0: never; a long transaction among many writers then may not
  // get through. The same on every node.
  absl::Duration precedence_limit = absl::Seconds(10);
  // It has lost for too long after 16 attempts and this time, or after 4 attempts and ten times this time.
  absl::Duration precedence_after = absl::Milliseconds(100);

  // Durability. Without a directory there is none, and the rest means nothing.
  std::string directory = {};  // of the whole cluster, no zero byte; with several nodes each has a sub-directory
  // Create the database if the directory holds none (txn/durable/data_directory.h says when it does). The same on every
  // node. False: NotFound then, so that a mistyped or unmounted directory is not an empty database.
  bool create_if_missing = false;
  DurabilityMode durability = DurabilityMode::kSync;
  LogMedium medium = LogMedium::kFile;
  // From one write of the log to the next, 1 us to kMaxGroupCommit; longer on a slow disk (log/group_commit.h).
  absl::Duration group_commit = absl::Microseconds(300);
  // A commit that is not durable by then returns Unknown: it is in memory, and may or may not survive.
  absl::Duration durable_within = absl::Seconds(10);
  absl::Duration checkpoint_every = absl::ZeroDuration();      // 0: only by Checkpoint
  uint64_t checkpoint_bytes_per_second = uint64_t{256} << 20;  // at least kLeastCheckpointRate; 0: as the disk can
  uint64_t log_segment_bytes = uint64_t{64} << 20;
  // So much of the log is made ready by Start, and kept ready as checkpoints free it: writing what was never written
  // before takes twice the work. 0: a little, as it is needed.
  uint64_t log_preallocate_bytes = 0;
  // Per session, 4 KiB to kMaxLogBuffer. What is larger than a few group commits only takes room in the processor's
  // caches.
  size_t log_buffer_bytes = size_t{256} << 10;
  // For larger transactions: one may change this much, by keys, payloads, 17 bytes each; else ResourceExhausted, when
  // the change is asked for. All of them on one node together take at most this at once, and as much again while they
  // are written, only while there are some; others wait. At most kMaxLogLargeBuffer.
  size_t log_large_buffer_bytes = size_t{256} << 20;
  int recovery_threads = 2;
  bool salvage = false;                              // recover what can be had of damaged files, and list what cannot
  std::string application = {};                      // kept in the manifest for whoever reads the directory
  std::shared_ptr<log::FileSystem> files = nullptr;  // null: as `medium` says
  uint64_t memory_bytes = uint64_t{8} << 30;         // address space for the records; Open(directory, ...) only

  // Set by another thread or a signal handler: Start, BulkLoader and Checkpoint return Cancelled soon, also those that
  // begin later. Transactions, Close and the checkpoints of checkpoint_every go on. May be null; must outlive the
  // database.
  const std::atomic<bool>* stop = nullptr;
};

struct TableStatistics {
  std::string table;
  std::string index_kind;
  uint64_t record_bytes = 0;  // blocks of this node's live records
  index::Statistics index = {};
};

// What Start found in the data directory.
struct RecoveryReport {
  uint64_t recovered_epoch = 0;
  uint64_t last_commit_wall_nanos = 0;  // when the last batch of the log was written; since 1970
  uint64_t log_segments = 0;
  uint64_t log_bytes = 0;
  uint64_t transactions = 0;         // in the log
  uint64_t changes = 0;              // in the log
  uint64_t undone_transactions = 0;  // in the log, but of an epoch that was not complete
  uint64_t undecided_parts = 0;      // of transactions of several nodes that never committed
  uint64_t checkpoint_id = 0;        // the newest; 0: none
  uint64_t checkpoint_bytes = 0;
  // Files of the newest checkpoint were damaged, and of their tables the checkpoint before and the log gave the same:
  // nothing is lost. 0: it was not needed. The next checkpoint replaces the damaged one.
  uint64_t older_checkpoint_id = 0;
  std::vector<std::string> replaced;  // what was damaged: one for each of these tables
  uint64_t records = 0;               // in memory now
  double log_seconds = 0;
  double load_seconds = 0;
  uint64_t peak_memory_bytes = 0;  // of the process
  bool torn_tail = false;
  std::vector<std::string> damages;  // left out; only with DatabaseOptions::salvage
};

// What happened to one call of Run.
struct RunOutcome {
  uint32_t aborts = 0;            // attempts that met a conflict
  bool asked_precedence = false;  // they were too many: it asked to go first (txn/precedence.h)
  // Set by a Run that did not wait for the disk: nobody outside may be told of its result, an error no less than Ok,
  // before Database::durable_epoch() has reached this (Session::WhenDurable); 0: at once.
  uint64_t durable_at = 0;
};

// When Run comes back, with DurabilityMode::kSync.
enum class Until {
  kDurable,
  // As soon as others see what was written. Whoever calls sees to it that the result is told to nobody before it is
  // durable: so a thread has some transactions at work, whose memory stays in its caches, and any number of results
  // that wait.
  kVisible,
};

struct DatabaseState;
struct SessionState;

class Database {
 public:
  // Attaches as node `node`. `fabric` must outlive the database. With a directory: NotFound if it holds no database and
  // none is to be created; DataLoss if a file of it, or of another node's directory, is missing or damaged. Then
  // nothing in it was changed.
  static StatusOr<std::unique_ptr<Database>> Open(rdma::Fabric* fabric, rdma::NodeId node,
                                                  const DatabaseOptions& options);
  // One node alone, over memory of its own, with its data in `directory` (DatabaseOptions::create_if_missing). Create
  // the same tables as ever, then Start recovers what they had.
  static StatusOr<std::unique_ptr<Database>> Open(const std::string& directory, DatabaseOptions options);
  // Closes, and drops what Close would say. No session may be open.
  ~Database();

  // Before Start. InvalidArgument names the option that is wrong.
  StatusOr<const Table*> CreateTable(const TableOptions& options);
  // Null if there is none.
  const Table* FindTable(const std::string& name) const;
  // In the order in which they were created.
  std::vector<const Table*> tables() const;

  // Recovers what the directory has, if there is one. Serves the other nodes, and waits until those that own rows are
  // there. With a directory all nodes start together, each in a thread or process of its own: none writes to its
  // directory before every node has recovered. If one node fails to recover, Start fails at all nodes, with that node's
  // number, code and reason, and no directory has changed. DeadlineExceeded: a node was not there, or did not call
  // Start, for `wait_for_others`; a node that lives and recovers is waited for. Cancelled by
  // DatabaseOptions::stop. After an error, open the database again; the directory has what it had.
  Status Start(absl::Duration wait_for_others = absl::Seconds(30));

  // One per worker thread. Thread-safe. ResourceExhausted if the node has no channel left (rdma::Node::OpenChannel);
  // sessions of Run that nobody borrows make room. FailedPrecondition before Start and after Close.
  StatusOr<std::unique_ptr<Session>> OpenSession();

  // For programs without coroutines (txn/blocking.h): runs `body` on the calling thread until it commits. What it
  // returns, or throws: as Session::Run. Thread-safe. It borrows one of DatabaseOptions::run_sessions sessions, which
  // all threads share; if all are borrowed it waits for one, at most durable_within, then ResourceExhausted.
  Status Run(const std::function<Status(BlockingTransaction&)>& body);

  // Makes what was committed, and what BulkLoader loaded, durable by a checkpoint of this node; transactions may run
  // meanwhile (not with DurabilityMode::kNone). FailedPrecondition without a directory. Cancelled by
  // DatabaseOptions::stop: the checkpoints that were there are there.
  Status Checkpoint();
  // Flushes the log and stops it; takes a checkpoint if one is needed: with DurabilityMode::kNone, or if none has what
  // a BulkLoader loaded. FailedPrecondition if a session is open, or a Run under way: then nothing was done, and Close
  // may be called again. (Sessions of Run that nobody borrows are closed here.) The nodes of a cluster close together,
  // as they start: each waits a while for the others. Another error: not everything that was committed is durable. But
  // for FailedPrecondition the directory is free for another Open then, also if this object lives on; OpenSession and
  // Run return FailedPrecondition from then on, also without a directory. A second call does nothing.
  Status Close();
  // Close, but without a checkpoint: after a load that failed or was stopped, half of which would be kept otherwise.
  // What no checkpoint has is gone, as after a crash: all that a BulkLoader loaded; with DurabilityMode::kNone all
  // changes.
  Status CloseWithoutCheckpoint();

  // Of Start; all zero without a directory.
  const RecoveryReport& recovery() const;
  // All zero without a log.
  log::LogStatistics log_statistics() const;
  // The changes that this node's sessions committed before this call survive a crash once durable_epoch() has reached
  // what it returns: so a program that uses DurabilityMode::kAsync can tell when. Thread-safe; 0 without a log.
  uint64_t logged_epoch() const;
  // Never goes back. Thread-safe; 0 without a log.
  uint64_t durable_epoch() const;
  // Ok, or why commits cannot be made durable now.
  Status log_health() const;
  // How the log is written; empty without one.
  std::string log_description() const;

  // How often transactions of this node starved, and its commits waited for starving ones (txn/precedence.h).
  PrecedenceStatistics precedence_statistics() const;

  // This node's part of every table. Walks the indexes: slow.
  std::vector<TableStatistics> table_statistics();
  rdma::SlabStatistics memory_statistics() const;
  // Makes the memory that the next `bytes` of records and indexes will take resident now (rdma/slab.h). Any time.
  void PrefaultMemory(uint64_t bytes);
  rdma::Fabric& fabric();
  rdma::NodeId node_id() const;
  // Nodes that own rows, and whether this is one of them.
  int data_nodes() const;
  bool owns_rows() const { return node_id() < data_nodes(); }
  // For layers above that answer calls of their own: Node::Handle, before Start.
  rdma::Node& node();
  DatabaseState& state() { return *state_; }  // for txn/ itself

 private:
  explicit Database(std::unique_ptr<DatabaseState> state);
  Status StartNode(absl::Duration wait_for_others);
  StatusOr<std::unique_ptr<Session>> MakeSession();
  enum class LastCheckpoint : uint8_t { kIfNeeded, kNever };
  Status Close(LastCheckpoint checkpoint);
  // What Close does once no session can be opened.
  Status CloseFiles(LastCheckpoint checkpoint);
  Status WaitForDataNodes(absl::Duration timeout);
  std::unique_ptr<DatabaseState> state_;
};

// Not thread-safe: belongs to the thread that uses it.
class Session {
 public:
  ~Session();

  // Runs `body` (Task<Status>(Transaction&)) until it commits: conflicts are retried after a randomised back-off.
  //
  // What an attempt comes to is decided in this order:
  //   - an operation of it failed (txn/transaction.h): that failure, whatever the body returned. Aborted: the body runs
  //     again; else Run returns it.
  //   - the body returned Aborted: it asks for another attempt, and gets one.
  //   - the body returned another error, of whatever code: its own. It is believed, and returned as it is, if the read
  //     set validates; else the body runs again.
  //   - the body returned Ok: the transaction commits. Aborted: the body runs again; else Run returns what Commit did.
  //
  // So of what Run returns, Ok is: committed; Unknown, if no body returns it itself: perhaps committed; anything else:
  // rolled back. `outcome` may be null with Until::kDurable.
  //
  // A body may throw. An exception that leaves it is treated as an error that it returned: the transaction rolls back,
  // and Run throws the exception if an error would be believed; if an operation had failed, or the read set does not
  // validate, the exception is dropped, and the body runs again or Run returns the failure.
  //
  // The body neither commits nor rolls back itself: Commit and Rollback refuse with FailedPrecondition, which Run then
  // returns.
  //
  // With DurabilityMode::kSync each result waits until what it rests on is durable: Ok, AlreadyExists, and the body's
  // own errors.
  template <class Body>
  coro::Task<Status> Run(Body body, RunOutcome* outcome = nullptr, Until until = Until::kDurable) {
    if (outcome != nullptr) *outcome = {};
    PrecedenceClaim claim;
    for (uint32_t attempt = 0;; ++attempt) {
      if (shares_thread_) co_await worker().Yield();  // other coroutines and other nodes' calls have their turn
      Transaction transaction = Begin(&claim);
      transaction.RunConcludes();
      if (until == Until::kVisible) transaction.LeaveEpochAt(&outcome->durable_at);
      Status status;
      std::exception_ptr thrown;
      try {
        status = co_await body(transaction);
      } catch (...) {
        thrown = std::current_exception();
        status = Threw();
      }
      status = co_await Conclude(transaction, std::move(status));
      if (outcome != nullptr) {
        outcome->aborts = attempt;
        outcome->asked_precedence = claim.has_asked();
      }
      if (!absl::IsAborted(status)) {
        ThrowIfBelieved(status, thrown);
        co_return status;
      }
      co_await worker().SleepUntil(BackOffUntil(attempt, &claim));
    }
  }

  // The same for a thread without coroutines. `body` returns a Task<Status>.
  Status RunBlocking(absl::FunctionRef<coro::Task<Status>(Transaction&)> body, RunOutcome* outcome = nullptr);

  // `status` when `durable_at` is durable; Unknown if that takes longer than DatabaseOptions::durable_within.
  coro::Async<Status> WhenDurable(uint64_t durable_at, Status status = absl::OkStatus());

  // Begin / Commit by hand. Any number may be open. The transaction must end before the session. Its commit waits for
  // transactions with precedence, but it gets none itself: prefer Run.
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
  // What the attempt came to, see Run.
  coro::Async<Status> Conclude(Transaction& transaction, Status body_status);
  static coro::Task<Status> BelieveIfValid(Transaction& transaction, coro::Task<Status> validation, Status body_status);
  Transaction Begin(PrecedenceClaim* claim);
  // Database::Run with this session.
  Status RunOnThread(const std::function<Status(BlockingTransaction&)>& body);
  // Stands for the exception of a body where its status goes.
  static const Status& Threw();
  static void ThrowIfBelieved(const Status& status, const std::exception_ptr& thrown) {
    if (thrown != nullptr && status == Threw()) [[unlikely]]
      std::rethrow_exception(thrown);
  }
  // After a conflict, which `claim` notes.
  uint64_t BackOffUntil(uint32_t attempt, PrecedenceClaim* claim);
  // What transactions of this session still owe to other nodes (txn/debts.h): waits until it is done, within bounds.
  bool HasDebts() const;
  void SettleDebts();
  bool shares_thread_ = false;
  std::unique_ptr<SessionState> state_;
};

// Fills this node's part of an empty table, without transactions: nobody may use the table yet.
//
// Not logged: in a database with a directory a load becomes durable by a checkpoint of this node that begins to write
// the table after Finish (Database::Checkpoint, a periodic one, that of Close). After a crash all of the load is there
// or nothing. Until it is durable it can be read, but no transaction of any node commits that changes rows of this
// node, or that read some and changes others: FailedPrecondition, which names the node. That holds for all of this
// node's tables, not only for the one that was loaded: what a transaction did to one may rest on what it read in
// another. The nodes of a cluster load and checkpoint each for itself: a program that loads on several knows that all
// of it is durable when each has taken its checkpoint, and may then commit a row that says so. (With
// DurabilityMode::kNone nothing is logged, so nothing is refused.)
class BulkLoader {
 public:
  // Both must outlive it.
  BulkLoader(Session* session, const Table* table);
  // Gives back what was added and not finished.
  ~BulkLoader();
  // Keys of an ordered table come in strictly ascending order, those of a hash table in any. The key must belong to
  // this node. Cancelled, as Finish, by DatabaseOptions::stop: nothing of this load is visible.
  Status Add(const Key& key, std::span<const std::byte> payload);
  template <PayloadType Row>
  Status Add(const Key& key, const Row& row) {
    return Add(key, std::as_bytes(std::span(&row, 1)));
  }
  // Builds the index. Nothing is visible before. After an error nothing of the load is there, and it may begin again:
  // FailedPrecondition if the table is not empty, InvalidArgument if a key was added twice, ResourceExhausted if the
  // index does not fit into the memory.
  Status Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gannet::txn
