// The part of Channel that all backends share.
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/thread.h"
#include "rdma/fabric.h"

namespace gannet::rdma {

Status Channel::PostAlone(std::span<Operation> operations) {
  GANNET_CHECK(alone_, "PostAlone without an Alone");
  constexpr int kSpins = 256;
  Completion completion;
  if (Submit(operations, &completion)) return std::move(completion.status);
  for (int spins = 0; !completion.done; ++spins) {
    if (Poll() > 0) continue;
    if (spins < kSpins) {
      CpuRelax();
    } else {
      YieldThread();
    }
  }
  return std::move(completion.status);
}

// Those that are resumed may be alone again, within this call; then they come to its end before it goes on.
void Channel::EndAlone() {
  alone_ = false;
  if (deferred_.empty()) return;
  Activity* const activity = std::exchange(activity_, nullptr);
  for (Completion* const completion : std::exchange(deferred_, {})) Deliver(completion);
  activity_ = activity;
}

}  // namespace gannet::rdma
