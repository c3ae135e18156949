// Database: the tables of one node and its part in a cluster.
//
//   auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1});
//   auto database = Database::Open(fabric->get(), /*node=*/0, {});
//   auto table = (*database)->CreateTable({.name = "accounts", .payload_bytes = sizeof(Account)});
//   (*database)->Start();
//   auto session = (*database)->OpenSession();
//   Status status = (*session)->RunBlocking([&](Transaction& t) { return Transfer(t, **table, 1, 2, 100); });
//
// A directory keeps the tables with their options, so a database that is opened again has them at once, by name:
//
//   auto database = Database::Open("/var/lib/bank", {});
//   (*database)->Start();
//   const Table* accounts = (*database)->FindTable("accounts");
//
// Every node of a cluster opens the database and creates the same tables; those that are new, in the same order. After
// Start the calls below that change tables are Unimplemented there; all_nodes.h has calls that change all nodes.
//
// Processes. A database belongs to the process that opened it. In a child of fork each call that begins, commits,
// closes or changes something returns FailedPrecondition, which names that process, statistics are empty, and
// destructors do nothing. A child that needs a database opens one itself, when its parent has closed its own.
// Transactions that were open at the fork must not be used in the child. The parent notices nothing, and its Close
// frees the directory also if children live on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "index/types.h"
#include "log/segment/log_statistics.h"
#include "rdma/global_address.h"
#include "rdma/statistics.h"
#include "txn/run/blocking.h"
#include "txn/store/options.h"
#include "txn/store/secondary_index.h"
#include "txn/store/statistics.h"
#include "txn/store/table.h"

namespace gannet::rdma {
class Fabric;
class Node;
}  // namespace gannet::rdma

namespace gannet::txn {

class ManualTransaction;
class Session;
struct DatabaseState;

class Database {
 public:
  // Attaches as node `node`. `fabric` must outlive the database. With a directory: NotFound if it holds no database and
  // none is to be created; DataLoss if a file of it, or of another node's directory, is missing or damaged. After these
  // errors nothing in it was changed.
  static StatusOr<std::unique_ptr<Database>> Open(rdma::Fabric* fabric, rdma::NodeId node,
                                                  const DatabaseOptions& options);
  // A single node over its own memory, with its data in `directory` (DatabaseOptions::create_if_missing).
  static StatusOr<std::unique_ptr<Database>> Open(const std::string& directory, DatabaseOptions options);
  // A single node over its own memory, without a directory: everything is lost when it is closed.
  static StatusOr<std::unique_ptr<Database>> OpenInMemory(DatabaseOptions options);
  // Closes the database and ignores errors. No session may be open.
  ~Database();

