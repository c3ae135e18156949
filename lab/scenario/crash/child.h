// The process that a crash test kills: it opens the database, reports what it recovered, and works until it dies.
#pragma once

#include <string>

#include "lab/scenario/crash/options.h"

namespace gannet::scenario::crash {

struct ChildOptions {
  CrashOptions test;
  uint64_t cycle = 0;
  std::string kill_point;  // empty: none
  uint64_t kill_count = 1;
  bool armed_from_start = false;
  absl::Duration checkpoint_every;
  absl::Duration group_commit = absl::Microseconds(500);
  bool create = false;  // the database, if it is not there: only until a child has started in the directory
  bool finish = false;  // report, prepare, close and end
};

// Sends its messages to standard output. Returns when the child has finished. Ends the process with EXIT_FAILURE and a
// message on standard error if the child fails.
void RunChild(const ChildOptions& options);

}  // namespace gannet::scenario::crash
