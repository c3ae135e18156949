// The part of Channel that all backends share.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/clock.h"
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

void ChannelAwaiter::NoteBegin() {
  begun_nanos_ = NowNanos();
}

// If the backend knows only bounds, the operation completed in the middle between them.
void ChannelAwaiter::Measure(uint64_t Activity::*kind) {
  channel_->activity_ = activity_;
  const uint64_t now = NowNanos();
  uint64_t done = now;
  if (completion_.done_before != 0) {
    const uint64_t before = std::clamp(completion_.done_before, begun_nanos_, now);
    const uint64_t after = std::clamp(completion_.done_after, begun_nanos_, before);
    done = after + (before - after) / 2;
  }
  ++(activity_->*kind);
  if (kind == &Activity::postings) activity_->posting_nanos += done - begun_nanos_;
  activity_->late_nanos += now - done;
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
