// Completes the stores of a process that died during them.
//
// While a channel stores a line, the line's first word is the channel's busy marker: from the moment at which the
// channel's note is complete until the rest of the line is stored (line_copy.h). No other channel ever stores that
// marker. So a dead process's channel was in the middle of a store if and only if the line that its note names has its
// marker. Then the note has the line's new content, and the store is completed, as if the node had died after it.
// (Other lines of the same WRITE may not have been begun; the versions of their objects show this.)
//
// Both functions take a node whose process has ended.
#pragma once

#include "rdma/shm/region.h"

namespace gannet::rdma::shm {

bool HasTornLines(const Region& region, NodeId node);

// Call it under the AttachLock: a second caller could store into a line that another channel uses again. If this
// process dies during it, another may repeat it.
void FinishTornLines(Region* region, NodeId node);

}  // namespace gannet::rdma::shm
