// What the paper says of its system in numbers that are not points of a figure: factors, READs, errors, memory.
#pragma once

#include <string>
#include <vector>

#include "cli/reproduce/experiment.h"

namespace gannet::cli {

struct Claim {
  std::string what;
  double ours;
  PaperValue paper;
  std::string note;  // why we differ

  double difference_percent() const { return 100 * (ours / paper.value - 1); }
};

// Those whose points are among `experiments`, which were run.
std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments);

// What keeps the throughput of a point from being higher, as far as the server is it.
std::string BoundOf(const Measured& measured);

}  // namespace gannet::cli
