// TPC-C on a simulated rack of data servers and client machines, as in XStore (OSDI'20, section 7.10).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "tpcc/schema/schema.h"
#include "txn/store/options.h"

namespace gannet::experiments {

// A step of load: more client machines that run the same mix during a part of the measurement. What they do is not part
// of the report, except as load of the servers.
struct TpccLoadStep {
  int machines = 1;
  int threads = 24;    // of each
  int coroutines = 1;  // of each thread
  txn::ReadPathPolicy reads = txn::ReadPathPolicy::kCall;
  absl::Duration begin;  // after the begin of the measurement
  absl::Duration length;
};

struct TpccRackOptions {
  int data_nodes = 4;
  int server_threads = 24;  // of each, with a core for each
  int machines = 12;        // of clients
  int threads = 24;         // of each
  int coroutines = 1;       // of each thread
  uint32_t warehouses = 24;
  tpcc::Scale scale;
  std::array<int, 5> mix = {10, 0, 90, 0, 0};
  txn::ReadPathPolicy reads = txn::ReadPathPolicy::kOneSided;
  std::string nic;
  bool spread = true;  // of round trips (rdma/sim/spread.h)
  absl::Duration warmup;
  absl::Duration duration;
  absl::Duration interval;  // the report has a timeline of such pieces; 0: none
  std::optional<TpccLoadStep> step;
  uint64_t seed = 1;
};

// Returns the report as JSON. The calling thread is the simulation's observer during the run.
StatusOr<std::string> RunTpccRack(const TpccRackOptions& options);

}  // namespace gannet::experiments
