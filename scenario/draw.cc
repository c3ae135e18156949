// What a scenario leaves open, drawn from its seed.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rdma/base/random.h"
#include "rdma/sim/nic_profile.h"
#include "rdma/sim/simulation.h"
#include "scenario/run.h"
#include "scenario/scenario.h"
#include "scenario/workload/workload.h"

namespace gannet::scenario {
namespace {

constexpr uint64_t kLeastSettleNanos = 30'000'000;
constexpr uint64_t kDisksSettleNanos = 300'000'000;  // a log that met an error tries again after 100 ms

template <size_t kSize>
const char* OneOf(const std::array<const char*, kSize>& names, Random* random) {
  return names[random->Below(kSize)];
}

}  // namespace

Status CheckScenario(const ScenarioOptions& options) {
  const auto in_range = [](const char* field, int64_t value, int64_t low, int64_t high) -> Status {
    if (value >= low && value <= high) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("field '", field, "' of the scenario is ", value, "; it must be from ", low, " to ", high));
  };
  const auto one_of = [](const char* field, const std::string& value, const std::vector<std::string>& names) -> Status {
    if (value.empty() || std::ranges::find(names, value) != names.end()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("field '", field, "' of the scenario is '", value,
                                                   "'; it must be one of ", absl::StrJoin(names, ", ")));
  };
  std::vector<std::string> nics;
  for (const rdma::sim::NicProfile& nic : rdma::sim::NicProfiles()) nics.emplace_back(nic.name);
  GANNET_RETURN_IF_ERROR(one_of("workload", options.workload, WorkloadNames()));
  GANNET_RETURN_IF_ERROR(one_of("nic", options.nic, nics));
  GANNET_RETURN_IF_ERROR(one_of("durability", options.durability, {"none", "sync"}));
  // 0, or -1 for what may be 0: drawn.
  GANNET_RETURN_IF_ERROR(in_range("nodes", options.nodes, 0, rdma::sim::kMaxSimNodes));
  GANNET_RETURN_IF_ERROR(in_range("workers_per_node", options.workers_per_node, 0, 16));
  GANNET_RETURN_IF_ERROR(in_range("coroutines", options.coroutines, 0, 6));
  GANNET_RETURN_IF_ERROR(in_range("power_cuts", options.power_cuts, -1, 1000));
  GANNET_RETURN_IF_ERROR(in_range("deaths", options.deaths, -1, 1000));
  GANNET_RETURN_IF_ERROR(in_range("checks", options.checks, -1, 1000));
  constexpr uint64_t kMostKeys = 10'000;  // the judge reads all of them in one transaction
  GANNET_RETURN_IF_ERROR(in_range("keys", static_cast<int64_t>(std::min<uint64_t>(options.keys, INT64_MAX)), 0,
                                  static_cast<int64_t>(kMostKeys)));
  constexpr int64_t kHour = 3'600'000'000'000;
  GANNET_RETURN_IF_ERROR(
      in_range("faulty_nanos", static_cast<int64_t>(std::min<uint64_t>(options.faulty_nanos, INT64_MAX)), 1, kHour));
  return in_range("settle_nanos", static_cast<int64_t>(std::min<uint64_t>(options.settle_nanos, INT64_MAX)), 0, kHour);
}

