// Epochs that the logs of several nodes exchange (log.h says why).
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gannet::log {

struct NodeEpochs {
  uint64_t current = 0;  // commits that begin now are of this epoch or a later one
  uint64_t drained = 0;  // no worker of the node still commits in this or an earlier epoch
  uint64_t flushed = 0;  // the node's log is durable up to and with it
};

// The other nodes' epochs.
class PeerEpochs {
 public:
  virtual ~PeerEpochs() = default;
  // Called once, before the first Exchange, when this node's log has begun its run. Until all nodes have done this, no
  // node closes an epoch: nothing may rely on the recovered epoch before all logs record it.
  virtual void Ready() {}
  // The log calls this before its current epoch becomes `current`. After that, a transaction on any node that reads a
  // write of a commit of this epoch must find an epoch of at least `current` at every node that it asks. Called from
  // any thread.
  virtual void Announce(uint64_t current) = 0;
  // The log calls this before a change that was appended to it in `epoch` can be installed, unless an earlier call has
  // covered the epoch. A transaction on another node that reads such a change and then asks for this node's epoch must
  // find at least `epoch`. Called from any thread, once per epoch or slightly more often.
  virtual void AnnounceDirty(uint64_t epoch) = 0;
  // Publishes this node's epochs and returns, over all nodes: the greatest current, the least drained, the least
  // flushed. Unavailable: nothing becomes durable now. Called from the log thread only.
  virtual StatusOr<NodeEpochs> Exchange(const NodeEpochs& own) = 0;
  // Asked after an error of Exchange. True: all nodes live, and a message was lost, so the next Exchange may succeed.
  // False: nothing becomes durable any more, for example because a node has died. Called from the log thread only.
  virtual bool ErrorMayPass() const { return false; }
};

}  // namespace gannet::log
