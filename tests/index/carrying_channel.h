// CarryingChannel: the base of a test's channel in front of another one, which carries out its verbs and calls at once.
#pragma once

#include <span>

#include "base/coro/worker.h"
#include "rdma/fabric.h"

namespace gannet::index {

class CarryingChannel : public rdma::Channel {
 public:
  // `inner` must outlive this.
  explicit CarryingChannel(rdma::Channel* inner)
      : Channel(inner->node(), inner->index(), nullptr, inner->capabilities()), inner_(inner) {
    worker_.AddPoller([inner] { return inner->Poll(); });
  }

  size_t Poll() override { return inner_->Poll(); }

 protected:
  // These return when the inner channel has completed them.
  Status Carry(std::span<rdma::Operation> operations) { return worker_.BlockOn(Post(inner_, operations)); }
  void Carry(const rdma::CallRequest& call, rdma::Completion* completion) {
    const StatusOr<size_t> bytes = worker_.BlockOn(Call(inner_, call));
    completion->status = bytes.status();
    completion->response_bytes = bytes.value_or(0);
  }

 private:
  static coro::Task<StatusOr<size_t>> Call(rdma::Channel* channel, rdma::CallRequest call) {
    co_return co_await channel->Call(call.node, call.method, call.request, call.response, call.timeout);
  }
  static coro::Task<Status> Post(rdma::Channel* channel, std::span<rdma::Operation> operations) {
    co_return co_await channel->Post(operations);
  }

  rdma::Channel* inner_;
  coro::Worker worker_;
};

}  // namespace gannet::index
