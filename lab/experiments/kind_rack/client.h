// Client: one client thread of a rack. Internal to the rack; rack.h describes the run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/coro/task.h"
#include "base/random.h"
#include "base/status.h"
#include "bench/harness/histogram.h"
#include "bench/harness/worker.h"
#include "index/types.h"
#include "lab/experiments/kind_rack/rack.h"
#include "lab/experiments/kind_rack/rows.h"
#include "txn/database.h"
#include "txn/run/session.h"
#include "txn/store/statistics.h"

namespace gannet::experiments::kind_rack {

struct ClientReport {
  bench::Histogram latency;
  uint64_t rows = 0;     // that were read
  uint64_t aborted = 0;  // attempts of transactions
  std::vector<txn::TablePaths> paths;
  index::ClientStatistics index;  // lookups of the measurement; the size of the client's own cache at its end
};

class Client final : public bench::Worker {
 public:
  struct Options {
    txn::Database* database = nullptr;
    const Rows* rows = nullptr;
    Work work = Work::kRead;
    uint64_t number = 0;  // of `clients`
    uint64_t clients = 1;
    uint64_t seed = 1;
  };

  Client(const Options& options, bench::RunControl* control)
      : Worker(control), options_(options), random_(Mix64(options.seed) + options.number) {}

  Status Prepare() override;
  Status Run() override;
  void Close() override { session_.reset(); }

  // Valid after Run.
  const ClientReport& report() const { return report_; }

 private:
  coro::Task<void> Loop();
  coro::Task<Status> Operate(txn::RunOutcome* outcome);
  coro::Task<Status> Read(const RowKey& key, txn::RunOutcome* outcome);
  coro::Task<Status> Update(const RowKey& key, txn::RunOutcome* outcome);
  coro::Task<Status> Insert(const RowKey& key, txn::RunOutcome* outcome);
  coro::Task<Status> Scan(uint64_t row, txn::RunOutcome* outcome);
  index::ClientStatistics IndexStatistics() const;
  const rdma::VerbCounters& VerbsSoFar() const override { return session_->channel().counters(); }
  void MeasurementBegins() override;
  void MeasurementEnds() override;

  const Options options_;
  Random random_;
  uint64_t inserted_ = 0;
  const txn::Table* table_ = nullptr;
  std::unique_ptr<txn::Session> session_;
  txn::ScanRows found_;
  uint64_t read_ = 0;  // rows, by the last operation
  std::array<std::byte, kPayloadBytes> payload_{};
  index::ClientStatistics index_before_;
  std::vector<txn::TablePaths> paths_before_;
  ClientReport report_;
};

// The name of the rack's only table.
inline constexpr char kTable[] = "rows";

}  // namespace gannet::experiments::kind_rack
