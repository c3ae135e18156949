// MoveWorker: the thread of a run that moves a part of the keys (moving_part.h). Internal to the driver.
#pragma once

#include <memory>

#include "base/coro/task.h"
#include "base/status.h"
#include "bench/harness/worker.h"
#include "ycsb/connection.h"
#include "ycsb/driver.h"
#include "ycsb/moving_part.h"
#include "ycsb/report.h"
#include "ycsb/workload.h"

namespace gannet::ycsb {

class MoveWorker final : public bench::Worker {
 public:
  // All must outlive this.
  MoveWorker(Cluster* cluster, const RunOptions* options, MovingPart* moving, bench::RunControl* control)
      : Worker(control, kKinds), cluster_(*cluster), options_(*options), moving_(*moving) {}

  Status Prepare() override;
  Status Run() override;
  void Close() override { connection_.reset(); }

  // Valid after Run.
  const MoveReport& report() const { return report_; }

 private:
  coro::Task<Status> Move();
  coro::Task<Status> MoveSlice();
  const rdma::VerbCounters& VerbsSoFar() const override { return connection_->channel().counters(); }
  void MeasurementBegins() override;

  Cluster& cluster_;
  const RunOptions& options_;
  MovingPart& moving_;
  std::unique_ptr<Connection> connection_;
  uint64_t measure_nanos_ = 0;  // beginning of the measured phase
  MoveReport report_;
};

}  // namespace gannet::ycsb
