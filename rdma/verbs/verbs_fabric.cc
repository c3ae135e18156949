#include "rdma/verbs/verbs_fabric.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/base/clock.h"
#include "rdma/base/thread.h"
#include "rdma/verbs/verbs_node.h"

namespace gannet::rdma {
namespace verbs {
namespace {

constexpr uint64_t kLookAgainNs = 1'000'000;

class CardFabric final : public VerbsFabric {
 public:
  CardFabric(VerbsOptions options, std::vector<control::Endpoint> endpoints, const Capabilities& capabilities)
      : options_(std::move(options)), endpoints_(std::move(endpoints)), capabilities_(capabilities) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  int num_nodes() const override { return static_cast<int>(endpoints_.size()); }
  StatusOr<std::unique_ptr<Node>> Attach(NodeId id) override;
  bool Alive(NodeId id) const override;
  Status WaitForAll(absl::Duration timeout) override;
  void Kill(NodeId id) override;

 private:
  // Of the nodes that are attached here, and did not leave.
  std::vector<std::shared_ptr<NodeParts>> Attached() const;
  std::string MissingNodes() const;

  const VerbsOptions options_;
  const std::vector<control::Endpoint> endpoints_;
  const Capabilities capabilities_;
  mutable Mutex mutex_;
  std::map<NodeId, std::weak_ptr<NodeParts>> nodes_;  // guarded by mutex_
};

StatusOr<std::unique_ptr<Node>> CardFabric::Attach(NodeId id) {
  if (id >= num_nodes()) {
    return absl::InvalidArgumentError(absl::StrCat("node ", id, ": the cluster has ", num_nodes(), " nodes"));
  }
  const std::lock_guard lock(mutex_);
  if (const std::shared_ptr<NodeParts> here = nodes_[id].lock(); here != nullptr && here->core->attached()) {
    return absl::FailedPreconditionError(absl::StrCat("node ", id, " is taken by this process"));
  }
  StatusOr<std::shared_ptr<NodeParts>> parts = StartNode(options_, endpoints_, id);
  if (!parts.ok()) return parts.status();
  nodes_[id] = *parts;
  return std::make_unique<VerbsNode>(*std::move(parts));
}

std::vector<std::shared_ptr<NodeParts>> CardFabric::Attached() const {
  std::vector<std::shared_ptr<NodeParts>> attached;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, node] : nodes_) {
    std::shared_ptr<NodeParts> parts = node.lock();
    if (parts != nullptr && parts->core->attached()) attached.push_back(std::move(parts));
  }
  return attached;
}

bool CardFabric::Alive(NodeId id) const {
  if (id >= num_nodes()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (const auto here = nodes_.find(id); here != nodes_.end()) {
      const std::shared_ptr<NodeParts> parts = here->second.lock();
      if (parts != nullptr) return parts->core->attached();
    }
  }
  const auto attached = Attached();
  return !attached.empty() && attached.front()->core->agent->generation(id) != 0;
}

std::string CardFabric::MissingNodes() const {
  const auto attached = Attached();
  if (attached.empty()) return " all, since this process has attached none";
  std::string missing;
  for (int i = 0; i < num_nodes(); ++i) {
    const auto id = static_cast<NodeId>(i);
    for (const auto& parts : attached) {
      const control::Agent& agent = *parts->core->agent;
      if (agent.generation(id) != 0) continue;
      absl::StrAppend(&missing, " ", i, " (", agent.WhyDown(id), ")");
      break;
    }
  }
  return missing;
}

Status CardFabric::WaitForAll(absl::Duration timeout) {
  const uint64_t deadline = NowNanos() + static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(timeout)));
  for (;;) {
    const std::string missing = MissingNodes();
    if (missing.empty()) return absl::OkStatus();
    if (NowNanos() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("after ", absl::FormatDuration(timeout), " these nodes have not attached:", missing));
    }
    SleepForNanos(kLookAgainNs);
  }
}

void CardFabric::Kill(NodeId id) {
  std::shared_ptr<NodeParts> parts;
  {
    const std::lock_guard lock(mutex_);
    parts = nodes_[id].lock();
  }
  if (parts == nullptr) return;
  parts->core->agent->RequestStop();
  parts->server->RequestStop();
  parts->connector->CutServing();
}

// Of the first address that is an RDMA device's here: a cluster is made of cards of one kind.
StatusOr<Capabilities> FindCapabilities(const std::vector<control::Endpoint>& endpoints) {
  std::string seen;
  for (const control::Endpoint& endpoint : endpoints) {
    const StatusOr<std::vector<DeviceReport>> devices = ListDevices(endpoint.host());
    if (!devices.ok()) return devices.status();
    for (const DeviceReport& device : *devices) {
      if (device.chosen) return device.capabilities;
      absl::StrAppend(&seen, "; ", device.name, ": ", device.why_not);
    }
  }
  return absl::NotFoundError(absl::StrCat("no node's address is one of an RDMA device of this machine",
                                          seen.empty() ? ", which has none (see docs/running-on-rdma.md)" : seen));
}

}  // namespace
}  // namespace verbs

StatusOr<std::unique_ptr<VerbsFabric>> VerbsFabric::Create(const VerbsOptions& options) {
  if (options.nodes.empty() || options.nodes.size() > kMaxVerbsNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cluster has 1 to ", kMaxVerbsNodes, " nodes, not ", options.nodes.size()));
  }
  if (options.bytes_per_node <= verbs::kHeapOffset || options.bytes_per_node > GlobalAddress::kOffsetMask) {
    return absl::InvalidArgumentError(absl::StrCat("a node cannot have ", options.bytes_per_node, " bytes of memory"));
  }
  if (options.secret.empty()) return absl::InvalidArgumentError("the cluster has no secret: set one");
  std::vector<control::Endpoint> endpoints;
  for (const std::string& text : options.nodes) {
    StatusOr<control::Endpoint> endpoint = control::ParseEndpoint(text);
    if (!endpoint.ok()) return endpoint.status();
    endpoints.push_back(*endpoint);
  }
  const StatusOr<Capabilities> capabilities = verbs::FindCapabilities(endpoints);
  if (!capabilities.ok()) return capabilities.status();
  return std::make_unique<verbs::CardFabric>(options, std::move(endpoints), *capabilities);
}

}  // namespace gannet::rdma
