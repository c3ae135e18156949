#include "cluster/call_meter.h"

#include <map>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"
#include "rdma/forwarding.h"

namespace gannet::cluster {
namespace {

class MeteredNode final : public rdma::ForwardingNode {
 public:
  MeteredNode(std::unique_ptr<rdma::Node> node, CallMeter* meter) : ForwardingNode(std::move(node)), meter_(meter) {}

  void Handle(rdma::MethodId method, rdma::Handler handler) override {
    inner().Handle(method,
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
  CallMeter* meter_;
};

class MeteredFabric final : public rdma::ForwardingFabric {
 public:
  MeteredFabric(std::unique_ptr<rdma::Fabric> fabric, CallMeter* meter)
      : ForwardingFabric(fabric.get()), fabric_(std::move(fabric)), meter_(meter) {}

  StatusOr<std::unique_ptr<rdma::Node>> Attach(rdma::NodeId id) override {
    StatusOr<std::unique_ptr<rdma::Node>> node = inner().Attach(id);
    if (!node.ok()) return node;
    return std::make_unique<MeteredNode>(*std::move(node), meter_);
  }

 private:
  const std::unique_ptr<rdma::Fabric> fabric_;
  CallMeter* meter_;
};

}  // namespace

struct CallMeter::State {
  Mutex mutex;
  std::map<rdma::MethodId, Counters> counters;
};

CallMeter::CallMeter() : state_(std::make_unique<State>()) {}
CallMeter::~CallMeter() = default;

CallMeter::Counters& CallMeter::Of(rdma::MethodId method) {
  const std::lock_guard lock(state_->mutex);
  return state_->counters[method];
}

void CallMeter::ForEach(const std::function<void(rdma::MethodId, const Counters&)>& visit) const {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [method, counters] : state_->counters) visit(method, counters);
}

std::unique_ptr<rdma::Fabric> Metered(std::unique_ptr<rdma::Fabric> fabric, CallMeter* meter) {
  return std::make_unique<MeteredFabric>(std::move(fabric), meter);
}

}  // namespace gannet::cluster
