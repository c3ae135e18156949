#include "cluster/client.h"

#include <utility>

#include "cluster/bare_client.h"
#include "cluster/join/database_options.h"

namespace gannet::cluster {

Client::Client() = default;

StatusOr<std::unique_ptr<Client>> Client::Attach(const Config& config, const Patience& patience,
                                                 const txn::DatabaseOptions& options) {
  StatusOr<std::unique_ptr<BareClient>> bare = BareClient::Open(config, patience);
  if (!bare.ok()) return bare.status();
  std::unique_ptr<Client> client(new Client);
  client->bare_ = *std::move(bare);
  const txn::DatabaseOptions own = OptionsInCluster(config, patience, options);
  GANNET_RETURN_IF_ERROR(client->bare_->TakeSlot([&](rdma::NodeId node) {
    auto database = txn::Database::Open(&client->bare_->fabric(), node, own);
    if (!database.ok()) return database.status();
    client->database_ = *std::move(database);
    return absl::OkStatus();
  }));
  return client;
}

Client::~Client() = default;

Status Client::Start() {
  GANNET_RETURN_IF_ERROR(database_->Start(kStartWithin));
  return bare_->WaitUntilReady(database_->node());
}

int Client::slot() const {
  return bare_->slot();
}

bool Client::OtherClients() const {
  return bare_->OtherClients();
}

Status Client::Explain(const Status& status) const {
  return bare_->Explain(status);
}

const rdma::Fabric& Client::fabric() const {
  return bare_->fabric();
}

}  // namespace gannet::cluster
