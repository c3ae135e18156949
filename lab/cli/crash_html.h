// The report of `gannet crashtest` as an HTML page.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "lab/scenario/crash/crash_test.h"
#include "lab/scenario/crash/options.h"

namespace gannet::cli {

// What each cycle added to the report.
class CrashCycles {
 public:
  struct Cycle {
    double at_seconds = 0;
    double recovery_ms = 0;  // on average, if there were several in the cycle
    bool recovered = false;
    uint64_t acknowledged = 0;
  };

  // Called after each cycle.
  void Note(const scenario::crash::CrashReport& report);
  const std::vector<Cycle>& cycles() const { return cycles_; }

 private:
  std::vector<Cycle> cycles_;
  uint64_t recoveries_ = 0;
  double recovery_seconds_ = 0;
  uint64_t acknowledged_ = 0;
};

// `done`: the test's result.
std::string ToHtml(const scenario::crash::CrashOptions& options, const scenario::crash::CrashReport& report,
                   const CrashCycles& cycles, const Status& done);

}  // namespace gannet::cli
