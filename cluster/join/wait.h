// Waiting for the servers of a cluster, so that processes may be started in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/coro/worker.h"
#include "base/status.h"
#include "cluster/config/config.h"
#include "rdma/fabric.h"
#include "rdma/verbs/verbs_fabric.h"

namespace gannet::cluster {

// The servers whose processes are not there: "server 1 (beta), server 2 (gamma)". Empty if all are.
std::string MissingServers(const rdma::Fabric& fabric, const Config& config);

// Notes connections that were refused, with the reason of the last one, at most once a second.
class RefusalNotes {
 public:
  void Look(const rdma::VerbsFabric& fabric, const Patience& patience);

 private:
  uint64_t told_ = 0;
  uint64_t next_ns_ = 0;
};

// Waits until every server is attached. DeadlineExceeded names the missing ones; Cancelled if Patience::stop was set.
// `verbs` is the fabric itself if it is one of verbs, otherwise null; FailedPrecondition then says why the others
// refuse this process.
Status WaitUntilAttached(const rdma::Fabric& fabric, const rdma::VerbsFabric* verbs, const Config& config,
                         const Patience& patience);

// Calls `attempt` until it returns anything but Unavailable. `who` names the process that it waits for.
Status WaitUntilAvailable(const std::string& who, const std::function<Status()>& attempt, const Patience& patience);

// Waits until every server is ready and agrees with this process, by calls on `channel`, which `worker` polls.
// FailedPrecondition says which server refuses, and why; Unavailable names a server that leaves or has died.
Status WaitUntilReady(rdma::Channel& channel, coro::Worker& worker, const Config& config, const Patience& patience);

}  // namespace gannet::cluster
