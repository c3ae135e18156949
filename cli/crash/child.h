// The process that a crash test kills: opens the database, tells what it recovered, works until it dies.
#pragma once

#include <string>

#include "cli/crash/options.h"

namespace gannet::cli::crash {

struct ChildOptions {
  CrashOptions test;
  uint64_t cycle = 0;
  std::string kill_point;  // empty: none
  uint64_t kill_count = 1;
  bool armed_from_start = false;
  absl::Duration checkpoint_every;
  absl::Duration group_commit = absl::Microseconds(500);
  bool create = false;  // the database, if it is not there: only until a child has started in the directory
  bool finish = false;  // tell, prepare, close and end
};

// Sends its messages to standard output. Returns the exit code if it fails or has finished, else not at all.
int RunChild(const ChildOptions& options);

}  // namespace gannet::cli::crash
