// The end of what a process was storing when it died.
//
// A line's first word is its channel's busy marker from when the channel's note is complete until all of the line but
// that word is stored (line_copy.h). So a dead process's channel was within a store if and only if the line that its
// note names has its marker: no other channel ever stores that. Then the note has what the line becomes. The WRITE is
// brought to its end: what its node died before would have been the same. (Other lines of the same WRITE may not have
// been begun; that is what the versions of their objects are for.)
//
// Both functions are about a node whose process is gone.
#pragma once

#include "rdma/shm/region.h"

namespace gannet::rdma::shm {

bool HasTornLines(const Region& region, NodeId node);

// Under the AttachLock: whoever came second would store into a line that is somebody else's again. May be begun anew if
// this process dies in it, too.
void FinishTornLines(Region* region, NodeId node);

}  // namespace gannet::rdma::shm
