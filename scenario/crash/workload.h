// What the child of a crash test runs, in a database of one or two nodes within its process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "scenario/crash/message.h"
#include "scenario/crash/options.h"
#include "txn/database.h"
#include "txn/session.h"

namespace gannet::scenario::crash {

// One thread calls all but what Workers() returned.
class Workload {
 public:
  static std::unique_ptr<Workload> Make(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe);
  virtual ~Workload() = default;

  // On every node, before Start.
  virtual Status CreateTables(txn::Database& database) = 0;
  // Makes what the workload needs, if it is not there; after Start.
  virtual Status Prepare(std::span<txn::Database* const> databases) = 0;
  // Tells all that was recovered, up to kStateEnd. An error if something in it is wrong by itself.
  virtual Status TellState(std::span<txn::Database* const> databases) = 0;
  // A worker's endless operations, in a session of node `node`. Returns only with an error.
  virtual coro::Task<Status> Work(txn::Session* session, uint32_t worker) = 0;
  // Beside all workers, in a thread of its own.
  virtual Status WorkBeside(std::span<txn::Database* const>) { return absl::OkStatus(); }
  // Transactions that change nothing, likewise. One per thread.
  virtual coro::Task<Status> Observe(txn::Session* session, uint64_t seed) = 0;
};

// All keys of all tables and nodes.
uint64_t KeysIn(std::span<txn::Database* const> databases);

std::unique_ptr<Workload> MakeKvWorkload(const CrashOptions& options, const MessagePipe* pipe);
std::unique_ptr<Workload> MakeBankWorkload(const CrashOptions& options, const MessagePipe* pipe);
// `cycle`: payments of different cycles have different numbers, so have what they append and what they load.
std::unique_ptr<Workload> MakeTpccWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe);
std::unique_ptr<Workload> MakeAppendWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe);
std::unique_ptr<Workload> MakeLoadWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe);

}  // namespace gannet::scenario::crash
