// Progress of a long command, on stderr. The intervals of a benchmark's run get a line each, whatever stderr is. Of
// everything else a terminal gets every line, and counts that are rewritten in place; any other output (a file, a pipe,
// the log of a build) gets whole lines, at most one every ten seconds, and none from a short command.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "bench/ycsb/run.h"
#include "cli/live_lines.h"
#include "tpcc/loader.h"
#include "tpcc/report.h"
#include "ycsb/report.h"

namespace gannet::cli {

// Thread-safe.
class Progress {
 public:
  // Finds out whether stderr is a terminal.
  Progress();

  // A step begins: "checking the twelve conditions".
  void Step(const std::string& what);
  // A count, such as "3 of 20 seeds", which takes the place of the one before.
  void Count(const std::string& what);
  // Ends the line of counts, so that another line can be printed.
  void EndCount();
  // One line that is overwritten until the last warehouse.
  void Loaded(const tpcc::LoadProgress& progress);
  // One line per interval (live_lines.h).
  void Ran(const tpcc::IntervalReport& interval);
  // The same for the bench of indexes: keys, operations.
  void Loaded(uint64_t keys, uint64_t of);
  void Ran(const ycsb::IntervalReport& interval);

 private:
  // The caller holds mutex_.
  void Say(const std::string& line);
  void Print(const std::string& lines);

  const bool terminal_;
  std::mutex mutex_;       // guards the members below
  bool counting_ = false;  // the terminal's cursor is behind a count
  uint64_t next_nanos_;    // when an output other than a terminal gets the next line
  LiveLines tpcc_lines_;
  LiveLines ycsb_lines_;
};

// Shows a run of the YCSB bench. `progress` must outlive it.
bench::YcsbProgress YcsbProgressOf(Progress* progress);

}  // namespace gannet::cli
