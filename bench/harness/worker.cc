#include "bench/harness/worker.h"

namespace gannet::bench {

void Worker::Enter(Phase phase) {
  const rdma::VerbCounters& verbs = VerbsSoFar();
  if (seen_ == Phase::kWarmup) {
    verbs_at_start_ = verbs;
    MeasurementBegins();
  }
  if (phase == Phase::kDrain) {
    verbs_ = verbs - verbs_at_start_;
    MeasurementEnds();
  }
  seen_ = phase;
}

}  // namespace gannet::bench
