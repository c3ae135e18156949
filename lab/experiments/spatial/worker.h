// SpatialWorker: one client of a spatial rack. Internal to the rack; rack.h describes the run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/random.h"
#include "base/status.h"
#include "bench/harness/operation_statistics.h"
#include "bench/harness/worker.h"
#include "index/index.h"
#include "lab/experiments/spatial/data_set.h"
#include "lab/experiments/spatial/rack.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::experiments {

struct SpatialStatistics {
  bench::Histogram all;
  bench::Histogram searches;
  uint64_t inserts = 0;
  uint64_t rows = 0;     // that searches returned
  uint64_t aborted = 0;  // attempts of requests
  std::vector<txn::TablePaths> paths;
  index::ClientStatistics index;  // of an index client without transactions
};

class SpatialWorker final : public bench::Worker {
 public:
  struct Options {
    txn::Database* database = nullptr;
    const DataSet* data = nullptr;
    const SpatialRackOptions* run = nullptr;
    uint64_t number = 0;  // unique among the clients
  };

  SpatialWorker(const Options& options, bench::RunControl* control)
      : Worker(control), options_(options), random_(Mix64(options.run->seed) + options.number) {}

  Status Prepare() override;
  Status Run() override;
  void Close() override;

  // Valid after Run.
  const SpatialStatistics& statistics() const { return statistics_; }

 private:
  coro::Task<void> Loop();
  coro::Task<Status> Search(index::Rectangle window);
  coro::Task<Status> SearchIndex(index::Rectangle window);
  coro::Task<Status> Insert(index::Rectangle box);
  Status CheckRows(const index::Rectangle& window) const;
  const rdma::VerbCounters& VerbsSoFar() const override { return session_->channel().counters(); }
  void MeasurementBegins() override { paths_before_ = session_->path_statistics(); }
  void MeasurementEnds() override;

  const Options options_;
  Random random_;
  uint64_t inserted_ = 0;
  const txn::Table* table_ = nullptr;
  std::unique_ptr<txn::Session> session_;
  std::unique_ptr<index::RemoteIndex> index_;  // if the run is without transactions
  index::ScanResult found_;
  txn::ScanRows rows_;
  uint64_t met_ = 0;      // by the last search
  uint32_t aborted_ = 0;  // attempts of the last request
  std::vector<std::byte> payload_;
  std::vector<txn::TablePaths> paths_before_;
  SpatialStatistics statistics_;
};

// The name of the rack's only table.
inline constexpr char kRectangles[] = "rectangles";

// The payload of the rectangle with this id: the id, then bytes that depend on it.
void MakePayload(uint64_t id, std::span<std::byte> payload);

}  // namespace gannet::experiments
