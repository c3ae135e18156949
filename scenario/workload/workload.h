// Workload: what the clients of a scenario do, and how it is judged.
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

// What the clients share with whoever watches them. All of it is of one thread of the operating system.
struct Control {
  const rdma::sim::Simulation* simulation = nullptr;
  bool stop = false;
  uint64_t Now() const { return simulation->now(); }  // the same for all: without skew

  uint64_t committed = 0;
  uint64_t failed = 0;
  uint64_t unknown = 0;
  uint64_t aborts = 0;
  std::string broken = {};  // what a client saw that must not be: the run ends
};

// What the checkers found.
struct Judgement {
  bool passed = true;
  bool undecided = false;
  std::string verdict;  // one line
  std::string details;
  uint64_t edges = 0;
};

// One coroutine of a worker.
class Client {
 public:
  virtual ~Client() = default;
  // Runs transactions until control.stop, or until its end.
  virtual coro::Task<void> Run() = 0;
  // It begins no transaction at `nanos` or later. Default: no end.
  void EndAt(uint64_t nanos) { end_nanos_ = nanos; }
  // Transactions that committed so far.
  uint64_t committed() const { return committed_; }
  // From now on it begins no transactions.
  void Rest() { rests_ = true; }

 protected:
  bool GoesOn(const Control& control) const {
    return !control.stop && control.broken.empty() && control.Now() < end_nanos_;
  }
  // Between transactions, while it rests.
  bool rests() const { return rests_; }
  static constexpr uint64_t kRestNanos = 50'000;

  uint64_t committed_ = 0;

 private:
  bool rests_ = false;
  uint64_t end_nanos_ = UINT64_MAX;
};

Judgement JudgementOf(const Report& report);

// Runs execute(), which returns a Status, again while that is Unknown or ResourceExhausted: while a slow disk keeps
// results from being durable in time, or the log's buffer full.
template <class Execute>
Status UntilKnown(Execute execute) {
  constexpr int kMostTries = 100;
  Status status = execute();
  const auto again = [&] { return absl::IsUnknown(status) || absl::IsResourceExhausted(status); };
  for (int tries = 1; again() && tries < kMostTries; ++tries) status = execute();
  return status;
}

// With this many keys or more the workload fills whole ranges of keys and empties them, so that indexes grow and
// shrink.
inline constexpr uint64_t kManyKeys = 1024;

// By a hash of the key, on all nodes or (ScenarioOptions::client) all but the last.
txn::Placement PlacementOf(const ScenarioOptions& drawn);

class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::vector<txn::TableOptions> Tables() const = 0;  // on every node
  // One session on node 0, before any client.
  virtual Status Load(txn::Session& session) = 0;
  // `number` is unique in the run, also over power cuts.
  virtual std::unique_ptr<Client> NewClient(txn::Session& session, uint32_t number) = 0;
  // Reads everything, after the last client: part of the history. Not `whole`: one key after the other, and what is on
  // dead nodes is left out.
  virtual Status ReadAll(txn::Session& session, bool whole) = 0;
  virtual Judgement Judge() = 0;
  // Whether transactions can still commit when only the data of the nodes that `lives` names is there.
  virtual bool CanGoOn(const std::function<bool(int node)>& lives) const = 0;
};

// InvalidArgument lists the names.
StatusOr<std::unique_ptr<Workload>> MakeWorkload(const ScenarioOptions& drawn, Control* control);
// Of all workloads, TPC-C with them.
const std::vector<std::string>& WorkloadNames();

}  // namespace gannet::scenario
