// The report of a run: for people, for programs, and for docs/.
#pragma once

#include <string>
#include <vector>

#include "bench/harness/calibration.h"
#include "bench/peers/data.h"
#include "bench/peers/engine.h"
#include "bench/peers/run.h"
#include "nlohmann/json.hpp"

namespace gannet::bench::peers {

// What the report is about.
struct Context {
  std::string command;  // as it was typed
  std::string date;     // 2026-11-25
  std::string machine;  // processors, memory, system
  Calibration before;   // of the machine's memory, before and after the runs
  Calibration after;
  double load = 0;  // of the machine before the runs: processes that wanted to run, on average
  int runs = 0;
  ClockKind clock = ClockKind::kWall;
};

// The present date, the machine, and its load.
Context DescribeMachine();

// A promise about Gannet next to LMDB.
struct Goal {
  std::string what;
  double wanted = 0;
  double is = 0;
  bool at_most = false;  // otherwise at least

  bool met() const { return at_most ? is <= wanted : is >= wanted; }
};

// The goals whose figures were measured.
std::vector<Goal> Goals(const std::vector<EngineKind>& engines, const Results& results);

std::string ToTable(const std::vector<EngineKind>& engines, const Data& data, const Results& results,
                    const Context& context);
std::string ToMarkdown(const std::vector<EngineKind>& engines, const Data& data, const Results& results,
                       const Context& context);
// Keys are stable.
nlohmann::ordered_json ToJson(const std::vector<EngineKind>& engines, const Data& data, const Results& results,
                              const Context& context);

}  // namespace gannet::bench::peers
