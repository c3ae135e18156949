// A table with one kind of index on a simulated rack: one server has the rows, and transactions of client machines read
// and change them. All options of the databases have their defaults, except for the path.
//
//   auto rack = Rack::Load(options);           // the server has its rows
//   auto report = (*rack)->Run(options);       // clients come, and run
//
// Each operation of a client is one transaction of the public API, repeated after a conflict. Every row that is read is
// checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/types.h"
#include "lab/experiments/kind_rack/rows.h"
#include "lab/experiments/rack/sim_rack.h"
#include "txn/database.h"

namespace gannet::experiments::kind_rack {

enum class Work : uint8_t {
  kRead,         // a row by its key
  kHalfUpdates,  // the same, or replaces a row
  kInsert,       // a row with a key of its own, anywhere between those of the others
  kAppend,       // the same, but each with the greatest integer of all so far
  kScan,         // kScanRows rows in order from a key on; with rectangles, a search of a window
};
inline constexpr std::string_view kWorkNames[] = {"read", "half-updates", "insert", "append", "scan"};

struct RackOptions {
  // What Load needs.
  index::IndexKind kind = index::IndexKind::kHash;
  uint64_t rows = 300'000;
  int server_threads = 8;  // with a core for each
  int machines = 8;        // of clients
  int machine_cores = 8;   // of each of them
  std::string nic = "cx5-100g";
  bool spread = true;  // of round trips (rdma/sim/spread.h)

  // What Run needs.
  Work work = Work::kRead;
  int clients = 8;  // threads that run one transaction after the other, evenly on all machines
  absl::Duration warmup;
  absl::Duration duration;
  uint64_t seed = 1;
};

class Rack {
 public:
  static StatusOr<std::unique_ptr<Rack>> Load(const RackOptions& options);
  ~Rack();
  Rack(const Rack&) = delete;
  Rack& operator=(const Rack&) = delete;

  // Returns the report as JSON. `options` need the same load.
  StatusOr<std::string> Run(const RackOptions& options);
  // True if a rack that was loaded for one of them serves for the other, too.
  static bool SameLoad(const RackOptions& a, const RackOptions& b);

 private:
  explicit Rack(const RackOptions& options);
  Status StartServer();
  Status Fill();
  Status Train();

  const RackOptions loaded_;
  const Rows rows_;
  std::unique_ptr<SimRack> rack_;  // destroyed after the databases
  std::unique_ptr<txn::Database> server_;
};

}  // namespace gannet::experiments::kind_rack
