// Runs every engine several times, in turn, and gathers what was measured.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/peers/data.h"
#include "bench/peers/engine.h"
#include "bench/peers/measure.h"
#include "bench/peers/operations.h"

namespace gannet::bench::peers {

struct RunOptions {
  int runs = 5;
  // A directory on the disk that is to be measured. What the engines write is removed.
  std::string directory = "/var/tmp";
  std::string only = {};  // operations whose id contains this
  MeasureOptions measure = {};
};

// What one engine measured, run by run.
struct Series {
  std::vector<double> values;
  std::vector<uint64_t> digests;

  double Median() const;
  double Least() const;
  double Greatest() const;
};

struct Results {
  std::vector<Operation> operations;
  // The keys are Figure::id, then the engine's place in the list of engines.
  std::map<std::string, std::map<size_t, Series>> figures;

  const Series* Find(const std::string& id, size_t engine) const;
};

// Run i begins with engine i, so that none has the same place in every run. Each engine has a process of its own in
// each run: what one leaves in memory does not matter for the next. Call it before the process has threads. Internal
// names an engine whose process died, or an operation to which two engines gave different answers. `progress` is called
// before each.
StatusOr<Results> RunAll(const std::vector<EngineKind>& engines, const Data& data, const RunOptions& options,
                         const std::function<void(int run, const EngineKind& engine)>& progress);

// Internal names an operation to which engines, or runs, gave different answers.
Status CheckAnswers(const std::vector<EngineKind>& engines, const Results& results);

}  // namespace gannet::bench::peers
