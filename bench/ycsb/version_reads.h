// A fabric whose clients READ a leaf as those of Sherman do in DEX's evaluation (VLDB'24, table 2): its version, the
// leaf, and its version again. Our clients need neither, because lines have versions: so this is for the comparison
// only. The three go out in one posting, in order; the second version is not judged, since the lines say whether the
// leaf is whole.
#pragma once

#include <memory>

#include "rdma/relay.h"

namespace gannet::bench {

// `inner` must outlive it.
std::unique_ptr<rdma::Fabric> WithVersionReads(rdma::Fabric* inner);

}  // namespace gannet::bench
