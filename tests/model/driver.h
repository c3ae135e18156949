// Runs the steps of a world on real databases, in one thread, and compares every result of every operation, and after
// each transaction all rows of all tables, with the model.
//
// One thread has no conflicts, so all results are known in advance, and each body runs once. Only these are up to the
// database:
//   - Insert of an existing key reports it at once or at the commit.
//   - A transaction that read what another session changes before its commit (OpKind::kInterlope) does not commit.
//   - On lossy fabrics a transaction may end with Unavailable or DeadlineExceeded; it is repeated if none of it
//     happened. After Unknown all of it happened or nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "tests/model/caller.h"
#include "tests/model/cluster.h"
#include "tests/model/generator.h"
#include "tests/model/model.h"
#include "txn/run/session.h"

namespace gannet::model {

struct Failure {
  uint64_t step = 0;
  std::string what;
  std::vector<std::string> operations;  // of the transaction that failed
};

struct DriverOptions {
  bool trace = false;                         // prints each operation before it begins: for runs that crash or hang
  std::atomic<uint64_t>* progress = nullptr;  // if not null, gets the number of each step when it begins
  // Settings that avoid known defects:
  bool reuse = true;        // GetRequests keep the results of earlier calls
  bool write_again = true;  // rows of variable length are written more than once by a transaction
  bool own_pages = true;    // a page begins at a key in the rows of the previous page
};

struct DriverStatistics {
  uint64_t transactions = 0;
  uint64_t operations = 0;
  uint64_t committed = 0;
  uint64_t repeated = 0;
  uint64_t unknown = 0;
  uint64_t reopened = 0;
  uint64_t table_changes = 0;
};

class Driver {
 public:
  Driver(World world, DriverOptions options);

  // Runs steps [0, steps) except those in `skip`, up to the first failure.
  std::optional<Failure> Run(uint64_t steps, const std::set<uint64_t>& skip);
  const DriverStatistics& statistics() const { return statistics_; }

 private:
  struct Held {
    txn::RecordHandle handle;
    size_t table;
    std::string key;
  };
  struct Drawn {  // the row of an operation
    size_t table = 0;
    std::string key;
    const std::string* row = nullptr;  // as the transaction sees it; null: no such row
    bool too_long = false;             // the key is too long for the table
  };
  // Limit for repeating a transaction: with one thread, only unsettled pending operations can delay it.
  static constexpr int kMostAttempts = 400;
  using Codes = std::initializer_list<absl::StatusCode>;

  // Defined in driver.cc.
  bool Open();
  bool Load();
  bool Close();
  void Happen(const Step& step);
  // Changes the catalog: one of the next functions, or builds the indexes of a table again.
  void ChangeTable(Random random);
  void Rename(size_t table, Random& random);
  void DropAndCreate(size_t table, Random& random);
  void Arrange(size_t table);
  void Widen(size_t table, Random& random);
  void CreateLike(size_t table, Random& random);
  void AddIndex(size_t table, Random& random);
  void SaveByBuild(size_t table);
  void ExpectRefused(const Status& status, absl::StatusCode code);
  void RunTransaction(const TransactionSpec& spec);
  bool Attempt(const TransactionSpec& spec, txn::Session& session);
  Status RunOnce(const TransactionSpec& spec, txn::Session& session);
  Status ByHand(const TransactionSpec& spec, txn::Session& session);
  Status ExecuteBlocking(txn::BlockingTransaction& transaction, const TransactionSpec& spec);
  Status Manually(const TransactionSpec& spec);
  // After Commit every call must be refused.
  void UseWhatIsOver(const TransactionSpec& spec, txn::Transaction& transaction, txn::Session& session);
  void BeginAttempt(const TransactionSpec& spec);
  coro::Task<Status> Execute(Caller& caller, const TransactionSpec& spec);
  // A body that is not a coroutine, and throws.
  [[noreturn]] void ExecutePlain(Caller& caller, const TransactionSpec& spec);
  bool Conclude(const TransactionSpec& spec, const Status& status);
  bool ConcludeThrown(const TransactionSpec& spec);
  void Resolve();
  void Settle();
  // Compares the whole database with the model; with `fail`, a difference is a failure.
  bool Matches(const Model& model, txn::Session& session, bool fail);
  coro::Task<Status> Compare(txn::Transaction& transaction, const Model& model, std::string* difference);

