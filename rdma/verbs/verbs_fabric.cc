#include "rdma/verbs/verbs_fabric.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "rdma/heap_parts.h"
#include "rdma/verbs/verbs_node.h"

namespace gannet::rdma {
namespace verbs {
namespace {

constexpr uint64_t kLookAgainNs = 1'000'000;

class CardFabric final : public VerbsFabric {
 public:
  CardFabric(VerbsOptions options, ClusterMap map, const Capabilities& capabilities)
      : options_(std::move(options)), map_(std::move(map)), capabilities_(capabilities) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  int num_nodes() const override { return static_cast<int>(map_.nodes.size()); }
  StatusOr<std::unique_ptr<Node>> Attach(NodeId id) override;
  bool Alive(NodeId id) const override;
  Status WaitForAll(absl::Duration timeout) override;
  Status standing() const override;
  bool KnowsOfGuest(NodeId id) const override;
  std::string WhyDown(NodeId id) const override;
  VerbsStatistics statistics() const override;
  void Kill(NodeId id) override;

 private:
  // The nodes that are attached in this process and have not left.
  std::vector<std::shared_ptr<NodeParts>> Attached() const;
  std::string MissingNodes() const;
  StatusOr<std::shared_ptr<NodeParts>> Start(NodeId id);

  const VerbsOptions options_;
  const ClusterMap map_;
  const Capabilities capabilities_;
  mutable Mutex mutex_;
  std::map<NodeId, std::weak_ptr<NodeParts>> nodes_;  // guarded by mutex_
};

StatusOr<std::unique_ptr<Node>> CardFabric::Attach(NodeId id) {
  if (id >= num_nodes()) {
    return absl::InvalidArgumentError(absl::StrCat("node ", id, ": the cluster has ", num_nodes(), " nodes"));
  }
  StatusOr<std::shared_ptr<NodeParts>> parts = Start(id);
  if (!parts.ok()) return parts.status();
  auto node = std::make_unique<VerbsNode>(*parts);
  if (!map_.nodes[id].has_value()) {
    GANNET_RETURN_IF_ERROR((*parts)->core->agent->WaitForPlace(options_.connect_limit));
  }
  return std::unique_ptr<Node>(std::move(node));
}

StatusOr<std::shared_ptr<NodeParts>> CardFabric::Start(NodeId id) {
  const std::lock_guard lock(mutex_);
  if (const std::shared_ptr<NodeParts> here = nodes_[id].lock(); here != nullptr && here->core->attached()) {
    return absl::FailedPreconditionError(absl::StrCat("node ", id, " is taken by this process"));
  }
  StatusOr<std::shared_ptr<NodeParts>> parts = StartNode(options_, map_, id);
  if (parts.ok()) nodes_[id] = *parts;
  return parts;
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

Status CardFabric::standing() const {
  for (const auto& parts : Attached()) GANNET_RETURN_IF_ERROR(parts->core->agent->standing());
  return absl::OkStatus();
}

bool CardFabric::KnowsOfGuest(NodeId id) const {
  for (const auto& parts : Attached()) {
    if (id < num_nodes() && parts->core->agent->KnowsOfGuest(id)) return true;
  }
  return false;
}

std::string CardFabric::WhyDown(NodeId id) const {
  const auto attached = Attached();
  if (attached.empty()) return "this process has attached no node";
  return attached.front()->core->agent->WhyDown(id);
}

VerbsStatistics CardFabric::statistics() const {
  VerbsStatistics sum;
  for (const auto& parts : Attached()) {
    const control::Agent& agent = *parts->core->agent;
    sum.queue_pairs_served += parts->connector->serving();
    sum.queue_pairs_cut += parts->server->cut_off();
    sum.refused += agent.refusals();
    sum.half_open += agent.half_open();
    if (agent.refusals() > 0) sum.last_refusal = agent.last_refusal();
  }
  return sum;
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

// The capabilities of the first address that belongs to a local RDMA device: all cards of a cluster are of one kind.
StatusOr<Capabilities> FindCapabilities(const ClusterMap& map) {
  std::vector<control::Place> places = map.nodes;
  places.push_back(map.guest);
  std::string seen;
  for (const control::Place& place : places) {
    if (!place.has_value()) continue;
    const StatusOr<std::vector<DeviceReport>> devices = ListDevices(place->host());
    if (!devices.ok()) return devices.status();
    for (const DeviceReport& device : *devices) {
      if (device.chosen) return device.capabilities;
      absl::StrAppend(&seen, "; ", device.name, ": ", device.why_not);
    }
  }
  return absl::NotFoundError(absl::StrCat("no node's address is one of an RDMA device of this machine",
                                          seen.empty() ? ", which has none (see docs/running-on-rdma.md)" : seen));
}

StatusOr<ClusterMap> MakeMap(const VerbsOptions& options) {
  ClusterMap map;
  for (const std::string& text : options.nodes) {
    map.nodes.emplace_back();
    if (text.empty()) continue;
    StatusOr<control::Endpoint> endpoint = control::ParseEndpoint(text);
    if (!endpoint.ok()) return endpoint.status();
    map.nodes.back() = *endpoint;
  }
  if (!map.nodes[0].has_value()) return absl::InvalidArgumentError("node 0 needs an address: guests come last");
  if (map.nodes.back().has_value()) return map;  // no guests
  const StatusOr<control::Endpoint> guest = options.guest_host.empty() ? control::LocalEndpointTowards(*map.nodes[0])
                                                                       : control::ParseHost(options.guest_host);
  if (!guest.ok()) return guest.status();
  map.guest = *guest;
  return map;
}

Status CheckMemory(const VerbsOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckReadOnlyPercent(options.read_only_percent));
  const auto wrong = [](uint64_t bytes) {
    return absl::InvalidArgumentError(absl::StrCat("a node cannot have ", bytes, " bytes of memory"));
  };
  const uint64_t most = options.bytes_per_node;
  if (most <= verbs::kHeapOffset || most > GlobalAddress::kOffsetMask) return wrong(most);
  for (const uint64_t bytes : options.bytes_of_node) {
    if (bytes <= verbs::kHeapOffset || bytes > most) return wrong(bytes);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace verbs

StatusOr<std::unique_ptr<VerbsFabric>> VerbsFabric::Create(const VerbsOptions& options) {
  if (options.nodes.empty() || options.nodes.size() > kMaxVerbsNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cluster has 1 to ", kMaxVerbsNodes, " nodes, not ", options.nodes.size()));
  }
  GANNET_RETURN_IF_ERROR(verbs::CheckMemory(options));
  if (options.secret.empty()) return absl::InvalidArgumentError("the cluster has no secret: set one");
  StatusOr<verbs::ClusterMap> map = verbs::MakeMap(options);
  if (!map.ok()) return map.status();
  const StatusOr<Capabilities> capabilities = verbs::FindCapabilities(*map);
  if (!capabilities.ok()) return capabilities.status();
  return std::make_unique<verbs::CardFabric>(options, *std::move(map), *capabilities);
}

}  // namespace gannet::rdma
