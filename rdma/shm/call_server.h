// The owner's side of CALL: finds requests, runs handlers, answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "rdma/fabric.h"
#include "rdma/serving_meter.h"
#include "rdma/shm/region.h"
#include "rdma/statistics.h"

namespace gannet::rdma::shm {

class CallServer {
 public:
  // `node_word`: state word of this attachment. The server stops when the node's word changes.
  CallServer(std::shared_ptr<Region> region, NodeId node, uint64_t node_word);
  ~CallServer();
  CallServer(const CallServer&) = delete;
  CallServer& operator=(const CallServer&) = delete;

  // Called before the first request is served.
  void Handle(MethodId method, Handler handler);

  void Start(int threads);
  bool started() const { return !threads_.empty(); }
  // Call it after the node's word has changed. Waits for running handlers.
  void Join();

  // Thread-safe. Serves at most `limit` requests on a thread of this kind and returns their number.
  size_t ServePending(size_t limit, ServingMeter::By by);
  ServedTime served_time() const { return meter_.Read(num_threads_.load(std::memory_order_relaxed)); }

 private:
  void Loop();
  void Sleep();
  bool NodeIsOurs() const;
  bool AnythingReady() const;
  // The functions below set *end to the time at which the last request was answered, if there was one.
  size_t ServeReady(size_t limit, uint64_t* end);
  // Serves one request of this channel, if there is one.
  bool ServeChannel(int channel, uint64_t* end);
  bool Run(int channel, int slot, uint64_t* end);
  StatusOr<size_t> RunHandler(NodeId caller, const CallSlot& slot, std::span<const std::byte> request,
                              std::span<std::byte> response);

  std::shared_ptr<Region> region_;
  NodeId node_;
  uint64_t node_word_;
  NodeControl* control_;
  int ready_words_;
  std::unordered_map<uint32_t, Handler> handlers_;  // by method; the number in a slot may be no MethodId
  std::vector<std::thread> threads_;
  std::atomic<uint64_t> num_threads_ = 0;
  ServingMeter meter_;
};

}  // namespace gannet::rdma::shm
