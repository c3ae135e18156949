// Client: a process without rows that runs transactions on the servers of a cluster, in a free client slot.
//
//   auto client = cluster::Client::Attach(*config, patience);
//   ... (*client)->database().CreateTable(...) ...          // the same tables, in the same order, as the servers
//   (*client)->Start();                                     // waits until every server has loaded
//   (*client)->database().Run(...);
#pragma once

#include <memory>

#include "base/status.h"
#include "cluster/bare_client.h"
#include "cluster/config/config.h"
#include "cluster/config/patience.h"
#include "txn/database.h"

namespace gannet::cluster {

// Thread-safety: as BareClient; the database has its own.
class Client {
 public:
  // Waits for the servers, and takes a slot. Errors: those of BareClient::Open and BareClient::TakeSlot. The cluster
  // file decides data_nodes and stop of `options`, and call_timeout is at least what the fabric needs.
  static StatusOr<std::unique_ptr<Client>> Attach(const Config& config, const Patience& patience,
                                                  const txn::DatabaseOptions& options = {});
  // Leaves the cluster; its slot is free then. No session may be open.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  txn::Database& database() { return *database_; }

  // Called after all tables have been created. Starts the database, and waits until every server has loaded. Errors:
  // those of BareClient::WaitUntilReady and txn::Database::Start.
  Status Start();

  int slot() const { return bare_->slot(); }
  // True if another client is attached.
  bool OtherClients() const { return bare_->OtherClients(); }
  // `status`; if it is an error and a server is gone, an error that names that server.
  Status Explain(const Status& status) const { return bare_->Explain(status); }
  const rdma::Fabric& fabric() const { return bare_->fabric(); }

 private:
  Client() = default;

  std::unique_ptr<BareClient> bare_;
  std::unique_ptr<txn::Database> database_;  // destroyed before the fabric
};

}  // namespace gannet::cluster
