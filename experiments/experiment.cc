#include "experiments/experiment.h"

#include <algorithm>

namespace gannet::experiments {
namespace {

constexpr double kBusy = 0.9;

}  // namespace

std::string BoundOf(const Measured& m) {
  const double most = std::max({m.server_cpu, m.server_nic, m.server_link});
  if (most < kBusy) return "clients";
  if (most == m.server_cpu) return "server CPU";
  return most == m.server_nic ? "server NIC" : "server link";
}

}  // namespace gannet::experiments
