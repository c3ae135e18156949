// Live progress of a long command: on stderr if that is a terminal, else nothing at all.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

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
  // One line that is overwritten until the last warehouse.
  void Loaded(const tpcc::LoadProgress& progress);
  // One line per interval.
  void Ran(const tpcc::IntervalReport& interval);
  // The same for the bench of indexes: keys, operations.
  void Loaded(uint64_t keys, uint64_t of);
  void Ran(const ycsb::IntervalReport& interval);

 private:
  std::mutex mutex_;
  bool enabled_;
};

}  // namespace gannet::cli
