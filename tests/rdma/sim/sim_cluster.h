// Nodes of a simulated fabric, and blocking verbs of node 0, for tests.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/coro/worker.h"
#include "rdma/sim/sim_fabric.h"

namespace gannet::rdma::sim {

struct SimClusterOptions {
  uint64_t seed = 1;
  int num_nodes = 2;
  std::string nic = "ideal";
  Serving serving = Serving::kShared;
  bool spread = false;
  Faults faults = {};
  std::function<void(std::string_view line)> trace = {};
};

class SimCluster {
 public:
  static constexpr uint64_t kBytesPerNode = 1 << 20;
  static constexpr uint64_t kWritable = WritableOffset(4096, kBytesPerNode, kDefaultReadOnlyPercent);

  explicit SimCluster(const SimClusterOptions& options) : simulation_(ForSimulation(options)) {
    SimFabricOptions fabric;
    fabric.num_nodes = options.num_nodes;
    fabric.bytes_per_node = kBytesPerNode;
    fabric.nic = *FindNicProfile(options.nic);
    fabric.serving = options.serving;
    fabric.spread = options.spread;
    fabric_ = SimFabric::Create(&simulation_, fabric).value();
    for (int i = 0; i < options.num_nodes; ++i) nodes_.push_back(fabric_->Attach(static_cast<NodeId>(i)).value());
    channel_ = nodes_[0]->OpenChannel().value();
    worker_.AddPoller([this] { return channel_->Poll(); });
  }
  ~SimCluster() {
    channel_.reset();
    nodes_.clear();
  }

  Simulation& simulation() { return simulation_; }
  SimFabric& fabric() { return *fabric_; }
  Node& node(NodeId id) { return *nodes_[id]; }
  Channel& channel() { return *channel_; }
  coro::Worker& worker() { return worker_; }
  uint64_t now() { return simulation_.now(); }

  static GlobalAddress At(NodeId node, uint64_t offset) { return {node, kWritable + offset}; }
  // Loads a word from memory, without a verb.
  uint64_t Word(GlobalAddress at) {
    uint64_t word;
    std::memcpy(&word, nodes_[at.node()]->memory().data() + at.offset(), sizeof word);
    return word;
  }

  Status Post(std::span<Operation> operations) { return worker_.BlockOn(PostTask(operations)); }
  Status Post(const Operation& operation) {
    std::array<Operation, 1> batch{operation};
    return Post(batch);
  }
  Status Write(GlobalAddress to, uint64_t word) { return Post(Operation::Write(&word, to, sizeof word)); }
  StatusOr<size_t> Call(NodeId to, MethodId method, absl::Duration timeout) {
    return worker_.BlockOn(CallTask(to, method, timeout));
  }

 private:
  static SimulationOptions ForSimulation(const SimClusterOptions& options) {
    SimulationOptions simulation;
    simulation.seed = options.seed;
    simulation.faults = options.faults;
    simulation.trace = options.trace;
    return simulation;
  }
  coro::Task<Status> PostTask(std::span<Operation> operations) { co_return co_await channel_->Post(operations); }
  coro::Task<StatusOr<size_t>> CallTask(NodeId to, MethodId method, absl::Duration timeout) {
    std::array<std::byte, 64> response;
    co_return co_await channel_->Call(to, method, {}, response, timeout);
  }

  Simulation simulation_;
  std::unique_ptr<SimFabric> fabric_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<Channel> channel_;
  coro::Worker worker_;
};

}  // namespace gannet::rdma::sim
