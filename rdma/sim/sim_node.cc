#include "rdma/sim/sim_node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rdma/sim/call_flight.h"
#include "rdma/sim/sim_channel.h"

namespace gannet::rdma::sim {
namespace {

constexpr int kMaxServerThreads = 1024;

}  // namespace

SimNode::~SimNode() {
  Shutdown();
  own_->handlers = nullptr;
}

StatusOr<std::unique_ptr<Channel>> SimNode::OpenChannel() {
  for (size_t i = 0; i < own_->used_channels.size(); ++i) {
    if (!own_->used_channels[i]) return std::make_unique<SimChannel>(core_, own_, static_cast<uint16_t>(i));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("node ", id(), " has given out all of its ", kMaxSimChannelsPerNode, " channels"));
}

void SimNode::Handle(MethodId method, Handler handler) {
  GANNET_CHECK(own_->servers.empty(), "node %d: method %d is registered after Serve", id(), method);
  const bool is_new = handlers_.emplace(method, std::move(handler)).second;
  GANNET_CHECK(is_new, "node %d: method %d has two handlers", id(), method);
}

Status SimNode::Serve(int threads) {
  if (threads < 1 || threads > kMaxServerThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("a node has 1 to ", kMaxServerThreads, " server threads, not ", threads));
  }
  if (!own_->servers.empty()) return absl::FailedPreconditionError(absl::StrCat("node ", id(), " serves already"));
  const bool shared = core_->options().serving == Serving::kShared;
  for (int i = 0; i < threads; ++i) {
    if (!shared) own_->queues.push_back(std::make_unique<Attachment::ServerQueue>());
    const auto loop = [this, shared, i] { shared ? Loop() : ServeOwn(own_->queues[static_cast<size_t>(i)].get()); };
    own_->servers.push_back(core_->simulation().StartOn(id(), absl::StrCat("server-", i), loop));
  }
  return absl::OkStatus();
}

void SimNode::Loop() {
  while (own_->there()) {
    if (!own_->requests.empty()) {
      ServeOne(ServingMeter::By::kServer);
      continue;
    }
    ++own_->parked_servers;
    core_->simulation().Park(&own_->requests, UINT64_MAX);
    --own_->parked_servers;
  }
}

void SimNode::ServeOwn(Attachment::ServerQueue* queue) {
  const bool polls = core_->options().serving == Serving::kPolling;
  while (own_->there()) {
    if (!queue->requests.empty()) {
      ServeCall(queue->requests.pop_front(), ServingMeter::By::kServer);
    } else if (polls && queue->connected) {
      core_->simulation().Poll(queue);
      Charge(Cost::kWorkerRound);
    } else {
      core_->simulation().Park(queue, UINT64_MAX);
      if (!polls) core_->simulation().Work(core_->options().wake_up_nanos);
    }
  }
}

void SimNode::ServeOne(ServingMeter::By by) {
  ServeCall(own_->requests.pop_front(), by);
}

void SimNode::ServeCall(CallFlight* call, ServingMeter::By by) {
  const uint64_t start = core_->now();
  call->Run();
  meter_.Add(by, core_->now() - start);
}

ServedTime SimNode::served_time() const {
  ServedTime served = meter_.Read(own_->servers.size());
  Nic& own_nic = core_->nic(own_->id);
  const NicStatistics& nic = own_nic.statistics();
  served.link_bytes_per_second = static_cast<uint64_t>(core_->options().nic.bandwidth);
  served.link_out_nanos = nic.busy_out_nanos;
  served.link_in_nanos = nic.busy_in_nanos;
  served.engine_picos_per_verb = own_nic.picos_per_served_verb();
  served.engine_nanos = nic.busy_serve_nanos;
  return served;
}

size_t SimNode::ServePending(size_t limit) {
  if (core_->simulation().current_fiber() != last_worker_) RememberWorker();
  size_t served = 0;
  for (; served < limit && !own_->requests.empty() && own_->there(); ++served) {
    ServeOne(ServingMeter::By::kWorker);
  }
  return served;
}

void SimNode::RememberWorker() {
  last_worker_ = core_->simulation().current_fiber();
  std::vector<uint64_t>& workers = own_->serving_workers;
  if (std::find(workers.begin(), workers.end(), last_worker_) != workers.end()) return;
  workers.push_back(last_worker_);
  own_->observer_serves = own_->observer_serves || last_worker_ == kObserver;
  core_->simulation().BindCurrentTo(id());
}

void SimNode::Shutdown() {
  core_->Leave(own_);
  for (Runtime::Thread* server : own_->servers) core_->simulation().Join(server);
}

}  // namespace gannet::rdma::sim
