#include "cluster/bare_server.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cluster/join/hello.h"
#include "cluster/join/open_fabric.h"
#include "cluster/join/wait.h"

namespace gannet::cluster {
namespace {

constexpr uint64_t kLookNanos = 20'000'000;  // interval at which it checks which processes are there

}  // namespace

BareServer::BareServer(const Config& config, int id, const Patience& patience)
    : config_(config), id_(id), patience_(patience), hellos_(std::make_unique<HelloService>(config.Hash())) {}

BareServer::~BareServer() = default;

StatusOr<std::unique_ptr<BareServer>> BareServer::Open(const Config& config, int id, const Patience& patience,
                                                       CallMeter* meter) {
  if (id < 0 || id >= config.num_servers()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no server ", id, " in ", config.file));
  }
  std::unique_ptr<BareServer> server(new BareServer(config, id, patience));
  StatusOr<std::unique_ptr<rdma::Fabric>> fabric = OpenFabric(config, id);
  if (!fabric.ok()) return fabric.status();
  server->verbs_ = AsVerbs(**fabric);
  server->fabric_ = meter == nullptr ? *std::move(fabric) : Metered(*std::move(fabric), meter);
  return server;
}

void BareServer::AnswerHellos(rdma::Node& node) {
  hellos_->Register(node);
}

Status BareServer::WaitForServers() {
  return WaitUntilAttached(*fabric_, verbs_, config_, patience_);
}

void BareServer::SetReady() {
  hellos_->Set(ServerState::kReady);
}

void BareServer::SetLeaving() {
  hellos_->Set(ServerState::kLeaving);
}

Status BareServer::ServeUntilStopped() {
  const int nodes = fabric_->num_nodes();
  std::vector<char> there(static_cast<size_t>(nodes));
  for (int node = 0; node < config_.num_servers(); ++node) there[static_cast<size_t>(node)] = 1;
  RefusalNotes notes;
  while (!patience_.stopped()) {
    if (verbs_ != nullptr) notes.Look(*verbs_, patience_);
    for (int node = 0; node < nodes; ++node) {
      const char now = fabric_->Alive(static_cast<rdma::NodeId>(node)) ? 1 : 0;
      if (now == std::exchange(there[static_cast<size_t>(node)], now)) continue;
      if (node == id_) return absl::UnavailableError("the other processes hold this one for dead; its data is lost");
      patience_.Note(absl::StrCat(config_.NameOfNode(node), now != 0 ? " has come" : " has gone"));
    }
    SleepForNanos(kLookNanos);
  }
  return absl::OkStatus();
}

}  // namespace gannet::cluster
