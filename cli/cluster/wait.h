// Waiting for the servers of a cluster, so that it does not matter who is started first.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "cli/cluster/config.h"
#include "rdma/fabric.h"
#include "rdma/verbs/verbs_fabric.h"
#include "txn/session.h"

namespace gannet::cli {

struct Patience {
  absl::Duration at_most;
  const std::atomic<bool>* stop;                 // the user asked to end
  std::function<void(const std::string&)> note;  // told when what is waited for changes
};

// Those whose processes are not there: "server 1 (beta), server 2 (gamma)". Empty if all are.
std::string MissingServers(const rdma::Fabric& fabric, const ClusterConfig& config);

// What other processes that were turned away had against this one, or it against them: told at most once a second.
class RefusalNotes {
 public:
  void Look(const rdma::VerbsFabric& fabric, const Patience& patience);

 private:
  uint64_t told_ = 0;
  uint64_t next_ns_ = 0;
};

// DeadlineExceeded names who is missing; Cancelled if it was told to stop. With `verbs`, which may be null: the fabric
// beneath; FailedPrecondition if the others refuse this process, and why.
Status WaitUntilAttached(const rdma::Fabric& fabric, const rdma::VerbsFabric* verbs, const ClusterConfig& config,
                         const Patience& patience);

// Until `attempt` gives anything but Unavailable; `who` is waited for meanwhile.
Status WaitUntilAvailable(const std::string& who, const std::function<Status()>& attempt, const Patience& patience);

// All servers have their data, and agree with this process.
Status WaitUntilReady(txn::Session& session, const ClusterConfig& config, const Patience& patience);

}  // namespace gannet::cli
