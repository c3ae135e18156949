// BareServer: a server's place in a cluster, for a program that brings a node of its own. Programs with tables and
// transactions use server.h.
//
//   auto server = cluster::BareServer::Open(config, id, patience);
//   auto node = (*server)->fabric().Attach(id);      // register methods, but do not Serve yet
//   (*server)->AnswerHellos(**node);
//   (*server)->WaitForServers();
//   (*node)->Serve(threads); ... load ...
//   (*server)->SetReady();
//   (*server)->ServeUntilStopped();
//   (*server)->SetLeaving(); node->reset();
#pragma once

#include <memory>

#include "base/status.h"
#include "cluster/call_meter.h"
#include "cluster/config/config.h"
#include "rdma/fabric.h"
#include "rdma/verbs/verbs_fabric.h"

namespace gannet::cluster {

class HelloService;

// Methods may be called by any one thread at a time; const methods by any thread.
class BareServer {
 public:
  // Opens the fabric for the server `id` of the file. FailedPrecondition if the server runs already, was in this
  // cluster before, or does not fit to the other processes; ResourceExhausted if the memory file has no room. `meter`
  // counts the calls that the node answers; it may be null and must outlive this.
  static StatusOr<std::unique_ptr<BareServer>> Open(const Config& config, int id, const Patience& patience,
                                                    CallMeter* meter = nullptr);
  // The node must be destroyed before.
  ~BareServer();
  BareServer(const BareServer&) = delete;
  BareServer& operator=(const BareServer&) = delete;

  // Has `node` answer the first call of each client: whether the cluster files agree, and whether this server is ready.
  // Call it before the node serves.
  void AnswerHellos(rdma::Node& node);
  // Waits until all servers are attached. DeadlineExceeded names the missing ones; Cancelled if Patience::stop was set;
  // FailedPrecondition says why the others refuse this process.
  Status WaitForServers();
  // Admits clients from now on.
  void SetReady();
  // Refuses new clients from now on. Call it before the node is destroyed.
  void SetLeaving();
  // Returns when Patience::stop is set. Unavailable if the other processes hold this node for dead. Notes which
  // processes come and go.
  Status ServeUntilStopped();

  const Config& config() const { return config_; }
  int id() const { return id_; }
  rdma::Fabric& fabric() { return *fabric_; }
  const rdma::Fabric& fabric() const { return *fabric_; }
  // Null over shm.
  const rdma::VerbsFabric* verbs() const { return verbs_; }

 private:
  BareServer(const Config& config, int id, const Patience& patience);

  const Config config_;
  const int id_;
  const Patience patience_;
  std::unique_ptr<HelloService> hellos_;
  std::unique_ptr<rdma::Fabric> fabric_;
  const rdma::VerbsFabric* verbs_ = nullptr;  // beneath fabric_
};

}  // namespace gannet::cluster
