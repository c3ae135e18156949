#include "cluster/server.h"

#include <utility>

#include "cluster/bare_server.h"
#include "cluster/join/database_options.h"

namespace gannet::cluster {

Server::Server() = default;

StatusOr<std::unique_ptr<Server>> Server::Open(const Config& config, int id, const Patience& patience, CallMeter* meter,
                                               const txn::DatabaseOptions& options) {
  StatusOr<std::unique_ptr<BareServer>> bare = BareServer::Open(config, id, patience, meter);
  if (!bare.ok()) return bare.status();
  std::unique_ptr<Server> server(new Server);
  server->bare_ = *std::move(bare);
  txn::DatabaseOptions own = OptionsInCluster(config, patience, options);
  own.server_threads = config.servers[static_cast<size_t>(id)].server_threads;
  auto database = txn::Database::Open(&server->bare_->fabric(), static_cast<rdma::NodeId>(id), own);
  if (!database.ok()) return database.status();
  server->database_ = *std::move(database);
  server->bare_->AnswerHellos(server->database_->node());
  return server;
}

Server::~Server() {
  bare_->SetLeaving();
}

Status Server::Start() {
  GANNET_RETURN_IF_ERROR(bare_->WaitForServers());
  return database_->Start(kStartWithin);
}

void Server::SetReady() {
  bare_->SetReady();
}

Status Server::ServeUntilStopped() {
  return bare_->ServeUntilStopped();
}

}  // namespace gannet::cluster
