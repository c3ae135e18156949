// The work of a crash test's child, in a database of one or two nodes within its process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "lab/scenario/crash/message.h"
#include "lab/scenario/crash/options.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::scenario::crash {

// Work and Observe run on the workers' threads, WorkBeside on its own; one thread calls the other methods, before that.
class Workload {
 public:
  static std::unique_ptr<Workload> Make(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe);
  virtual ~Workload() = default;

  // Called for every node, before Start.
  virtual Status CreateTables(txn::Database& database) = 0;
  // Called after Start: makes what the workload needs, unless it is there.
  virtual Status Prepare(std::span<txn::Database* const> databases) = 0;
  // Reports everything that was recovered, up to kStateEnd. An error if a part of it is wrong by itself.
  virtual Status TellState(std::span<txn::Database* const> databases) = 0;
  // A worker's endless operations, in a session of node `node`. Returns only with an error.
  virtual coro::Task<Status> Work(txn::Session* session, uint32_t worker) = 0;
  // Runs at the same time as the workers, in its own thread.
  virtual Status WorkBeside(std::span<txn::Database* const>) { return absl::OkStatus(); }
  // Transactions that change nothing, at the same time as the workers. One per thread.
  virtual coro::Task<Status> Observe(txn::Session* session, uint64_t seed) = 0;
};

// All keys of all tables and nodes.
uint64_t KeysIn(std::span<txn::Database* const> databases);

std::unique_ptr<Workload> MakeKvWorkload(const CrashOptions& options, const MessagePipe* pipe);
std::unique_ptr<Workload> MakeBankWorkload(const CrashOptions& options, const MessagePipe* pipe);
// `cycle`: different cycles use different numbers for payments, appended values and loads.
std::unique_ptr<Workload> MakeTpccWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe);
std::unique_ptr<Workload> MakeAppendWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe);
std::unique_ptr<Workload> MakeLoadWorkload(const CrashOptions& options, uint64_t cycle, const MessagePipe* pipe);

}  // namespace gannet::scenario::crash
