// InterruptedChannel: a client's channel that runs a function of the test between two verbs.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "base/coro/worker.h"
#include "gtest/gtest.h"
#include "rdma/fabric.h"

namespace gannet::index {

// Each verb of a posting is carried out on its own; verbs over another fabric may be apart like that. So what others do
// in between is what they may do at this moment.
class InterruptedChannel final : public rdma::Channel {
 public:
  explicit InterruptedChannel(rdma::Channel* inner)
      : Channel(inner->node(), inner->index(), nullptr, inner->capabilities()), inner_(inner) {
    worker_.AddPoller([inner] { return inner->Poll(); });
  }

  // Calls `interrupt` before the verb or call after this number of them, once. The one before, if any, is not called.
  void InterruptAfter(size_t verbs, std::function<void()> interrupt) {
    left_ = verbs;
    interrupt_ = std::move(interrupt);
  }
  // It has been called, or there is none.
  bool is_over() const { return interrupt_ == nullptr; }

  size_t Poll() override { return inner_->Poll(); }

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    completion->status = absl::OkStatus();
    for (rdma::Operation& operation : operations) {
      MayInterrupt();
      const Status status = worker_.BlockOn(Post(inner_, &operation));
      if (!status.ok()) completion->status = status;
    }
    return true;
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    MayInterrupt();
    const StatusOr<size_t> bytes = worker_.BlockOn(Call(inner_, call));
    completion->status = bytes.status();
    completion->response_bytes = bytes.value_or(0);
    return true;
  }

 private:
  static coro::Task<StatusOr<size_t>> Call(rdma::Channel* channel, rdma::CallRequest call) {
    co_return co_await channel->Call(call.node, call.method, call.request, call.response, call.timeout);
  }
  static coro::Task<Status> Post(rdma::Channel* channel, rdma::Operation* operation) {
    co_return co_await channel->Post({operation, 1});
  }
  void MayInterrupt() {
    if (interrupt_ == nullptr || left_-- > 0) return;
    std::exchange(interrupt_, nullptr)();
  }

  rdma::Channel* inner_;
  size_t left_ = 0;
  std::function<void()> interrupt_;
  coro::Worker worker_;
};

}  // namespace gannet::index
