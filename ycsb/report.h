// The results of a run. Times are the fabric's: real on shm, virtual in a simulation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/harness/report.h"
#include "index/index.h"
#include "txn/store/statistics.h"
#include "ycsb/workload.h"

namespace gannet::ycsb {

struct KindReport : bench::OperationReport {
  uint64_t operations = 0;  // measured
  uint64_t finished = 0;    // also in the warm-up and after the end
  uint64_t records = 0;     // returned by scans
};

struct IntervalReport : bench::Interval {
  uint64_t operations = 0;
};

// How a part of the keys has moved (moving_part.h).
struct MoveReport {
  int slices = 0;
  double seconds = 0;                // from the first step to the last
  double longest_slice_seconds = 0;  // so long nobody used the keys of a slice
};

struct RunReport {
  double seconds = 0;
  int threads = 0;     // on all machines
  int coroutines = 0;  // per thread
  uint64_t operations = 0;
  double operations_per_second = 0;
  std::array<KindReport, kKinds> kinds;
  KindReport all;  // verbs: all in `seconds`, also those of unfinished operations
  // All index clients, in `seconds`; cache_bytes: the total at the end.
  index::ClientStatistics lookups;
  // How reads and scans reached the records, in `seconds`.
  std::vector<txn::TablePaths> paths;
  std::vector<IntervalReport> timeline;  // of the measured window
  std::optional<MoveReport> move;        // with RunOptions::move_after

  const KindReport& of(Kind kind) const { return kinds[static_cast<size_t>(kind)]; }
};

}  // namespace gannet::ycsb
