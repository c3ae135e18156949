// One run of the bench of indexes, from an empty cluster to its report.
#pragma once

#include "cli/progress.h"
#include "cli/ycsb_result.h"
#include "rdma/base/status.h"

namespace gannet::cli {

// `result->options` says what, and Complete() was called on them; the rest of *result is filled in.
Status RunYcsb(Progress* progress, YcsbResult* result);

}  // namespace gannet::cli
