// The cluster file as the commands read it: the cluster, and what its servers hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cluster/config.h"
#include "tpcc/schema.h"

namespace gannet::cli {

// The table [tpcc].
struct TpccSection {
  int warehouses = 0;
  uint64_t seed = 1;  // of the population
  uint32_t items = 0;
  uint32_t customers_per_district = 0;
};

tpcc::SchemaOptions SchemaOf(const TpccSection& section);

struct ClusterFile {
  cluster::Config config;
  TpccSection tpcc;
};

// InvalidArgument names the line and says what to write instead; NotFound if the file cannot be read.
StatusOr<ClusterFile> ReadClusterFile(const std::string& file);
// The same of a text. `file` is the name for errors.
StatusOr<ClusterFile> ParseClusterFile(std::string_view text, const std::string& file);

// `status`; if it says that a server did not come in time, it also names the command and the flag that help.
Status NameWaitFlag(const Status& status);

}  // namespace gannet::cli
