// The options of a database that the cluster decides, for servers and clients.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "cluster/config/config.h"
#include "cluster/join/open_fabric.h"
#include "txn/database.h"

namespace gannet::cluster {

// The limit of Database::Start: all servers are attached already, and only have to remain so.
inline constexpr absl::Duration kStartWithin = absl::Seconds(10);

inline txn::DatabaseOptions OptionsInCluster(const Config& config, const Patience& patience,
                                             txn::DatabaseOptions options) {
  options.data_nodes = config.num_servers();
  options.call_timeout = std::max(options.call_timeout, CallTimeout(config));
  options.stop = patience.stop;
  return options;
}

}  // namespace gannet::cluster
