// The owner's side of CALL: finds requests, runs handlers, answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "rdma/fabric.h"
#include "rdma/shm/region.h"

namespace gannet::rdma::shm {

class CallServer {
 public:
  // `node_word`: of this attachment. When the node's word becomes another, the server stops.
  CallServer(std::shared_ptr<Region> region, NodeId node, uint64_t node_word);
  ~CallServer();
  CallServer(const CallServer&) = delete;
  CallServer& operator=(const CallServer&) = delete;

  // Before the first request is served.
  void Handle(MethodId method, Handler handler);

  void Start(int threads);
  bool started() const { return !threads_.empty(); }
  // The node's word must have changed before. Waits for handlers that are running.
  void Join();

  // Thread-safe. At most `limit` requests; returns how many.
  size_t ServePending(size_t limit);

 private:
  void Loop();
  void Sleep();
  bool NodeIsOurs() const;
  bool AnythingReady() const;
  // One request of this channel, if there is one.
  bool ServeChannel(int channel);
  bool Run(int channel, int slot);
  StatusOr<size_t> RunHandler(NodeId caller, const CallSlot& slot, std::span<const std::byte> request,
                              std::span<std::byte> response);

  std::shared_ptr<Region> region_;
  NodeId node_;
  uint64_t node_word_;
  NodeControl* control_;
  int ready_words_;
  std::unordered_map<uint32_t, Handler> handlers_;  // by method; what a slot says may be no MethodId
  std::vector<std::thread> threads_;
};

}  // namespace gannet::rdma::shm
