// SlowChannel: a channel whose verbs complete when it is polled, one posting at a time. So coroutines of one thread
// overlap as on a network, and always in the same way.
#pragma once

#include <deque>
#include <span>

#include "base/coro/worker.h"
#include "rdma/fabric.h"

namespace gannet::index {

class SlowChannel final : public rdma::Channel {
 public:
  explicit SlowChannel(rdma::Channel* inner)
      : Channel(inner->node(), inner->index(), nullptr, inner->capabilities()), inner_(inner) {
    worker_.AddPoller([inner] { return inner->Poll(); });
  }

  size_t Poll() override {
    if (waiting_.empty()) return 0;
    const Posting posting = waiting_.front();
    waiting_.pop_front();
    posting.completion->status = worker_.BlockOn(Carry(posting.operations));
    rdma::Deliver(posting.completion);
    return 1;
  }
  // Postings that have been carried out.
  size_t reads() const { return reads_; }
  size_t locks() const { return locks_; }
  size_t changes() const { return changes_; }

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    waiting_.push_back({operations, completion});
    return false;
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    StatusOr<size_t> bytes = worker_.BlockOn(Ask(call));
    completion->status = bytes.status();
    completion->response_bytes = bytes.value_or(0);
    return true;
  }

 private:
  struct Posting {
    std::span<rdma::Operation> operations;
    rdma::Completion* completion;
  };
  coro::Task<Status> Carry(std::span<rdma::Operation> operations) {
    const rdma::Verb first = operations[0].verb;
    (first == rdma::Verb::kRead ? reads_ : first == rdma::Verb::kCompareAndSwap ? locks_ : changes_) += 1;
    co_return co_await inner_->Post(operations);
  }
  coro::Task<StatusOr<size_t>> Ask(rdma::CallRequest call) {
    co_return co_await inner_->Call(call.node, call.method, call.request, call.response, call.timeout);
  }

  rdma::Channel* inner_;
  std::deque<Posting> waiting_;
  size_t reads_ = 0;
  size_t locks_ = 0;
  size_t changes_ = 0;
  coro::Worker worker_;
};

}  // namespace gannet::index
