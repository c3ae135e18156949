// InterruptedChannel: a client's channel that runs a function of the test between two verbs.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "rdma/fabric.h"
#include "tests/index/carrying_channel.h"

namespace gannet::index {

// Each verb of a posting is carried out on its own; verbs over another fabric may be apart like that. So what others do
// in between is what they may do at this moment.
class InterruptedChannel final : public CarryingChannel {
 public:
  using CarryingChannel::CarryingChannel;

  // Calls `interrupt` before the verb or call after this number of them, once. The one before, if any, is not called.
  void InterruptAfter(size_t verbs, std::function<void()> interrupt) {
    left_ = verbs;
    interrupt_ = std::move(interrupt);
  }
  // True if the interrupt has been called, or there is none.
  bool is_over() const { return interrupt_ == nullptr; }

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    completion->status = absl::OkStatus();
    for (rdma::Operation& operation : operations) {
      MayInterrupt();
      const Status status = Carry({&operation, 1});
      if (!status.ok()) completion->status = status;
    }
    return true;
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    MayInterrupt();
    Carry(call, completion);
    return true;
  }

 private:
  void MayInterrupt() {
    if (interrupt_ == nullptr || left_-- > 0) return;
    std::exchange(interrupt_, nullptr)();
  }

  size_t left_ = 0;
  std::function<void()> interrupt_;
};

}  // namespace gannet::index