  // Makes a table, or returns the one of this name that the directory has: a program may create its tables each time,
  // in any order, and tables that it does not know stay. InvalidArgument names the wrong option, or the one that
  // differs from the table in the directory; expected_rows, application and index_rights may differ, and those given
  // here then count, if Start was not called yet. A placement may differ, too, unless it is replicated, if one node
  // owns all rows, because that node has them by any placement. key_form may be given if the directory does not say it;
  // a database of one node notes it then, also after Start (with a full disk, in the next checkpoint). AlreadyExists:
  // this object has created it before. Aborted: another call is widening or arranging the table of this name; call
  // again. FailedPrecondition: one is dropping it. Thread-safe.
  //
  // A new table may be created while transactions run. It is then durable when this returns; a crash before leaves all
  // of it or nothing. Sessions that are open may use it at once. An error of the disk: this object does not have the
  // table, but the directory may, without rows.
  //
  // A placement by a function of the program cannot be kept. With several data nodes such a table is to be created with
  // its function each time, before Start; until then its rows are there, but an access returns FailedPrecondition.
  StatusOr<const Table*> CreateTable(const TableOptions& options);
  // Gives a table another name, while transactions run: durably and atomically, as CreateTable. Pointers to the table
  // stay valid. NotFound: there is no table `from`. AlreadyExists: there is a table `to`. InvalidArgument: a bad name.
  // Aborted: another call is widening or arranging the table; call again. FailedPrecondition before Start and after
  // Close. An error of the disk: it keeps its name here, but the directory may have either. Thread-safe.
  Status RenameTable(std::string_view from, const std::string& to);
  // Removes a table and its rows, or a secondary index, for good, while transactions run: durably and atomically, as
  // CreateTable. Its memory is free afterwards; its part of the log and of checkpoints goes with the next checkpoints.
  // From the call on, accesses to the table return FailedPrecondition. Transactions that were there before may still
  // use it, so this waits for their end: at most DatabaseOptions::durable_within, then DeadlineExceeded, and the table
  // stays. (So it must not be called between the begin and the end of a transaction of the same thread.) The Table
  // object stays as long as the database. FailedPrecondition, too, if the table has secondary indexes: drop these
  // first. NotFound, Aborted, FailedPrecondition: as RenameTable. Another error is one of the disk: the table is
  // dropped here, but the directory may have it until the next checkpoint or change of the tables. Thread-safe.
  Status DropTable(std::string_view name);
  // Makes room in the rows of a table, durably and atomically: TableOptions::payload_bytes becomes `payload_bytes`,
  // which is larger. A table of variable_length has just another maximum from then on. Of others each row gets zeros at
  // its end, while the rows are rewritten in memory: about a second for a million rows. Transactions that were there
  // before end first (DeadlineExceeded: as for DropTable); those that come meanwhile meet a conflict, so Run repeats
  // them. A program that has the shorter struct gets InvalidArgument for whole rows from then on, and names parts of
  // them by their offsets. InvalidArgument: it is less than now, or more than kMaxPayloadBytes. ResourceExhausted:
  // there is no memory for the larger rows. After these errors the table is as before. If other tables take the memory
  // meanwhile: FailedPrecondition, here and from each access, until the database is opened again, which completes it.
  // NotFound and others: as RenameTable; FailedPrecondition, too, if a secondary index has keys from the whole payload.
  // Thread-safe.
  Status WidenTable(std::string_view name, size_t payload_bytes);
  // Brings the rows of an ordered table into the order of their keys, in memory: scans of rows that were inserted in
  // another order are faster afterwards (docs/performance.md). Later inserts have any place again. Rows that Open reads
  // from a checkpoint lie in this order. The rows move among the places that they have, so this takes one block more of
  // each size, and 24 bytes for each row while it works: one to two seconds for a million rows. Who uses the table
  // meanwhile: as for WidenTable. FailedPrecondition: its index is not ordered, or it has the entries of a secondary
  // index. ResourceExhausted: memory is full, and rows of a size that has no free block stay where they are. Cancelled
  // by DatabaseOptions::stop: a part of the rows has moved. NotFound, DeadlineExceeded and others: as WidenTable.
  // Unimplemented with several nodes. Thread-safe.
  Status ArrangeTable(std::string_view name);
  // Divides the keys of a table of kind dex among nodes, ascending: each node claims the leaves of its ranges that it
  // reads at their owners, and keeps them in its page cache. As long as nobody else changes them, it reads them without
  // a verb (index/shared_leaf/claim/claim.h). Called at one node, for all: the data nodes have the ranges in memory,
  // and others ask them, also nodes that come later. They are advice, and may be changed while transactions run; a data
  // node that was started again is to be given them again. A node that has left, or died, need not be taken out: what
  // it does not claim, nobody does. InvalidArgument: the kind has no claims, the ranges are not ascending or too many,
  // their keys are not of the table's kind or longer than its keys may be, or there is no such node. NotFound: there is
  // no such table. FailedPrecondition: before Start, after Close, or in a forked child. Unavailable or
  // DeadlineExceeded: a data node did not answer; the others have the ranges. Thread-safe.
  Status SetClaimRanges(std::string_view table, const std::vector<index::ClaimRange>& ranges);
  // Null if there is none. Thread-safe. Tables of the directory are there from Open on, and may be used from Start on.
  // The entries of a secondary index are a table, too, which only the engine writes.
  const Table* FindTable(std::string_view name) const;

