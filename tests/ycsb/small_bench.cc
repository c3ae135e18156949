#include "tests/ycsb/small_bench.h"

#include <utility>

#include "base/check.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/sim/sim_fabric.h"

namespace gannet::ycsb {
namespace {

constexpr uint64_t kBytesPerNode = uint64_t{64} << 20;

template <class T>
T Must(StatusOr<T> result) {
  GANNET_CHECK(result.ok(), "%s", result.status().ToString());
  return std::move(*result);
}
void Must(const Status& status) {
  GANNET_CHECK(status.ok(), "%s", status.ToString());
}

}  // namespace

SmallBench::SmallBench(const SmallBenchOptions& o) {
  const int nodes = o.colocated ? o.servers : o.servers + o.machines;
  if (o.simulated) {
    rdma::sim::SimulationOptions simulation;
    simulation.seed = o.seed;
    simulation_ = std::make_unique<rdma::sim::Simulation>(simulation);
    rdma::sim::SimFabricOptions fabric;
    fabric.num_nodes = nodes;
    fabric.bytes_per_node = kBytesPerNode;
    fabric.nic.cpu_coherent_atomics = o.cpu_atomics;
    fabric_ = Must(rdma::sim::SimFabric::Create(simulation_.get(), fabric));
  } else {
    fabric_ = Must(rdma::ShmFabric::InProcess(
        {.num_nodes = nodes, .bytes_per_node = kBytesPerNode, .adversarial = o.adversarial, .seed = o.seed}));
  }
  cluster_ = Must(Cluster::Create(fabric_.get(), {.servers = o.servers,
                                                  .server_threads = o.server_threads,
                                                  .machines = o.machines,
                                                  .colocated = o.colocated,
                                                  .partitioned = o.partitioned,
                                                  .keeping = o.keeping,
                                                  .key_form = o.key_form,
                                                  .keys = o.keys,
                                                  .index = o.index,
                                                  .index_rights = o.index_rights,
                                                  .value_bytes = o.value_bytes,
                                                  .values_in_entries = o.values_in_entries,
                                                  .durability = o.durability,
                                                  .disk = o.disk}));
  Must(cluster_->Load(nullptr));
  Must(cluster_->Start());
}

SmallBench::~SmallBench() = default;

RunOptions SmallBench::ShortRun() const {
  RunOptions options;
  options.warmup = absl::ZeroDuration();
  options.duration = simulation_ != nullptr ? absl::Microseconds(500) : absl::Milliseconds(20);
  options.interval = simulation_ != nullptr ? absl::Microseconds(100) : absl::Milliseconds(1);
  options.at_least = 300;
  return options;
}

Server::Contents SmallBench::Contents() {
  Server::Contents sum;
  for (int i = 0; i < cluster_->options().servers; ++i) {
    const Server::Contents contents = Must(cluster_->server(i).Check());
    sum.records += contents.records;
    sum.updates += contents.updates;
  }
  return sum;
}

}  // namespace gannet::ycsb
