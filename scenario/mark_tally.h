// MarkTally: how many seeds of a sweep reached each of the program's Sometimes marks (base/sometimes.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scenario/scenario.h"

namespace gannet::scenario {

class MarkTally {
 public:
  // All marks of the program, with no seed.
  MarkTally();

  void Add(const ScenarioReport& report);

  // Seeds by mark, also those that none reached.
  const std::map<std::string, uint64_t>& seeds() const { return seeds_; }
  std::vector<std::string> NeverReached() const;

 private:
  std::map<std::string, uint64_t> seeds_;
};

}  // namespace gannet::scenario
