// The cluster file for the commands: the cluster, and the data of its servers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cluster/config/config.h"
#include "index/registry.h"
#include "tpcc/schema/schema.h"
#include "ycsb/client.h"
#include "ycsb/cluster.h"

namespace gannet::cli {

// The table [tpcc].
struct TpccSection {
  int warehouses = 0;
  uint64_t seed = 1;  // of the population
  uint32_t items = 0;
  uint32_t customers_per_district = 0;
  index::IndexKind ordered_index = index::IndexKind::kXStore;
  std::optional<index::IndexRights> index_rights = {};  // of the ordered tables; none: the most that the kind allows
};

tpcc::SchemaOptions SchemaOf(const TpccSection& section);

// The table [ycsb].
struct YcsbSection {
  ycsb::ClusterOptions options;            // except machines and server_threads
  int fill_percent = 50;                   // options.fill
  ycsb::Path updates = ycsb::Path::kCall;  // of all clients
};

// One of the tables is there.
struct ClusterFile {
  cluster::Config config;
  std::optional<TpccSection> tpcc;
  std::optional<YcsbSection> ycsb;
};

// InvalidArgument names the line and says what to write instead; NotFound if the file cannot be read.
StatusOr<ClusterFile> ReadClusterFile(const std::string& file);
// Reads a cluster file from a text. `file` is the name for errors.
StatusOr<ClusterFile> ParseClusterFile(std::string_view text, const std::string& file);

// Advice if servers did not come in time (cluster::Patience::advice).
inline constexpr const char* kWaitAdvice = "start it with `gannet serve`, or wait longer (--wait)";

}  // namespace gannet::cli
