// The simulated cluster of a scenario: nodes with databases on a faulty disk. It can lose its power and restart with
// what the disk kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/scenario/scenario.h"
#include "log/file/simulated/faulty_file_system.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::scenario {

class Cluster {
 public:
  // Creates a database's tables before the database starts.
  using CreateTables = std::function<Status(txn::Database& database)>;

  // All fields of `drawn` are set. All arguments must outlive the cluster.
  Cluster(rdma::sim::Simulation* simulation, const ScenarioOptions* drawn, CreateTables create_tables);
  ~Cluster();

  // Opens and starts the databases of all nodes at once. After a power cut they recover.
  Status Start();
  // Called by the observer: all nodes die at this moment, and the disk loses unsynced data as the seed decides.
  void CutPower();
  // Kills the processes of all living nodes; the disk loses nothing. This is what follows the death of one node in a
  // cluster with a log (docs/repair.md).
  void KillAll();
  // Called by the observer: one node dies, with its memory, at once or after `after_verbs` verbs; if it does not post
  // that many within 1 ms, then. The others continue.
  void Kill(int node, uint64_t after_verbs);
  // Starts a new node in the place of a dead one. It has none of the dead node's memory.
  Status Restart(int node);
  // Waits until all living nodes have repaired what dead nodes left. DeadlineExceeded if that takes too long.
  Status AwaitRepair();
  // Waits until no living node owes the others anything (txn/session/pending_operations.h). Without faults that takes
  // little time, no matter what the clients do.
  Status AwaitPending();
  // Gives the nodes other ranges of keys to claim, in one seed of four. Each node learns of them later.
  Status MoveRanges();
  // Ends all faults and mends all links.
  void StopFaults();
  // Closes the databases of the living nodes in order. No session may be open.
  Status Close();

  bool lives(int node) const { return databases_[static_cast<size_t>(node)] != nullptr; }
  int first_living() const;
  bool AllLive() const { return std::find(databases_.begin(), databases_.end(), nullptr) == databases_.end(); }

  int nodes() const { return drawn_->nodes; }
  txn::Database& database(int node) { return *databases_[static_cast<size_t>(node)]; }
  rdma::sim::Simulation& simulation() { return *simulation_; }
  rdma::sim::SimFabric& fabric() { return *fabric_; }

  // Runs work(node) on a thread of each living node at once, waits for all, and returns the first error.
  Status OnEachNode(const std::string& name, const std::function<Status(int node)>& work);
  // Runs work(session) in a session of `node`, on a thread of that node, and waits.
  Status InSession(int node, const std::string& name, const std::function<Status(txn::Session& session)>& work);
  // Checks every living node, while nothing changes: each key is there once, in order, reachable, and not locked; no
  // memory is lost or used twice.
  Status CheckStructures();

 private:
  Status StartNode(int node);
  Status SetClaimRanges(txn::Database& database) const;
  // What is still to be repaired, in words; empty: nothing.
  std::string Unrepaired() const;
  Status CheckTable(int node, const txn::Table& table);
  void ApplyDiskFaults();
  void KillProcesses();
  void ScheduleFullDisk();

  rdma::sim::Simulation* simulation_;
  const ScenarioOptions* drawn_;
  CreateTables create_tables_;
  std::shared_ptr<log::FaultyFileSystem> disk_;
  bool has_data_ = false;  // all nodes have started once: from now on no database may be created
  bool full_is_scheduled_ = false;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::vector<std::unique_ptr<txn::Database>> databases_;
  uint64_t moves_ = 0;                // how often there were other ranges
  std::vector<int64_t> unaccounted_;  // bytes of each node's memory when it first started (memory_check.h)
};

}  // namespace gannet::scenario
