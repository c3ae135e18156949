#include "rdma/verbs/verbs_node.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/verbs/verbs_channel.h"

namespace gannet::rdma::verbs {
namespace {

constexpr int kMaxServerThreads = 64;

control::AgentOptions AgentOptionsOf(const NodeCore& core, const control::Endpoint& listens_at) {
  control::AgentOptions options;
  options.self = core.id();
  control::FillRandom(std::as_writable_bytes(std::span(&options.incarnation, 1)));
  options.shape.num_nodes = static_cast<uint16_t>(core.num_nodes());
  options.shape.bytes_per_node = core.options().bytes_per_node;
  options.shape.configuration = core.options().configuration;
  options.secret = core.options().secret;
  options.nodes = core.map().nodes;
  options.listen = core.map().guest;
  options.may_return = core.options().may_return;
  options.payload = core.region(listens_at).Encode();
  options.silence_limit = core.options().silence_limit;
  options.handshake_limit = core.options().connect_limit;
  return options;
}

}  // namespace

StatusOr<std::shared_ptr<NodeParts>> StartNode(const VerbsOptions& options, const ClusterMap& map, NodeId id) {
  StatusOr<std::shared_ptr<NodeCore>> core = NodeCore::Make(options, map, id);
  if (!core.ok()) return core.status();
  auto parts = std::make_shared<NodeParts>();
  parts->core = *std::move(core);
  StatusOr<std::unique_ptr<CallServer>> server = CallServer::Make(parts->core);
  if (!server.ok()) return server.status();
  parts->server = *std::move(server);
  StatusOr<std::unique_ptr<Connector>> connector = Connector::Make(parts->core.get(), parts->server.get());
  if (!connector.ok()) return connector.status();
  parts->connector = *std::move(connector);
  // The agent starts last: it tells others where to connect, and fails if the node's place is taken.
  StatusOr<std::unique_ptr<control::Agent>> agent =
      control::Agent::Start(AgentOptionsOf(*parts->core, parts->connector->listens_at()), parts->connector.get());
  if (!agent.ok()) return agent.status();
  parts->core->agent = *std::move(agent);
  parts->connector->Run();
  return parts;
}

StatusOr<std::unique_ptr<Channel>> VerbsNode::OpenChannel() {
  const int number = parts_->numbers.Take();
  if (number < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("node ", id(), " has given out all of its ", kMaxVerbsChannelsPerNode, " channels"));
  }
  // From here on the number belongs to the channel, even if it cannot be opened.
  return VerbsChannel::Open(parts_, static_cast<uint16_t>(number));
}

Status VerbsNode::Serve(int threads) {
  if (threads < 1 || threads > kMaxServerThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("a node has 1 to ", kMaxServerThreads, " server threads, not ", threads));
  }
  if (parts_->server->started()) return absl::FailedPreconditionError(absl::StrCat("node ", id(), " serves already"));
  parts_->server->Start(threads);
  return absl::OkStatus();
}

void VerbsNode::Shutdown() {
  parts_->core->agent->Stop();  // from here on the others see that the node has left
  parts_->server->RequestStop();
  parts_->connector->CutServing();
  parts_->server->Join();
}

}  // namespace gannet::rdma::verbs
