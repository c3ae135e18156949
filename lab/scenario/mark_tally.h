// MarkTally: number of seeds of a sweep that reached each Sometimes mark of the program (base/sometimes.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lab/scenario/scenario.h"

namespace gannet::scenario {

class MarkTally {
 public:
  // Starts with all marks of the program at 0 seeds.
  MarkTally();

  void Add(const ScenarioReport& report);

  // Number of seeds by mark, including marks that no seed reached.
  const std::map<std::string, uint64_t>& seeds() const { return seeds_; }
  std::vector<std::string> NeverReached() const;

 private:
  std::map<std::string, uint64_t> seeds_;
};

}  // namespace gannet::scenario