  // Makes a secondary index of a table (txn/store/secondary_index.h), or returns the one of this name that the
  // directory has, for which a function is to be given each time. InvalidArgument names the wrong option, or the one
  // that differs from the index in the directory. NotFound: there is no such table. AlreadyExists: this object has
  // created the index before; or two rows have one key of a unique index, both of which it names. Thread-safe.
  //
  // A new index may be made while transactions run, over the rows that there are. From its beginning transactions keep
  // it, so writes may already return AlreadyExists for a unique index that is not complete. It returns when the index
  // is complete and durable. Until then, and for good after an error or a crash, nobody can read by it:
  // FailedPrecondition. After that nobody keeps it either; another CreateIndex builds it. It waits for transactions
  // that were open when it began: DeadlineExceeded if that takes longer than
  // SecondaryIndexOptions::wait_for_transactions. Cancelled by DatabaseOptions::stop. It takes a checkpoint if there
  // are rows of BulkLoader that are in none, and, with DurabilityMode::kNone, at the end: then nothing else may run.
  //
  // Before Start only an index of a table that is new, too, can be made (FailedPrecondition), on every node. So an
  // index that is not complete, because of an error or a crash, is made after Start.
  StatusOr<const SecondaryIndex*> CreateIndex(const SecondaryIndexOptions& options);
  // Null if there is none. Thread-safe.
  const SecondaryIndex* FindIndex(std::string_view name) const;
  // The tables in the order in which they were created first.
  std::vector<const Table*> tables() const;

  // Recovers the directory's data, if there is one. Serves the other nodes, and waits until those that own rows are
  // there. With a directory all nodes start together, each in its own thread or process: none writes to its directory
  // before every node has recovered. If one node fails to recover, Start fails at all nodes, with that node's number,
  // code and reason, and no directory has changed. DeadlineExceeded: a node was not there, or did not call Start, for
  // `wait_for_others`; this waits for a live node that recovers. Cancelled by DatabaseOptions::stop. If another node
  // has other tables: FailedPrecondition, here or by OpenSession. After an error, open it again; its directory stays.
  Status Start(absl::Duration wait_for_others = absl::Seconds(30));

  // Opens a session for one worker thread. Thread-safe. ResourceExhausted if the node has no channel left
  // (rdma::Node::OpenChannel); idle sessions of Run make room. FailedPrecondition before Start and after Close.
  StatusOr<std::unique_ptr<Session>> OpenSession();

  // Runs, for programs without coroutines (txn/run/blocking.h), `body` on the calling thread until it commits. Results
  // and exceptions are those of Session::Run. Thread-safe. It borrows one of DatabaseOptions::run_sessions sessions,
  // which all threads share. If all are borrowed, it waits for one for at most durable_within, then returns
  // ResourceExhausted.
  Status Run(const std::function<Status(BlockingTransaction&)>& body);
  // Begins a transaction that the caller commits (txn/run/manual_transaction.h), with a session as Run's: errors as
  // Run's. Thread-safe. Prefer Run, which repeats a transaction that met a conflict by itself.
  StatusOr<ManualTransaction> Begin();

  // Makes all commits, and all loads of BulkLoader, durable by a checkpoint of this node. Transactions may run at the
  // same time (not with DurabilityMode::kNone). FailedPrecondition without a directory. Cancelled by
  // DatabaseOptions::stop: the existing checkpoints stay.
  Status Checkpoint();
  // Copies the database into `directory`, while transactions run: what was committed on this node before the call is in
  // the copy, and of each later transaction all or nothing. The copy is checked, and is a directory for Open. It has
  // the newest checkpoint and the log since then; of a cluster it has all nodes, whose directories must be in reach. No
  // automatic checkpoint of this node is taken meanwhile. If loads of BulkLoader are in no checkpoint, or with
  // DurabilityMode::kNone, it takes one first, with the rules of Checkpoint. InvalidArgument: `directory` has no
  // name, is not empty, or lies in the database's own. ResourceExhausted: the disk is full. After these and other
  // errors there is nothing in `directory`. FailedPrecondition without a directory of its own. Cancelled by
  // DatabaseOptions::stop. Thread-safe.
  Status Backup(const std::string& directory);
  // Flushes the log and stops it. Takes a checkpoint if one is needed: with DurabilityMode::kNone, or if a load of
  // BulkLoader is in none. FailedPrecondition if a session is open, or a Run, a Checkpoint, a Backup, a SetClaimRanges
  // or the build of an index is in progress: then nothing was done, and Close may be called again. (Idle sessions of
  // Run are closed here.) The nodes of a cluster close together, as they start: each waits for the others for some
  // time. Another error: not everything that was committed is durable. Unless it returned FailedPrecondition, the
  // directory is free for another Open, even if this object still exists, and OpenSession and Run return
  // FailedPrecondition, also without a directory. A second call does nothing.
  Status Close();
  // Closes like Close, but without a checkpoint: after a load that failed or was stopped, half of which would be kept
  // otherwise. Everything that is only in memory is lost, as after a crash: all loads of BulkLoader without a
  // checkpoint; with DurabilityMode::kNone all changes.
  Status CloseWithoutCheckpoint();

