// Workload: what the clients of a scenario do, and how the run is judged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/coro/task.h"
#include "base/random.h"
#include "base/status.h"
#include "rdma/sim/simulation.h"
#include "scenario/check/anomaly.h"
#include "scenario/scenario.h"
#include "txn/session.h"

namespace gannet::scenario {

// State shared by the clients and the code that watches them. Used by one thread of the operating system.
struct Control {
  const rdma::sim::Simulation* simulation = nullptr;
  bool stop = false;
  uint64_t Now() const { return simulation->now(); }  // the same for all nodes: without skew

  uint64_t committed = 0;
  uint64_t failed = 0;
  uint64_t unknown = 0;
  uint64_t aborts = 0;
  std::string broken = {};  // describes something impossible that a client saw: the run ends
};

// The result of the checkers.
struct Judgement {
  bool passed = true;
  bool undecided = false;
  std::string verdict;  // one line
  std::string details;
  uint64_t edges = 0;
};

// One client: a coroutine of a worker.
class Client {
 public:
  virtual ~Client() = default;
  // Runs transactions until control.stop, or until its end time.
  virtual coro::Task<void> Run() = 0;
  // The client begins no transaction at `nanos` or later. Default: no limit.
  void EndAt(uint64_t nanos) { end_nanos_ = nanos; }
  // Number of transactions committed so far.
  uint64_t committed() const { return committed_; }
  // From now on the client begins no transactions.
  void Rest() { rests_ = true; }

 protected:
  bool GoesOn(const Control& control) const {
    return !control.stop && control.broken.empty() && control.Now() < end_nanos_;
  }
  // True between transactions while it rests.
  bool rests() const { return rests_; }
  static constexpr uint64_t kRestNanos = 50'000;

  uint64_t committed_ = 0;

 private:
  bool rests_ = false;
  uint64_t end_nanos_ = UINT64_MAX;
};

Judgement JudgementOf(const Report& report);

// Runs execute(), which returns a Status, again as long as it returns Unknown or ResourceExhausted: a slow disk delays
// durability, or the log's buffer is full.
template <class Execute>
Status UntilKnown(Execute execute) {
  constexpr int kMostTries = 100;
  Status status = execute();
  const auto again = [&] { return absl::IsUnknown(status) || absl::IsResourceExhausted(status); };
  for (int tries = 1; again() && tries < kMostTries; ++tries) status = execute();
  return status;
}

// With at least this many keys the workload fills and empties whole ranges of keys, so that indexes grow and shrink.
inline constexpr uint64_t kManyKeys = 1024;

class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::vector<txn::TableOptions> Tables() const = 0;  // on every node
  // Runs in one session on node 0, before any client starts.
  virtual Status Load(txn::Session& session) = 0;
  // `number` is unique in the run, also across power cuts.
  virtual std::unique_ptr<Client> NewClient(txn::Session& session, uint32_t number) = 0;
  // Reads all rows after the last client, as part of the history. If not `whole`: one key at a time, without the rows
  // of dead nodes.
  virtual Status ReadAll(txn::Session& session, bool whole) = 0;
  virtual Judgement Judge() = 0;
  // True if transactions can still commit when only the data on nodes with lives(node) is available.
  virtual bool CanGoOn(const std::function<bool(int node)>& lives) const = 0;
};

// InvalidArgument lists the names.
StatusOr<std::unique_ptr<Workload>> MakeWorkload(const ScenarioOptions& drawn, Control* control);
// The names of all workloads, including TPC-C.
const std::vector<std::string>& WorkloadNames();

}  // namespace gannet::scenario
