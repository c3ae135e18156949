// One run of the bench of indexes, from an empty cluster to its report.
#pragma once

#include <memory>

#include "base/status.h"
#include "cli/progress.h"
#include "cli/ycsb_cluster.h"
#include "cli/ycsb_result.h"

namespace gannet::cli {

// `result->options` says what, and Complete() was called on them; the rest of *result is filled in. An InterruptGuard
// exists: Cancelled if Ctrl-C comes before there is something to report.
Status RunYcsb(Progress* progress, YcsbResult* result);

// The same in two steps: a cluster that was loaded and serves, and the run.
StatusOr<std::unique_ptr<YcsbCluster>> PrepareYcsb(Progress* progress, YcsbResult* result);
Status RunPreparedYcsb(YcsbCluster* cluster, Progress* progress, YcsbResult* result);

// Whether a cluster prepared for one of them is as good for the other: they differ in what is run only.
bool ShareCluster(const YcsbOptions& a, const YcsbOptions& b);

}  // namespace gannet::cli
