// The report on a paper's experiments, as data.
#pragma once

#include <string>
#include <vector>

#include "experiments/experiment.h"

namespace gannet::experiments {

// A number that is not a point of a figure (a factor, READs, an error, memory), and what it is compared with.
struct Claim {
  std::string what;
  double ours;
  PaperValue paper;
  std::string note;  // reason for the difference

  static Claim Of(std::string what, double ours, double paper, std::string source, std::string note);
  double difference_percent() const { return 100 * (ours / paper.value - 1); }
};

struct Report {
  std::string system;   // the paper's name for its own system: "XStore"; or what our own experiments are about
  std::string setting;  // one sentence: what was run in place of the paper's rack
  std::vector<Experiment> experiments;
  std::vector<Claim> claims;
  std::vector<std::string> nics;    // the NIC profiles that were used (rdma/sim/nic_profile.h)
  std::string reference = "paper";  // what the claims are compared with
};

}  // namespace gannet::experiments
