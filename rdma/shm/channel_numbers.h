// The channel numbers in use at a node. Shared by the node and its channels.
#pragma once

#include <bitset>
#include <mutex>

#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma::shm {

// Thread-safe.
class ChannelNumbers {
 public:
  // The lowest free number, or -1.
  int Take() {
    std::lock_guard lock(mutex_);
    for (int i = 0; i < kMaxShmChannelsPerNode; ++i) {
      if (used_[i]) continue;
      used_[i] = true;
      return i;
    }
    return -1;
  }

  void Return(int number) {
    std::lock_guard lock(mutex_);
    used_[number] = false;
  }

 private:
  std::mutex mutex_;
  std::bitset<kMaxShmChannelsPerNode> used_;
};

}  // namespace gannet::rdma::shm
