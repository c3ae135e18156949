// A small bench on shared memory or in a simulation.
#pragma once

#include <memory>

#include "rdma/fabric.h"
#include "rdma/sim/simulation.h"
#include "ycsb/cluster.h"
#include "ycsb/driver.h"

namespace gannet::ycsb {

struct SmallBenchOptions {
  bool simulated = false;
  uint64_t seed = 1;
  int servers = 1;
  int machines = 1;
  int server_threads = 1;
  uint64_t keys = 3000;
  KeyForm key_form = KeyForm::kLinear;
  IndexKind index = IndexKind::kXStore;
  IndexRights index_rights = IndexRights::kClients;
  size_t value_bytes = 100;
  bool values_in_entries = false;
  bool colocated = false;
  bool partitioned = false;
  index::shared_leaf::Keeping keeping = index::shared_leaf::Keeping::kNone;
  DurabilityMode durability = DurabilityMode::kNone;
  std::shared_ptr<log::FileSystem> disk = {};
  bool adversarial = false;  // shm
  bool cpu_atomics = false;  // sim: atomics of NICs are atomic with those of CPUs
};

// A loaded and started bench. Any failure is a failed check.
class SmallBench {
 public:
  explicit SmallBench(const SmallBenchOptions& options);
  ~SmallBench();

  Cluster& cluster() { return *cluster_; }
  // Null on shared memory.
  rdma::sim::Simulation* simulation() { return simulation_.get(); }
  // A run of a fraction of a second, or of a millisecond of virtual time.
  RunOptions ShortRun() const;
  // The contents of all servers; also checks every record.
  Server::Contents Contents();

 private:
  std::unique_ptr<rdma::sim::Simulation> simulation_;
  std::unique_ptr<rdma::Fabric> fabric_;
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace gannet::ycsb
