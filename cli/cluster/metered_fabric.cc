#include "cli/cluster/metered_fabric.h"

#include <utility>

#include "base/clock.h"

namespace gannet::cli {
namespace {

class MeteredNode final : public rdma::Node {
 public:
  MeteredNode(std::unique_ptr<rdma::Node> node, CallMeter* meter) : node_(std::move(node)), meter_(meter) {}

  rdma::NodeId id() const override { return node_->id(); }
  std::span<std::byte> memory() override { return node_->memory(); }
  uint64_t heap_offset() const override { return node_->heap_offset(); }
  uint64_t writable_offset() const override { return node_->writable_offset(); }
  StatusOr<std::unique_ptr<rdma::Channel>> OpenChannel() override { return node_->OpenChannel(); }
  Status Serve(int threads) override { return node_->Serve(threads); }
  size_t ServePending(size_t limit) override { return node_->ServePending(limit); }
  uint64_t ConnectionTo(rdma::NodeId peer) const override { return node_->ConnectionTo(peer); }
  bool CutOff(rdma::NodeId peer, uint64_t connection) override { return node_->CutOff(peer, connection); }
  void Shutdown() override { node_->Shutdown(); }

  void Handle(rdma::MethodId method, rdma::Handler handler) override {
    node_->Handle(method,
                  [handler = std::move(handler), counters = &meter_->Of(method)](
                      rdma::NodeId caller, std::span<const std::byte> request,
                      std::span<std::byte> response) -> StatusOr<size_t> {
                    const uint64_t start = NowNanos();
                    StatusOr<size_t> bytes = handler(caller, request, response);
                    const auto add = [](std::atomic<uint64_t>& counter, uint64_t n) {
                      counter.fetch_add(n, std::memory_order_relaxed);
                    };
                    add(counters->calls, 1);
                    add(counters->errors, bytes.ok() ? 0 : 1);
                    add(counters->nanos, NowNanos() - start);
                    add(counters->request_bytes, request.size());
                    add(counters->response_bytes, bytes.ok() ? *bytes : 0);
                    return bytes;
                  });
  }

 private:
  std::unique_ptr<rdma::Node> node_;
  CallMeter* meter_;
};

class MeteredFabric final : public rdma::Fabric {
 public:
  MeteredFabric(std::unique_ptr<rdma::Fabric> fabric, CallMeter* meter) : fabric_(std::move(fabric)), meter_(meter) {}

  const rdma::Capabilities& capabilities() const override { return fabric_->capabilities(); }
  int num_nodes() const override { return fabric_->num_nodes(); }
  bool Alive(rdma::NodeId id) const override { return fabric_->Alive(id); }
  Status WaitForAll(absl::Duration timeout) override { return fabric_->WaitForAll(timeout); }
  StatusOr<std::unique_ptr<rdma::Node>> Attach(rdma::NodeId id) override {
    StatusOr<std::unique_ptr<rdma::Node>> node = fabric_->Attach(id);
    if (!node.ok()) return node;
    return std::make_unique<MeteredNode>(*std::move(node), meter_);
  }

 private:
  std::unique_ptr<rdma::Fabric> fabric_;
  CallMeter* meter_;
};

}  // namespace

CallMeter::Counters& CallMeter::Of(rdma::MethodId method) {
  const std::lock_guard lock(mutex_);
  return counters_[method];
}

void CallMeter::ForEach(const std::function<void(rdma::MethodId, const Counters&)>& visit) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [method, counters] : counters_) visit(method, counters);
}

std::unique_ptr<rdma::Fabric> Metered(std::unique_ptr<rdma::Fabric> fabric, CallMeter* meter) {
  return std::make_unique<MeteredFabric>(std::move(fabric), meter);
}

}  // namespace gannet::cli
