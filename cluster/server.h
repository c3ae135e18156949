// Server: one server of a cluster, with a database. It lends memory, owns its part of the rows, and answers the others.
//
//   auto config = cluster::ReadConfig("cluster.toml", sections);       // config.h
//   auto server = cluster::Server::Open(*config, id, patience);
//   ... (*server)->database().CreateTable(...) ...                     // the same tables in every process
//   (*server)->Start();                                                // waits for the other servers
//   ... load the rows that this server owns ...
//   (*server)->SetReady();                                             // clients are let in
//   (*server)->ServeUntilStopped();
//
// examples/cluster_bank.cc is a whole program.
#pragma once

#include <memory>

#include "base/status.h"
#include "cluster/call_meter.h"
#include "cluster/config/config.h"
#include "txn/database.h"

namespace gannet::cluster {

class BareServer;

// Thread-safety: as BareServer; the database has its own.
class Server {
 public:
  // Takes the place of server `id`. Errors: those of BareServer::Open and txn::Database::Open. The cluster file decides
  // data_nodes, server_threads and stop of `options`, and call_timeout is at least what the fabric needs. `meter` may
  // be null and must outlive this.
  static StatusOr<std::unique_ptr<Server>> Open(const Config& config, int id, const Patience& patience,
                                                CallMeter* meter = nullptr, const txn::DatabaseOptions& options = {});
  // Answers the calls that wait, then leaves the cluster. No session may be open.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  txn::Database& database() { return *database_; }

  // Called after all tables have been created. Waits for the other servers, and starts the database. Errors: those of
  // BareServer::WaitForServers and txn::Database::Start.
  Status Start();
  // Called after the rows have been loaded. Clients are let in from now on.
  void SetReady();
  // Returns when Patience::stop is set. Unavailable if the other processes hold this node for dead.
  Status ServeUntilStopped();

  // The server without its database (cluster/bare_server.h, in the source tree only).
  const BareServer& bare() const { return *bare_; }

 private:
  Server();

  std::unique_ptr<BareServer> bare_;
  std::unique_ptr<txn::Database> database_;  // destroyed before the fabric
};

}  // namespace gannet::cluster
