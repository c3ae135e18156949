// The fields of a scenario, each with its name in JSON and its valid values: reading, writing and checking go by them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/scenario/options/options.h"
#include "rdma/sim/nic_profile.h"
#include "rdma/sim/simulation.h"
#include "txn/store/table.h"

namespace gannet::scenario {

// 0, or -1 where 0 is a valid value, means that the value is drawn.
struct Range {
  int64_t low;
  int64_t high;
};
// Empty means that the name is drawn.
using Names = std::vector<std::string>;

inline Names NicNames() {
  Names names;
  for (const rdma::sim::NicProfile& nic : rdma::sim::NicProfiles()) names.emplace_back(nic.name);
  return names;
}

// Calls visit(name, field, valid values) for each field, except for the seed, the faults, and what only a run needs;
// visit(name, field) if this file does not know the valid values.
template <class Options, class Visit>
void ForEachField(Options* options, Visit visit) {
  constexpr int64_t kMinute = 60'000'000'000;
  constexpr int64_t kMostKeys = 10'000;  // the judge reads all of them in one transaction
  constexpr Range kTime = {0, kWholeRun};
  constexpr Range kDrawnCount = {-1, 1000};
  visit("workload", &options->workload, WorkloadNames());
  visit("nodes", &options->nodes, Range{0, rdma::sim::kMaxSimNodes});
  visit("workers_per_node", &options->workers_per_node, Range{0, 16});
  visit("coroutines", &options->coroutines, Range{0, 6});
  visit("keys", &options->keys, Range{0, kMostKeys});
  visit("faulty_nanos", &options->faulty_nanos, Range{1, kWholeRun});
  visit("settle_nanos", &options->settle_nanos, kTime);
  visit("nic", &options->nic, NicNames());
  visit("coherent", &options->coherent);
  visit("durability", &options->durability, Names{"none", "sync"});
  visit("power_cuts", &options->power_cuts, kDrawnCount);
  visit("deaths", &options->deaths, kDrawnCount);
  visit("checks", &options->checks, kDrawnCount);
  visit("client", &options->client);
  visit("server_threads", &options->server_threads, Range{0, 16});
  visit("read_path", &options->read_path, Names{"adaptive", "one_sided", "calls"});
  visit("call_timeout_nanos", &options->call_timeout_nanos, kTime);
  visit("durable_within_nanos", &options->durable_within_nanos, kTime);
  visit("log_segment_bytes", &options->log_segment_bytes, Range{0, 64 << 20});
  visit("log_buffer_bytes", &options->log_buffer_bytes, Range{0, 1 << 20});
  visit("precedence_after_nanos", &options->precedence_after_nanos, Range{0, kMinute});
  visit("precedence_limit_nanos", &options->precedence_limit_nanos, Range{0, kMinute});
  visit("session_nanos", &options->session_nanos, kTime);
  visit("rest_nanos", &options->rest_nanos, Range{0, 1'000'000'000});
  visit("row_words", &options->row_words, Range{0, txn::kMaxPayloadBytes / sizeof(uint64_t)});
  visit("index_options", &options->index_options);
  visit("ordered_index", &options->ordered_index, Names{"xstore", "blink", "rolex", "dex", "dolphin"});
  visit("index_rights", &options->index_rights, Names{"owner", "clients"});
}

}  // namespace gannet::scenario
