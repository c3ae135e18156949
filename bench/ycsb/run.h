// One run of the YCSB bench, from an empty cluster to its report.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "bench/ycsb/cluster.h"
#include "bench/ycsb/result.h"
#include "ycsb/driver.h"

namespace gannet::bench {

// Called on the thread that runs the bench. All must be set.
struct YcsbProgress {
  std::function<void(const std::string& what)> step;       // a step begins
  std::function<void(uint64_t keys, uint64_t of)> loaded;  // number of keys so far
  ycsb::RunProgress ran;                                   // an interval of the run has ended
};

// `result->options` has the options, after SetDefaults(); this fills in the rest of *result. Cancelled if *stop becomes
// true before there is something to report; later, the run ends early. `stop` may be null.
Status RunYcsb(const YcsbProgress& progress, const std::atomic<bool>* stop, YcsbResult* result);

// These do what RunYcsb does in two steps: the first loads a cluster, which then serves, and the second runs. If
// options.cluster_config is set, other processes have loaded it and serve.
StatusOr<std::unique_ptr<YcsbCluster>> PrepareYcsb(const YcsbProgress& progress, const std::atomic<bool>* stop,
                                                   YcsbResult* result);
Status RunPreparedYcsb(YcsbCluster* cluster, const YcsbProgress& progress, const std::atomic<bool>* stop,
                       YcsbResult* result);

// True if a cluster prepared for one of them serves for the other, too: they differ only in their operations.
bool ShareCluster(const YcsbOptions& a, const YcsbOptions& b);

}  // namespace gannet::bench
