// Progress of a long command, on stderr. The intervals of a benchmark's run get a line each, whatever stderr is. Of
// everything else a terminal gets every line, and counts that are rewritten in place; any other output (a file, a pipe,
// the log of a build) gets whole lines, at most one every second, and none from a command that is over before. There a
// step that says nothing gets a line with its time every second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "bench/ycsb/run.h"
#include "cli/common/live_lines.h"
#include "tpcc/loader.h"
#include "tpcc/report.h"
#include "ycsb/report.h"

namespace gannet::cli {

// Thread-safe.
class Progress {
 public:
  // Finds out whether stderr is a terminal.
  Progress();
  // Begins with a first step.
  explicit Progress(const std::string& what) : Progress() { Step(what); }
  // Ends the step.
  ~Progress();

  // A step begins: "checking the twelve conditions".
  void Step(const std::string& what);
  // Begins a step that is mostly short: a terminal, too, gets its line only if it takes longer than a second.
  void Begin(const std::string& what);
  // A count, such as "3 of 20 seeds", which takes the place of the one before.
  void Count(const std::string& what);
  // Ends the line of counts, so that another line can be printed.
  void EndCount();
  // One line that is overwritten until the last warehouse.
  void Loaded(const tpcc::LoadProgress& progress);
  // One line per interval (live_lines.h).
  void Ran(const tpcc::IntervalReport& interval);
  // Loaded and Ran for the bench of indexes, which has keys and operations.
  void Loaded(uint64_t keys, uint64_t of);
  void Ran(const ycsb::IntervalReport& interval);

 private:
  using Clock = std::chrono::steady_clock;

  // The caller holds mutex_.
  void Say(const std::string& line);
  void Print(const std::string& lines);
  void SetStep(const std::string& what);
  // Runs on a thread of its own: tells how long the step has taken.
  void Tick(const std::stop_token& stop);

  const bool terminal_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable_any ended_;
  bool counting_ = false;   // the terminal's cursor is behind a count
  Clock::time_point told_;  // when something was said last, or the command began
  std::string step_;        // is told if it takes longer; empty: none
  Clock::time_point step_begun_;
  LiveLines tpcc_lines_;
  LiveLines ycsb_lines_;
  std::jthread ticker_;  // last, because it uses the other members
};

// Shows a run of the YCSB bench. `progress` must outlive it.
bench::YcsbProgress YcsbProgressOf(Progress* progress);

}  // namespace gannet::cli
