// The nodes of a cluster with a log begin their runs together, or none does.
//
// A node may need files that no other node needs: from another node's log it reads what its own checkpoint does not
// have. So each node first reads and verifies everything that it needs (recovery.h), and tells the others the outcome
// (EpochWords::Stage). When all have accepted, each begins its run: only then does any node write to its directory.
// When one refuses, all refuse with its reason, and no directory has changed.
//
//   Start: kReads --recovered--> kAccepts --all accept--> writes its manifest, begins its log --> kLogs
//             |                     '--one refuses, or does not come--.
//             '--damage, ...-------------------------------------------'--> kRefuses, with the reason
//
// A node that refuses stays until the others have read its reason, or for a few seconds. A node that accepted may
// refuse later, because others did not come, or because it could not begin its run. Another node may have begun by
// then: it learns the reason by EpochWords::Exchange, its commits are refused with it, and it closes without delay.
#pragma once

#include <atomic>

#include "absl/time/time.h"
#include "base/status.h"
#include "log/format/identity.h"
#include "rdma/fabric.h"
#include "txn/durable/epoch_words.h"

namespace gannet::txn {

// Tells the other nodes that this one accepts (`own` is Ok) or why it refuses, and returns the common outcome: Ok,
// `own`, or the reason of a node that refuses, with its code and its number. DeadlineExceeded: a node was not there, or
// did not call Start, for `wait_for_others`; this waits for a live node as long as it recovers. This node's stage is
// kReads before, and kAccepts or kRefuses after. A single node gets `own`. Once *stop (may be null) is true, this node
// refuses with Cancelled. *run gets the identity of the run that begins, the same on all nodes.
Status StartTogether(rdma::Fabric& fabric, rdma::Node& node, EpochWords& words, const Status& own,
                     absl::Duration wait_for_others, const std::atomic<bool>* stop, log::Identity* run);

}  // namespace gannet::txn
