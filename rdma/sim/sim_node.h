// A node of the sim fabric.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "rdma/fabric.h"
#include "rdma/serving_meter.h"
#include "rdma/sim/fabric_core.h"
#include "rdma/statistics.h"

namespace gannet::rdma::sim {

class SimNode final : public Node {
 public:
  SimNode(FabricCore* core, Attachment* own) : core_(core), own_(own) { own_->handlers = &handlers_; }
  ~SimNode() override;

  NodeId id() const override { return own_->id; }
  std::span<std::byte> memory() override { return {own_->memory.data(), core_->options().bytes_per_node}; }
  uint64_t heap_offset() const override { return kSimHeapOffset; }
  uint64_t writable_offset() const override { return core_->range().writable_offset; }

  StatusOr<std::unique_ptr<Channel>> OpenChannel() override;
  void Handle(MethodId method, Handler handler) override;
  Status Serve(int threads) override;
  size_t ServePending(size_t limit) override;
  ServedTime served_time() const override;
  uint64_t ConnectionTo(NodeId peer) const override { return core_->ConnectionTo(peer); }
  bool CutOff(NodeId peer, uint64_t connection) override { return core_->ConnectionTo(peer) != connection; }
  void Shutdown() override;

 private:
  // The loop of a server thread.
  void Loop();
  // The loop of a thread that has connections of its own.
  void ServeOwn(Attachment::ServerQueue* queue);
  void ServeOne(ServingMeter::By by);
  void ServeCall(CallFlight* call, ServingMeter::By by);
  // Registers the running thread as one that serves calls between its coroutines.
  void RememberWorker();

  FabricCore* core_;
  Attachment* own_;
  std::unordered_map<MethodId, Handler> handlers_;
  uint64_t last_worker_ = UINT64_MAX;
  ServingMeter meter_;
};

}  // namespace gannet::rdma::sim
