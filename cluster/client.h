// Client: a process without rows that runs transactions on the servers of a cluster, in a free client slot.
//
//   auto client = cluster::Client::Attach(*config, patience);
//   ... (*client)->database().CreateTable(...) ...          // the same tables, in the same order, as the servers
//   (*client)->Start();                                     // waits until every server has loaded
//   (*client)->database().Run(...);
#pragma once

#include <memory>

#include "base/status.h"
#include "cluster/config/config.h"
#include "txn/database.h"

namespace gannet::cluster {

class BareClient;

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

  // The slot that was taken, from 0 on.
  int slot() const;
  // True if another client is attached.
  bool OtherClients() const;
  // `status`; if it is an error and a server is gone, an error that names that server.
  Status Explain(const Status& status) const;
  const rdma::Fabric& fabric() const;

 private:
  Client();

  std::unique_ptr<BareClient> bare_;
  std::unique_ptr<txn::Database> database_;  // destroyed before the fabric
};

}  // namespace gannet::cluster
