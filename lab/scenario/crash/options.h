// The options of a crash test, and the plan of each cycle.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "txn/database.h"
#include "txn/store/table.h"

namespace gannet::scenario::crash {

enum class WorkloadKind { kKv, kBank, kTpcc, kAppend, kLoad, kRectangles };
inline constexpr std::string_view kWorkloadNames[] = {"kv", "bank", "tpcc", "append", "load", "rectangles"};

inline std::string NameOf(WorkloadKind workload) {
  return std::string(kWorkloadNames[static_cast<size_t>(workload)]);
}

// Keys in [from, to).
struct KeyRange {
  uint64_t from = 0;
  uint64_t to = 0;

  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// Options of the crash test and, except for the cycles, of each of its children.
struct CrashOptions {
  uint64_t cycles = 20;
  uint64_t seed = 1;
  WorkloadKind workload = WorkloadKind::kKv;
  txn::DurabilityMode mode = txn::DurabilityMode::kSync;
  txn::LogMedium medium = txn::LogMedium::kFile;
  txn::IndexKind ordered_index = txn::IndexKind::kXStore;  // of ordered tables
  std::string kill_point = "random";                       // or "none", or a name
  std::string directory;                                   // empty: a temporary one
  int nodes = 1;
  int threads = 2;                                      // of a child
  int coroutines = 8;                                   // per thread: operations at the same time
  absl::Duration cycle_time = absl::Milliseconds(150);  // longest time of a cycle that is killed by the clock

  std::string elle_file;  // append: file for the history, as EDN
  // append, for a child: the lists that it reports. The child before may have changed them; this one continues the last
  // of them, or begins after them.
  KeyRange lists;

  int workers() const { return threads * coroutines; }
};

// Everything that is drawn for one cycle.
struct CyclePlan {
  uint64_t cycle = 0;
  std::string kill_point;         // empty: by the clock
  uint64_t kill_count = 1;        // at this passage
  bool armed_from_start = false;  // else when operations begin
  bool kill_in_recovery = false;  // the clock starts with the process, not with the operations
  absl::Duration kill_after;      // by the clock
  absl::Duration checkpoint_every;
  absl::Duration group_commit;
};

// A pure function of the options and the cycle. With kill_point "random", any 32 cycles from a multiple of 32 on have
// every kill point, some kills by the clock and some in recovery.
CyclePlan PlanCycle(const CrashOptions& options, uint64_t cycle);
// "killed at batch-written, passage 3".
std::string Describe(const CyclePlan& plan);

}  // namespace gannet::scenario::crash