  // Report of Start; all zero without a directory.
  const RecoveryReport& recovery() const;
  // All zero without a log.
  log::LogStatistics log_statistics() const;
  // Returns an epoch: the changes that this node's sessions committed before this call survive a crash once
  // durable_epoch() has reached it. Programs with DurabilityMode::kAsync use this. Thread-safe; 0 without a log.
  uint64_t logged_epoch() const;
  // The newest durable epoch; never decreases. Thread-safe; 0 without a log.
  uint64_t durable_epoch() const;
  // Ok, or the reason why commits cannot be made durable now.
  Status log_health() const;
  // All zero without a log.
  CheckpointStatistics checkpoint_statistics() const;
  // How the log is written; empty without one.
  std::string log_description() const;

  // Counts of starving transactions of this node, and of its commits that waited for starving ones
  // (txn/peer/precedence.h).
  PrecedenceStatistics precedence_statistics() const;

  // How the transactions of this node's sessions ended, and what they read and wrote. Thread-safe.
  TransactionStatistics transaction_statistics() const;

  // How the accesses of this node's sessions reached records of other nodes, by table and kind; only those that there
  // were. Thread-safe.
  std::vector<TablePaths> path_statistics() const;
  // Bytes of the caches of models or inner nodes that all sessions of this node share, by table, over all remote nodes;
  // only tables that have one. Thread-safe.
  std::vector<std::pair<std::string, uint64_t>> shared_cache_bytes() const;
  // The load that `node`, or this node itself, announced last. Thread-safe.
  rdma::NodeLoad load_of(rdma::NodeId node) const;

  // The metrics of this node in Prometheus's text format: memory, log, checkpoints, conflicts, accesses to other nodes
  // (docs/cluster.md, "Metrics"). For a web server of the program; txn/metrics.h has them as data. Takes some
  // microseconds. Thread-safe, but not together with Close.
  std::string MetricsText() const;

  // This node's part of every table. Walks the indexes: slow.
  std::vector<TableStatistics> table_statistics();
  rdma::SlabStatistics memory_statistics() const;
  // Makes the memory of the next `bytes` of records and indexes resident now (rdma/slab.h). May be called at any time.
  void PrefaultMemory(uint64_t bytes);
  rdma::Fabric& fabric();
  rdma::NodeId node_id() const;
  // Number of nodes that own rows, and whether this is one of them.
  int data_nodes() const;
  bool owns_rows() const { return node_id() < data_nodes(); }
  // The node, for layers above that answer their own calls: Node::Handle, before Start.
  rdma::Node& node();
  DatabaseState& state() { return *state_; }  // for txn/ itself

 private:
  explicit Database(std::unique_ptr<DatabaseState> state);
  // False in a child of fork: then locks may be held by threads that are not there.
  bool IsHere() const;
  static StatusOr<std::unique_ptr<Database>> OpenAlone(const DatabaseOptions& options);
  // `most_bytes`: of the node's heap (rdma/slab.h).
  static StatusOr<std::unique_ptr<Database>> Open(rdma::Fabric* fabric, rdma::NodeId node,
                                                  const DatabaseOptions& options, uint64_t most_bytes);
  enum class LastCheckpoint : uint8_t { kIfNeeded, kNever };
  Status Close(LastCheckpoint checkpoint);
  std::unique_ptr<DatabaseState> state_;
};

}  // namespace gannet::txn
