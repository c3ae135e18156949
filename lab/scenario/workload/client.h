// Client: a coroutine of a worker that runs transactions of a workload, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "lab/scenario/check/history.h"
#include "rdma/sim/simulation.h"
#include "txn/run/session.h"

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
  uint64_t rest_nanos = 0;  // see ScenarioOptions; 0 or 1: threads do not rest
  std::string broken = {};  // describes something impossible that a client saw: the run ends

  // A commit that ended as Unknown, because another node could not be told its part in time.
  struct OwedCommit {
    OperationId operation;
    int node;  // that owes it
  };
  std::vector<OwedCommit> owed = {};
  std::vector<int> dead = {};  // nodes, at the end
};

class Client {
 public:
  virtual ~Client() = default;
  // Runs transactions until control.stop, or until its end time.
  coro::Task<void> Run();
  // The client begins no transaction at `nanos` or later. Default: no limit.
  void EndAt(uint64_t nanos) { end_nanos_ = nanos; }
  // Number of transactions committed so far.
  uint64_t committed() const { return committed_; }
  // From now on the client begins no transactions.
  void Rest() { rests_ = true; }

 protected:
  // Both outlive it.
  Client(txn::Session* session, Control* control) : session_(session), control_(control) {}

  // Plans a transaction and runs it. After an error other than a refusal (JudgedTransaction) the client waits.
  virtual coro::Task<Status> RunOne() = 0;
  // True if it should wait now, although it goes on later.
  virtual bool Waits() const { return false; }

  txn::Session& session() const { return *session_; }
  Control& control() const { return *control_; }
  void CountCommit() { ++committed_; }

 private:
  // True if no transaction of the session is open: then its thread may rest.
  bool MayRest() const;
  txn::Session* session_;
  Control* control_;
  uint64_t committed_ = 0;
  bool rests_ = false;
  uint64_t end_nanos_ = UINT64_MAX;
};

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

}  // namespace gannet::scenario
