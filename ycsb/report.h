// What a run measured. Times are the fabric's: real on shm, virtual in a simulation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "index/index.h"
#include "rdma/counters.h"
#include "ycsb/workload.h"

namespace gannet::ycsb {

struct KindReport {
  uint64_t operations = 0;  // measured
  uint64_t finished = 0;    // also those of the warm-up, and after the end
  uint64_t records = 0;     // that scans returned
  double mean_us = 0;
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  double max_us = 0;
  // Summed over `verb_samples` of the operations, which nothing of the same channel ran beside.
  rdma::VerbCounters verbs;
  uint64_t verb_samples = 0;
};

struct IntervalReport {
  bool warming_up = false;
  double at_seconds = 0;  // since the warm-up began
  double seconds = 0;     // length of this interval
  uint64_t operations = 0;
};

struct RunReport {
  double seconds = 0;
  int threads = 0;     // of all machines
  int coroutines = 0;  // of each thread
  uint64_t operations = 0;
  double operations_per_second = 0;
  std::array<KindReport, kKinds> kinds;
  KindReport all;  // verbs: of everything that happened in `seconds`, also of unfinished operations
  // Of all index clients in `seconds`; cache_bytes: of the whole, at the end.
  index::ClientStatistics lookups;
  std::vector<IntervalReport> timeline;  // of what was measured

  const KindReport& of(Kind kind) const { return kinds[static_cast<size_t>(kind)]; }
};

}  // namespace gannet::ycsb
