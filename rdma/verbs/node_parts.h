// The parts of an attached node, destroyed in the order of the destructor below. The node's channels keep them alive,
// because the connector must run until the last queue pair is released.
#pragma once

#include <array>
#include <memory>

#include "base/thread.h"
#include "rdma/verbs/call_server.h"
#include "rdma/verbs/connector.h"
#include "rdma/verbs/node_core.h"

namespace gannet::rdma::verbs {

// The channel numbers in use at a node. Thread-safe.
class ChannelNumbers {
 public:
  // The lowest free number, or -1.
  int Take() {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < kMaxVerbsChannelsPerNode; ++i) {
      if (!taken_[i]) return taken_[i] = true, i;
    }
    return -1;
  }
  void Return(int number) {
    const std::lock_guard lock(mutex_);
    taken_[number] = false;
  }

 private:
  Mutex mutex_;
  std::array<bool, kMaxVerbsChannelsPerNode> taken_{};
};

struct NodeParts {
  std::shared_ptr<NodeCore> core;
  std::unique_ptr<CallServer> server;
  std::unique_ptr<Connector> connector;
  ChannelNumbers numbers;

  ~NodeParts() {
    if (core != nullptr && core->agent != nullptr) core->agent->Stop();  // the agent calls the connector
    connector.reset();                                                   // the connector calls the server
    server.reset();
  }
};

}  // namespace gannet::rdma::verbs
