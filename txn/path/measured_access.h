// MeasuredAccess: takes the time of one access, if its choice asks for that, and tells the chooser.
//
//   MeasuredAccess measured(channel, &chooser, choice.measured);   // the access begins
//   ... co_await ...                                    // on the channel, also in coroutines that this one awaits
//   co_await MeasuredYield(channel, &worker);           // in the place of worker.Yield()
//   measured.End(status, choice);
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstdint>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "txn/path/offload_chooser.h"

namespace gannet::txn {

class MeasuredAccess {
 public:
  // Both must outlive it.
  MeasuredAccess(rdma::Channel* channel, OffloadChooser* chooser, bool measured)
      : channel_(channel), chooser_(chooser), measuring_(measured) {
    if (!measuring_) return;
    outer_ = channel_->Measure(&activity_);
    begun_ = NowNanos();
  }
  ~MeasuredAccess() { Stop(); }
  MeasuredAccess(const MeasuredAccess&) = delete;
  MeasuredAccess& operator=(const MeasuredAccess&) = delete;

  // `share`: of the time, if several choices were carried out together.
  void End(const Status& status, const PathChoice& choice, double share = 1) {
    Stop();
    // A node that could not be reached has not served the access: the time says nothing.
    const bool served = status.ok() || absl::IsAborted(status) || absl::IsNotFound(status);
    if (choice.measured && served) chooser_->Record(choice, nanos_ * share, activity_, ended_);
  }

 private:
  void Stop() {
    if (!measuring_) return;
    measuring_ = false;
    ended_ = NowNanos();
    const uint64_t took = ended_ - begun_;
    nanos_ = static_cast<double>(took - std::min(took, activity_.late_nanos));
    channel_->Measure(outer_);
  }

  rdma::Channel* channel_;
  OffloadChooser* chooser_;
  bool measuring_;
  rdma::Activity* outer_ = nullptr;
  rdma::Activity activity_;
  uint64_t begun_ = 0;
  uint64_t ended_ = 0;
  double nanos_ = 0;
};

// Awaiting it lets all other ready coroutines run first, as Worker::Yield does. That time does not count for an access
// that is measured.
class [[nodiscard]] MeasuredYield {
 public:
  MeasuredYield(rdma::Channel* channel, coro::Worker* worker) : channel_(channel), worker_(worker) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    activity_ = channel_->Measure(nullptr);
    if (activity_ != nullptr) since_ = NowNanos();
    worker_->Resume(handle);
  }
  void await_resume() {
    if (activity_ == nullptr) return;
    activity_->late_nanos += NowNanos() - since_;
    channel_->Measure(activity_);
  }

 private:
  rdma::Channel* channel_;
  coro::Worker* worker_;
  rdma::Activity* activity_ = nullptr;
  uint64_t since_ = 0;
};

}  // namespace gannet::txn
