#include "cluster/bare_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/coro/worker.h"
#include "cluster/join/open_fabric.h"
#include "cluster/join/wait.h"

namespace gannet::cluster {
namespace {

rdma::NodeId NodeOfSlot(const Config& config, int slot) {
  return static_cast<rdma::NodeId>(config.num_servers() + slot);
}

}  // namespace

StatusOr<std::unique_ptr<BareClient>> BareClient::Open(const Config& config, const Patience& patience) {
  std::unique_ptr<BareClient> client(new BareClient(config, patience));
  StatusOr<std::unique_ptr<rdma::Fabric>> fabric = OpenFabric(config, std::nullopt);
  if (!fabric.ok()) return fabric.status();
  client->fabric_ = *std::move(fabric);
  client->verbs_ = AsVerbs(*client->fabric_);
  return client;
}

BareClient::~BareClient() = default;

Status BareClient::TakeSlot(const std::function<Status(rdma::NodeId)>& attach) {
  // Over verbs a process sees no other one before it has a place. On shm it sees the servers without a place.
  if (verbs_ == nullptr) GANNET_RETURN_IF_ERROR(WaitUntilAttached(*fabric_, nullptr, config_, patience_));
  // Unavailable: over verbs, if server 0 is not there to be asked.
  const auto take = [&]() -> Status {
    for (int slot = 0; slot < config_.client_slots; ++slot) {
      Status attached = attach(NodeOfSlot(config_, slot));
      if (absl::IsFailedPrecondition(attached)) continue;  // taken
      if (attached.ok()) slot_ = slot;
      return attached;
    }
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", config_.client_slots, " client slots of ", config_.file,
                     " are taken; end a client, or give the cluster more client_slots"));
  };
  GANNET_RETURN_IF_ERROR(WaitUntilAvailable(config_.NameOfNode(0), take, patience_));
  if (verbs_ == nullptr) return absl::OkStatus();
  return WaitUntilAttached(*fabric_, verbs_, config_, patience_);
}

Status BareClient::WaitUntilReady(rdma::Node& node) {
  StatusOr<std::unique_ptr<rdma::Channel>> channel = node.OpenChannel();
  if (!channel.ok()) return channel.status();
  coro::Worker worker;
  worker.AddPoller([&channel] { return (*channel)->Poll(); });
  return cluster::WaitUntilReady(**channel, worker, config_, patience_);
}

bool BareClient::OtherClients() const {
  for (int other = 0; other < config_.client_slots; ++other) {
    if (other == slot_) continue;
    const rdma::NodeId node = NodeOfSlot(config_, other);
    if (fabric_->Alive(node) || (verbs_ != nullptr && verbs_->KnowsOfGuest(node))) return true;
  }
  return false;
}

Status BareClient::Explain(const Status& status) const {
  if (status.ok()) return status;
  const std::string missing = MissingServers(*fabric_, config_);
  if (missing.empty()) return status;
  return absl::UnavailableError(absl::StrCat(missing, " of ", config_.file,
                                             " is gone, and its data with it: ", absl::string_view(status.message())));
}

}  // namespace gannet::cluster