// Every draw is made whether its result is used or not: naming one field changes no other.
ScenarioOptions Drawn(const ScenarioOptions& options) {
  Random random(Mix64(options.seed) ^ 0x5ce0a210);
  ScenarioOptions drawn = options;
  const int nodes = 1 + static_cast<int>(random.Below(4));
  const int workers = 1 + static_cast<int>(random.Below(2));
  const int coroutines = 1 + static_cast<int>(random.Below(5));
  const uint64_t keys = uint64_t{4} << random.Below(5);
  const uint64_t workload = random.Below(10);
  const bool coherent = !random.OneIn(4);
  const char* nic = OneOf(std::array{"ideal", "cx4-100g", "cx5-100g", "cx6-200g"}, &random);
  const bool durable = random.OneIn(3);
  const int power_cuts = static_cast<int>(random.Below(3));
  const rdma::sim::Faults faults = rdma::sim::Faults::Draw(&random);

  const int deaths = static_cast<int>(random.Below(4));  // after all that was drawn before there were any
  const bool client = random.OneIn(2);
  const int checks = random.OneIn(2) ? 1 + static_cast<int>(random.Below(2)) : 0;

  if (drawn.nodes == 0) drawn.nodes = nodes;
  if (drawn.workers_per_node == 0) drawn.workers_per_node = workers;
  if (drawn.coroutines == 0) drawn.coroutines = coroutines;
  if (drawn.keys == 0) drawn.keys = keys;
  if (drawn.workload.empty()) drawn.workload = workload < 6 ? "registers" : workload < 9 ? "append" : "tpcc";
  if (!drawn.coherent.has_value()) drawn.coherent = coherent;
  if (drawn.nic.empty()) drawn.nic = nic;
  if (drawn.durability.empty()) drawn.durability = durable ? "sync" : "none";
  if (drawn.power_cuts < 0) drawn.power_cuts = power_cuts;
  if (drawn.durability == "none") drawn.power_cuts = 0;
  const bool tpcc = drawn.workload == kTpccWorkload;
  if (!drawn.client.has_value()) drawn.client = client;
  // Databases with a log have no clients.
  if (drawn.nodes == 1 || (tpcc && drawn.durability != "none")) drawn.client = false;
  if (drawn.deaths < 0) drawn.deaths = deaths;
  // Of one node nobody survives. A terminal of TPC-C needs all warehouses.
  if (drawn.nodes == 1 || (tpcc && drawn.durability == "none" && !*drawn.client)) drawn.deaths = 0;
  if (drawn.durability == "none" && !*drawn.client) drawn.deaths = std::min(drawn.deaths, drawn.nodes - 1);
  if (drawn.checks < 0) drawn.checks = checks;
  if (!drawn.faults.has_value()) {
    drawn.faults = faults;
    // A terminal of TPC-C takes no for an answer that a node cannot be reached, and the run ends.
    if (tpcc) {
      drawn.faults->disconnect = drawn.faults->lost_request = drawn.faults->lost_response = 0;
      drawn.faults->cut_every = 0;
    }
    if (tpcc || drawn.durability == "none") {
      drawn.faults->disk_write_error = drawn.faults->disk_short_write = drawn.faults->disk_sync_error = 0;
      drawn.faults->disk_full_every = 0;
    }
  }
  if (drawn.settle_nanos == 0) {
    drawn.settle_nanos = kLeastSettleNanos +
                         2 * std::max({drawn.faults->stuck_nanos, drawn.faults->pause_nanos, drawn.faults->cut_nanos}) +
                         (drawn.faults->OfDisks() ? kDisksSettleNanos : 0);
  }
  return drawn;
}

std::vector<Interruption> InterruptionsOf(const ScenarioOptions& drawn) {
  std::vector<Interruption> result;
  result.insert(result.end(), static_cast<size_t>(drawn.power_cuts), Interruption::kPowerCut);
  result.insert(result.end(), static_cast<size_t>(drawn.deaths), Interruption::kDeath);
  result.insert(result.end(), static_cast<size_t>(drawn.checks), Interruption::kCheck);
  Random random(Mix64(drawn.seed) ^ 0x12e4f);
  for (size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[random.Below(i)]);
  return result;
}

std::string Describe(const ScenarioOptions& drawn) {
  return absl::StrCat(drawn.workload, ", ", drawn.nodes, " nodes x ", drawn.workers_per_node, " workers x ",
                      drawn.coroutines, " coroutines, ", drawn.keys, " keys, ", drawn.nic,
                      *drawn.coherent ? "" : " (atomics of the NIC only)", ", durability ", drawn.durability,
                      drawn.power_cuts > 0 ? absl::StrCat(", ", drawn.power_cuts, " power cuts") : "",
                      *drawn.client ? ", one without data" : "",
                      drawn.deaths > 0 ? absl::StrCat(", ", drawn.deaths, " deaths") : "",
                      drawn.checks > 0 ? absl::StrCat(", ", drawn.checks, " checks") : "",
                      drawn.faults->Any() ? absl::StrCat("; ", drawn.faults->ToString()) : "; no faults");
}

}  // namespace gannet::scenario
