// The simulated cluster of a scenario: nodes with databases, over a disk that breaks; it can lose its power and start
// again with what the disk kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/faulty_file_system.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"
#include "scenario/scenario.h"
#include "txn/database.h"
#include "txn/session.h"

namespace gannet::scenario {

class Cluster {
 public:
  // Makes a database's tables, before it starts.
  using CreateTables = std::function<Status(txn::Database& database)>;

  // `drawn`: every field set. All must outlive it.
  Cluster(rdma::sim::Simulation* simulation, const ScenarioOptions* drawn, CreateTables create_tables);
  ~Cluster();

  // Opens and starts the databases of all nodes at once. After a power cut: recovers.
  Status Start();
  // From the observer: all nodes die at this moment; the disk loses what was not synced, as the seed has it.
  void CutPower();
  // The processes of those nodes that live are killed, too, and the disk keeps all: what becomes of a cluster with a
  // log when one node has died (docs/repair.md).
  void KillAll();
  // From the observer: one node dies, with its memory, at this moment or after so many verbs, in between two; should it
  // not come that far within a while, then. The others go on.
  void Kill(int node, uint64_t after_verbs);
  // A new node takes the place of a dead one. It has none of what that had in memory.
  Status Restart(int node);
  // Until what dead nodes left has been repaired by all that live. DeadlineExceeded if that does not happen.
  Status AwaitRepair();
  // None from now on, and what was cut is whole again.
  void StopFaults();
  // In order. No session may be open. The dead are left out.
  Status Close();

  bool lives(int node) const { return databases_[static_cast<size_t>(node)] != nullptr; }
  int first_living() const;
  bool AllLive() const { return std::find(databases_.begin(), databases_.end(), nullptr) == databases_.end(); }

  int nodes() const { return drawn_->nodes; }
  txn::Database& database(int node) { return *databases_[static_cast<size_t>(node)]; }
  rdma::sim::Simulation& simulation() { return *simulation_; }
  rdma::sim::SimFabric& fabric() { return *fabric_; }

  // Runs work(node) on a thread of each living node at once, and waits for all; the first error.
  Status OnEachNode(const std::string& name, const std::function<Status(int node)>& work);
  // Runs work(a session of `node`) on a thread of it, and waits.
  Status InSession(int node, const std::string& name, const std::function<Status(txn::Session& session)>& work);
  // Each key once, in order, reachable, and not locked; no memory lost or used twice; on every living node, while
  // nothing changes.
  Status CheckStructures();

 private:
  Status StartNode(int node);
  bool IsRepaired() const;
  Status CheckTable(int node, const txn::Table& table);
  void ApplyDiskFaults();
  void KillProcesses();
  void ScheduleFullDisk();

  rdma::sim::Simulation* simulation_;
  const ScenarioOptions* drawn_;
  CreateTables create_tables_;
  std::shared_ptr<log::FaultyFileSystem> disk_;
  bool has_data_ = false;  // all nodes have started: from now on no database may be created
  bool full_is_scheduled_ = false;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::vector<std::unique_ptr<txn::Database>> databases_;
  std::vector<int64_t> unaccounted_;  // bytes of each node's memory when it first started (memory_check.h)
};

}  // namespace gannet::scenario
