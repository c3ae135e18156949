// Window searches and inserts of rectangles on a simulated rack of one server and some client machines, as in the
// evaluation of Catfish (TSAS'22, section 5).
//
//   auto rack = SpatialRack::Load(options);    // the server has its rectangles
//   auto report = (*rack)->Run(options);       // clients come, and run
//
// Each request of a client is one transaction of the public API, repeated after a conflict. Every row that a search
// returns is checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/catfish/catfish.h"
#include "lab/experiments/rack/sim_rack.h"
#include "lab/experiments/spatial/data_set.h"
#include "txn/database.h"
#include "txn/store/options.h"

namespace gannet::experiments {

struct SpatialRackOptions {
  // What Load needs.
  index::CatfishOptions tree;
  DataOptions data;  // without the windows
  size_t payload_bytes = sizeof(uint64_t);
  int server_threads = 28;  // with a core for each, unless they have connections of their own
  rdma::sim::Serving serving = rdma::sim::Serving::kShared;
  int machines = 8;        // of clients
  int machine_cores = 32;  // of each of them, and of a server whose threads share cores
  std::string nic = "cx5-100g";
  bool spread = true;  // of round trips (rdma/sim/spread.h)

  // What Run needs. data.windows, too.
  int clients = 256;  // threads that send one request after the other, evenly on all machines
  txn::ReadPathPolicy reads = txn::ReadPathPolicy::kOneSided;
  int insert_percent = 0;
  // If set, clients search the index alone, without transactions and without reading rows. Only for searches.
  std::optional<index::CatfishClientOptions> index_only;
  absl::Duration warmup;
  absl::Duration duration;
  uint64_t seed = 1;
};

class SpatialRack {
 public:
  static StatusOr<std::unique_ptr<SpatialRack>> Load(const SpatialRackOptions& options);
  ~SpatialRack();
  SpatialRack(const SpatialRack&) = delete;
  SpatialRack& operator=(const SpatialRack&) = delete;

  // Returns the report as JSON. `options` need the same load.
  StatusOr<std::string> Run(const SpatialRackOptions& options);
  // True if a rack that was loaded for one of them serves for the other, too.
  static bool SameLoad(const SpatialRackOptions& a, const SpatialRackOptions& b);

 private:
  explicit SpatialRack(const SpatialRackOptions& options) : loaded_(options) {}
  Status StartServer();
  Status Fill();

  const SpatialRackOptions loaded_;
  std::unique_ptr<SimRack> rack_;  // destroyed after the databases
  std::unique_ptr<txn::Database> server_;
};

}  // namespace gannet::experiments