  // Defined in operations.cc.
  coro::Task<Status> ExecuteOp(Caller& caller, const Op& op);
  coro::Task<Status> Get(Caller& caller, const Op& op, Random random);
  coro::Task<Status> GetMany(Caller& caller, const Op& op, Random random);
  coro::Task<Status> UpdateByHandle(Caller& caller, const Op& op, Random random);
  coro::Task<Status> UpdateByKey(Caller& caller, const Op& op, Random random);
  Status Insert(Caller& caller, const Op& op, Random random);
  Status RemoveByHandle(Caller& caller, const Op& op, Random random);
  coro::Task<Status> RemoveByKey(Caller& caller, const Op& op, Random random);
  coro::Task<Status> Scan(Caller& caller, const Op& op);
  coro::Task<Status> ScanPages(Caller& caller, const Op& op);
  // Defined in composed_operations.cc.
  coro::Task<Status> GetView(Caller& caller, const Op& op, Random random);
  coro::Task<Status> Exists(Caller& caller, const Op& op, Random random);
  coro::Task<Status> Upsert(Caller& caller, const Op& op, Random random);
  coro::Task<Status> UpdateIf(Caller& caller, const Op& op, Random random);
  template <class Number>
  coro::Task<Status> Add(Caller& caller, const Op& op, Random random);
  coro::Task<Status> MoveCursor(Caller& caller, const Op& op, Random random);
  Status CompareCursor(const txn::Cursor& cursor, const Op& op, const std::optional<Model::Row>& expected);
  // Defined in dropped_operations.cc.
  // Whatever a body does with a table or an index that was dropped is refused, and changes nothing else.
  coro::Task<Status> UseDropped(Caller& caller, Random random);
  coro::Task<Status> UseDroppedTable(Caller& caller, Random random);
  coro::Task<Status> UseDroppedIndex(Caller& caller, Random random);
  // Defined in index_operations.cc.
  coro::Task<Status> GetBy(Caller& caller, const Op& op, Random random);
  coro::Task<Status> MoveIndexCursor(Caller& caller, const Op& op, Random random);
  // The rows of an index in its order, as the current transaction sees them. Keys: the fields.
  struct Indexed {
    std::vector<int> fields;
    std::string key;
    const std::string* payload;
    bool operator<(const Indexed& other) const { return std::tie(fields, key) < std::tie(other.fields, other.key); }
  };
  static std::vector<int> FieldsOf(const IndexSpec& index, const std::string& payload);
  std::vector<Indexed> RowsOf(const Model& model, const IndexSpec& index) const;
  // True if two rows have one key of a unique index.
  bool Violates(const Model& model) const;
  coro::Task<Status> CompareIndexes(txn::Transaction& transaction, const Model& model, std::string* difference);
  // Defined in operations.cc.
  coro::Task<Status> EndInBody(Caller& caller, const Op& op);
  Status Interlope(const Op& op, Random random);
  // A key that the transaction inserted without a read says nothing about the database.
  void NoteRead(size_t table, const std::string& key) {
    if (!blind_.contains({table, key})) reads_.insert({table, key});
  }
  void NoteScan(size_t table, const index::ScanRange& range, const txn::ScanRows& rows, bool keys_only);
  bool HasRead(size_t table, const std::string& key, bool existence) const;
  Drawn Draw(const Op& op, Random* random);
  Status CompareRows(const txn::ScanRows& rows, const std::vector<Model::Row>& expected, const Op& op);
  static std::string WriteOf(const std::string& old, size_t offset, const std::string& data);
  void NoteWrite(size_t table, const std::string& key, std::string payload);
  bool MayWrite(size_t table, const std::string& key) const;
  static size_t UnfitSize(Random& random, const txn::TableOptions& table);
  size_t AffordableSize(Random& random, const txn::TableOptions& table);
  size_t LogBytesWith(size_t table, const std::string& key, const std::optional<std::string>& payload) const;
  Status JudgeWrite(const Status& status, size_t table, const std::string& key, std::optional<std::string> payload);

  const txn::Table& TableAt(size_t table) const { return cluster_.table(static_cast<size_t>(node_), table); }
  index::Key KeyAt(size_t table, const std::string& key) const {
    return KeyOf(world_.tables[table].options.key_kind, key);
  }
  std::string Describe(size_t table, const std::string& key) const;
  // Logs the next operation.
  void Say(std::string text);
  // Ok if `got` is one of `expected`. Errors of the fabric and conflicts are returned as they are; all others are
  // failures.
  Status Judge(const Status& got, Codes expected);
  bool IsTrouble(const Status& status) const;
  // The test has failed; the first reason counts. Fail is for coroutines, which end with it; Break for other code.
  Status Fail(std::string what);
  bool Break(std::string what);
  bool Check(const Status& status) { return status.ok() || Break(status.ToString()); }
  bool failed() const { return failure_.has_value(); }

  World world_;
  DriverOptions options_;
  Model model_;
  Model saved_;                // the state after a crash with DurabilityMode::kNone
  const size_t first_tables_;  // number of tables at the beginning
  Cluster cluster_;

  // State of the current transaction.
  int node_ = 0;
  std::vector<Held> held_;
  bool clash_ = false;       // an Insert of an existing key was accepted: the commit must report it
  bool ignored_ = false;     // an operation failed and the body ignored it: the transaction must not commit
  bool ended_ = false;       // the body called Commit or Rollback in Run: the transaction must not commit
  int attempts_ = 0;         // of the transaction
  bool interloped_ = false;  // at most once per step
  bool doomed_ = false;      // by an interloper: the transaction must not commit
  // An interloper changed what the transaction has read by one operation, without a write: it may be of the moment of
  // that operation, and so may commit, or not.
  bool past_ = false;
  size_t reading_operations_ = 0;
  struct Scanned {
    size_t table;
    std::string from;
    std::string to;
    bool keys_only;
  };
  std::set<std::pair<size_t, std::string>> reads_;
  std::set<std::pair<size_t, std::string>> blind_;  // inserted without an earlier read
  std::vector<Scanned> scans_;
  std::vector<Scanned> read_ahead_;  // ranges of cursors for update, which read rows before they come to them
  std::set<size_t> read_by_index_;   // tables
  size_t session_ = 0;
  bool by_hand_ = false;
  size_t written_bytes_ = 0;
  std::vector<std::string> said_;

  // What was dropped since the databases were opened, as each node has it.
  struct DroppedTable {
    TableSpec spec;
    std::vector<const txn::Table*> on;
  };
  std::vector<DroppedTable> dropped_tables_;
  std::vector<std::vector<const txn::SecondaryIndex*>> dropped_indexes_;

  // Reused between operations, also across transactions.
  std::vector<txn::GetRequest> requests_;
  txn::ScanRows rows_;

  uint64_t step_ = 0;
  std::optional<Failure> failure_;
  DriverStatistics statistics_;
};

}  // namespace gannet::model
