// What the logs of several nodes tell each other (log.h says why).
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gannet::log {

struct NodeEpochs {
  uint64_t current = 0;  // commits that begin now are of this epoch or a later one
  uint64_t drained = 0;  // no worker of the node commits in this epoch or an earlier one any more
  uint64_t flushed = 0;  // the node's log is durable up to and with it
};

// The other nodes' epochs.
class PeerEpochs {
 public:
  virtual ~PeerEpochs() = default;
  // This node's log has begun its run: until then it is as if it were not there, and no node closes an epoch. (Nothing
  // may rely on the recovered epoch before all logs say which one it was.) Once, before the first Exchange.
  virtual void Ready() {}
  // The log calls this before its current epoch becomes `current`: whoever reads something that a commit of this epoch
  // wrote must find an epoch not less, wherever it looks. From any thread.
  virtual void Announce(uint64_t current) = 0;
  // The log calls this before anybody can install a change that was appended to it in `epoch`, or learns that it need
  // not call because this has been done: whoever, on another node, reads what such a change wrote, and asks this node
  // after that, must find an epoch not less. From any thread, once per epoch or a little more often.
  virtual void AnnounceDirty(uint64_t epoch) = 0;
  // Publishes this node's and returns, over all nodes: the greatest current, the least drained, the least flushed.
  // Unavailable if a node has died: nothing becomes durable any more. From the log thread only.
  virtual StatusOr<NodeEpochs> Exchange(const NodeEpochs& own) = 0;
};

}  // namespace gannet::log
