// Progress of a long command, on stderr. A terminal gets every line, and counts that are rewritten in place. Anything
// else (a file, a pipe, the log of a build) gets whole lines, at most one every ten seconds: a short command says
// nothing there.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "bench/ycsb/run.h"
#include "tpcc/loader.h"
#include "tpcc/report.h"
#include "ycsb/report.h"

namespace gannet::cli {

// Thread-safe.
class Progress {
 public:
  // Looks at stderr.
  Progress();

  // A step begins: "checking the twelve conditions".
  void Step(const std::string& what);
  // A count, such as "3 of 20 seeds", which takes the place of the one before.
  void Count(const std::string& what);
  // Ends the line of counts, so that something else can be said.
  void EndCount();
  // One line that is overwritten until the last warehouse.
  void Loaded(const tpcc::LoadProgress& progress);
  // One line per interval.
  void Ran(const tpcc::IntervalReport& interval);
  // The same for the bench of indexes: keys, operations.
  void Loaded(uint64_t keys, uint64_t of);
  void Ran(const ycsb::IntervalReport& interval);

 private:
  void Say(const std::string& line);  // with mutex_ held

  const bool terminal_;
  std::mutex mutex_;       // guards what follows
  bool counting_ = false;  // the terminal's cursor is behind a count
  uint64_t next_nanos_;    // when anything but a terminal gets the next line
};

// Shows a run of the YCSB bench. `progress` must outlive it.
bench::YcsbProgress YcsbProgressOf(Progress* progress);

}  // namespace gannet::cli
