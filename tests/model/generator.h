// What a run does, drawn from its seed: the world (nodes, fabric, tables, durability) and, step by step, transactions.
// A step depends on the seed and its own number alone, so that a run can be repeated with fewer steps. What depends on
// the state (how long a part of a row is) the driver draws from the operation's own salt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/model/fabrics.h"
#include "txn/database.h"
#include "txn/table.h"

namespace gannet::model {

struct TableSpec {
  txn::TableOptions options;
  std::vector<std::string> keys;  // all that are ever used (model.h), in no order
  bool loaded = false;            // has some rows from a BulkLoader at the beginning
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
  std::vector<TableSpec> tables;

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
  kPages,  // the whole range by scans with a limit, each from the last key of the one before it
  kValidate,
  kRollback,   // by hand: and the transaction goes on. A body of Run must not: it has failed then
  kCommit,     // in a body of Run, which must not: it has failed then
  kInterlope,  // another session changes the places, and commits
};

struct Op {
  struct Place {
    size_t table = 0;
    size_t key = 0;  // of the table's
    bool for_update = false;
  };

  OpKind kind = OpKind::kGet;
  std::vector<Place> places;  // several: of a kGetMany; two: the ends of a range
  bool for_update = false;
  bool keys_only = false;
  bool reverse = false;
  size_t limit = SIZE_MAX;
  uint64_t salt = 0;
};

enum class Way : uint8_t { kByHand, kRun, kRunBlocking, kDatabaseRun };
// kThrow: the body throws an exception when it has done everything.
enum class Ending : uint8_t { kCommit, kRollback, kDestroy, kError, kThrow };

struct TransactionSpec {
  int node = 0;
  size_t session = 0;  // of that node
  Way way = Way::kByHand;
  Ending ending = Ending::kCommit;
  bool plain = false;  // the body is no coroutine: it does the inserts only, and throws before it makes a task
  std::vector<Op> ops;
};

// What happens between two transactions.
enum class Event : uint8_t { kNothing, kCheckpoint, kReopen, kCrash };

struct Step {
  Event event = Event::kNothing;
  TransactionSpec transaction;
};

inline constexpr size_t kSessionsPerNode = 2;

// `fabric` null: each has its turn.
World DrawWorld(uint64_t seed, const FabricKind* fabric);
Step DrawStep(const World& world, uint64_t number);

// A payload size that the table takes, with a liking for the ends and for the borders of lines.
size_t DrawSize(Random& random, const txn::TableOptions& table);
std::string DrawPayload(Random& random, size_t size);

}  // namespace gannet::model
