// BareClient: a client's place in a cluster, for a program that brings a node of its own. Programs with tables and
// transactions use client.h.
//
//   auto client = cluster::BareClient::Open(config, patience);
//   std::unique_ptr<rdma::Node> node;
//   (*client)->TakeSlot([&](rdma::NodeId id) { ... node = fabric().Attach(id) ... });
//   (*client)->WaitUntilReady(*node);
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "cluster/config/config.h"
#include "rdma/fabric.h"
#include "rdma/verbs/verbs_fabric.h"

namespace gannet::cluster {

// Methods may be called by any one thread at a time; const methods by any thread.
class BareClient {
 public:
  // Opens the fabric. FailedPrecondition: this process does not fit the servers; the message says why.
  static StatusOr<std::unique_ptr<BareClient>> Open(const Config& config, const Patience& patience);
  // The node must be destroyed before.
  ~BareClient();
  BareClient(const BareClient&) = delete;
  BareClient& operator=(const BareClient&) = delete;

  // Waits until all servers are attached, and takes a client slot. Calls `attach` with the node of one slot after the
  // other until it returns anything but FailedPrecondition, which rdma::Fabric::Attach returns for a node whose place
  // is taken. ResourceExhausted if every slot is taken; DeadlineExceeded names the missing servers; Cancelled if
  // Patience::stop was set.
  Status TakeSlot(const std::function<Status(rdma::NodeId)>& attach);
  // Waits until every server has loaded and agrees with this process, by calls on a channel of `node`.
  // FailedPrecondition says which server refuses, and why.
  Status WaitUntilReady(rdma::Node& node);

  // The slot that was taken, from 0 on.
  int slot() const { return slot_; }
  const Config& config() const { return config_; }
  rdma::Fabric& fabric() { return *fabric_; }
  const rdma::Fabric& fabric() const { return *fabric_; }

  // True if another client is attached.
  bool OtherClients() const;
  // `status`; if it is an error and a server is gone, an error that names that server.
  Status Explain(const Status& status) const;

 private:
  BareClient(const Config& config, const Patience& patience) : config_(config), patience_(patience) {}

  const Config config_;
  const Patience patience_;
  std::unique_ptr<rdma::Fabric> fabric_;
  const rdma::VerbsFabric* verbs_ = nullptr;  // fabric_, if it is one of verbs
  int slot_ = -1;
};

}  // namespace gannet::cluster
