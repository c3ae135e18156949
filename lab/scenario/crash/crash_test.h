// A crash test: one child after the other in a directory. Each is killed, and reports what it recovered from the one
// before.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "lab/scenario/crash/child.h"
#include "lab/scenario/crash/child_process.h"
#include "lab/scenario/crash/judge.h"
#include "lab/scenario/crash/options.h"

namespace gannet::scenario::crash {

struct KillStatistics {
  uint64_t planned = 0;
  uint64_t happened = 0;  // the others were killed by the clock, or ended before
};

struct CrashReport {
  uint64_t cycles = 0;  // survived
  std::map<std::string, KillStatistics> kills;
  JudgeStatistics operations;
  uint64_t recoveries = 0;
  double recovery_seconds = 0;
  double longest_recovery_seconds = 0;
  double longest_cycle_seconds = 0;
  std::string longest_cycle;  // the kill that it waited for
  double seconds = 0;
  std::string verdict;  // of the judge on all cycles together; may be empty
};

// The command line of the program that the test is part of. Its children are processes of the same program.
struct CrashProgram {
  // The arguments with which the program calls RunChild(child).
  std::function<std::vector<std::string>(const ChildOptions& child)> child_arguments;
  // The command that repeats the test, up to and with `cycle`, in a new directory.
  std::function<std::string(const CrashOptions& options, uint64_t cycle)> replay_command;
};

class CrashTest {
 public:
  // `options.directory` must exist, or it must be possible to make it.
  CrashTest(CrashOptions options, CrashProgram program)
      : options_(std::move(options)),
        program_(std::move(program)),
        judge_(Judge::Make(options_)),
        directory_(options_.directory) {}

  // Runs all cycles, then a start without a kill. An error names the cycle, the reason and how to repeat it. `progress`
  // is called after each cycle. Once *stop is true, a working child is killed at once, and this was the last cycle; the
  // start without a kill still follows. Cancelled once *stop_now is true, or if *stop was set before there was
  // something to judge.
  Status Run(const std::function<void(uint64_t cycle)>& progress, const std::atomic<bool>* stop,
             const std::atomic<bool>* stop_now);
  const CrashReport& report() const { return report_; }

 private:
  Status RunCycles(const std::function<void(uint64_t cycle)>& progress);
  // `cycle` is the first one in a directory.
  Status BeginDirectory(uint64_t cycle);
  Status RunCycle(const CyclePlan& plan);
  Status RunInPeace(uint64_t cycle);
  // Reads until the child is dead.
  Status Follow(ChildProcess* child, const CyclePlan* plan);
  Status Take(const Message& message);
  // The options of this cycle's child. `finish`: it closes the database and ends without a kill.
  ChildOptions ChildOf(const CyclePlan& plan, bool finish) const;
  Status Explain(const Status& status, uint64_t cycle, const std::string& what) const;

  const CrashOptions options_;
  const CrashProgram program_;
  std::unique_ptr<Judge> judge_;
  std::string directory_;  // where children work now
  CrashReport report_;
  const std::atomic<bool>* stop_ = nullptr;
  const std::atomic<bool>* stop_now_ = nullptr;
  bool created_ = false;  // a child has started in directory_: from now on the database must be there
  bool running_ = false;  // this child has begun its operations
  bool closed_ = false;   // and has closed the database
  bool killed_ = false;   // by this process
};

}  // namespace gannet::scenario::crash
