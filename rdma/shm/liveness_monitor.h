// Notices that the process of a node has ended, and marks the node dead for all. Each process of a cluster over a
// memory file has one; any of them may be the first to notice.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "rdma/shm/region.h"

namespace gannet::rdma::shm {

// True if the process that holds `node` is running.
bool HolderIsRunning(const NodeControl& control);

class LivenessMonitor {
 public:
  explicit LivenessMonitor(std::shared_ptr<Region> region);
  ~LivenessMonitor();
  LivenessMonitor(const LivenessMonitor&) = delete;
  LivenessMonitor& operator=(const LivenessMonitor&) = delete;

 private:
  void Loop();
  void Bury(NodeId node, uint64_t word);

  std::shared_ptr<Region> region_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gannet::rdma::shm
