// The content of a run, drawn from its seed: the world (nodes, fabric, tables, durability) and, step by step,
// transactions. A step depends only on the seed and its own number, so that a run can be repeated with fewer steps.
// Details that depend on the state (such as the length of a read part) are drawn by the driver from the operation's own
// salt.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/model/fabrics.h"
#include "txn/database.h"
#include "txn/store/secondary_index.h"
#include "txn/store/table.h"

namespace gannet::model {

struct TableSpec {
  txn::TableOptions options;
  std::vector<std::string> keys;  // all keys ever used (model.h), in no order
  bool loaded = false;            // some rows come from a BulkLoader at the beginning
};

// A secondary index of a table, whose fields are bytes at the begin of the payloads: rows that are too short are not in
// it. Of a unique one it is the second byte alone; else the first, then the second as a signed number.
struct IndexSpec {
  size_t table = 0;
  txn::SecondaryIndexOptions options;
};

struct World {
  uint64_t seed = 0;
  FabricKind fabric = FabricKind::kShm;
  int nodes = 1;
  int data_nodes = 0;
  txn::ReadPathPolicy read_path = txn::ReadPathPolicy::kAdaptive;
  bool directory = false;
  txn::DurabilityMode durability = txn::DurabilityMode::kSync;
  int run_sessions = 64;  // DatabaseOptions::run_sessions
  // DatabaseOptions::log_large_buffer_bytes, so small that writes are refused; 0: the default. There are no indexes
  // then, whose entries take room in the log, too.
  size_t log_bytes = 0;
  std::vector<TableSpec> tables;
  std::vector<IndexSpec> indexes;

  bool HasIndex(size_t table) const {
    return std::ranges::any_of(indexes, [table](const IndexSpec& index) { return index.table == table; });
  }
  // Most bytes of the log that the changes of a transaction take.
  size_t most_change_bytes() const { return log_bytes == 0 ? SIZE_MAX : log_bytes - 96; }
  std::string ToString() const;
};

enum class OpKind : uint8_t {
  kGet,
  kGetMany,
  kGetForUpdate,
  kUpdateByHandle,
  kUpdateByKey,
  kInsert,
  kRemoveByHandle,
  kRemoveByKey,
  kScan,
  kPages,  // the whole range by scans with a limit, each from the last key of the previous one
  kGetView,
  kExists,
  kUpsert,
  kUpdateIf,
  kAdd,
  kCursor,       // moves to and fro between two ends, with writes in between
  kGetBy,        // the row with a key of a unique index
  kIndexCursor,  // the rows of a range of an index
  kValidate,
  kRollback,   // by hand: the transaction continues. In a body of Run it is an error
  kCommit,     // in a body of Run, where it is an error
  kInterlope,  // another session changes the rows, and commits
  kDropped,    // uses a table or an index that was dropped
};

struct Op {
  struct Place {
    size_t table = 0;
    size_t key = 0;  // index in the table's keys
    bool for_update = false;
  };

  OpKind kind = OpKind::kGet;
  size_t index = 0;           // kGetBy, kIndexCursor: number of the index
  std::vector<Place> places;  // kGetMany: several; ranges: the two ends
  bool for_update = false;
  bool keys_only = false;
  bool reverse = false;
  size_t limit = SIZE_MAX;
  uint64_t salt = 0;
};

enum class Way : uint8_t { kByHand, kRun, kRunBlocking, kDatabaseRun, kManual };
inline constexpr uint64_t kWays = 5;
// True if the program itself ends the transaction.
constexpr bool IsByHand(Way way) {
  return way == Way::kByHand || way == Way::kManual;
}
// kThrow: the body throws an exception after its operations.
enum class Ending : uint8_t { kCommit, kRollback, kDestroy, kError, kThrow };

struct TransactionSpec {
  int node = 0;
  size_t session = 0;  // of that node
  Way way = Way::kByHand;
  Ending ending = Ending::kCommit;
  bool plain = false;  // the body is not a coroutine: it only inserts, and throws before it makes a task
  std::vector<Op> ops;
};

// An event between two transactions.
enum class Event : uint8_t { kNothing, kCheckpoint, kReopen, kCrash, kChangeTable };

struct Step {
  Event event = Event::kNothing;
  uint64_t event_salt = 0;
  TransactionSpec transaction;
};

inline constexpr size_t kSessionsPerNode = 2;

// `fabric` null: chosen by the seed.
World DrawWorld(uint64_t seed, const FabricKind* fabric);
Step DrawStep(const World& world, uint64_t number);
// An index for a table of the world; nullopt: the table can have none, or none of the kind that was drawn.
std::optional<IndexSpec> DrawIndex(Random& random, const World& world, size_t table, std::string name, bool unique);

// A payload size that the table accepts, often at the limits or at the borders of lines.
size_t DrawSize(Random& random, const txn::TableOptions& table);
std::string DrawPayload(Random& random, size_t size);

}  // namespace gannet::model
