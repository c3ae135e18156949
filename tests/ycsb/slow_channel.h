// SlowChannel: a channel whose verbs complete when it is polled, one posting at a time. So coroutines of one thread
// overlap as on a network, and always in the same way.
#pragma once

#include <deque>
#include <span>

#include "rdma/fabric.h"
#include "tests/index/carrying_channel.h"

namespace gannet::ycsb {

class SlowChannel final : public index::CarryingChannel {
 public:
  using CarryingChannel::CarryingChannel;

  size_t Poll() override {
    if (waiting_.empty() || is_held_) return 0;
    const Posting posting = waiting_.front();
    waiting_.pop_front();
    posting.completion->status = posting.is_carried ? posting.status : CountAndCarry(posting.operations);
    rdma::Deliver(posting.completion);
    return 1;
  }
  // From now on postings take effect when they are posted, but none completes before Release.
  void Hold() { is_held_ = true; }
  void Release() { is_held_ = false; }
  // Postings that have been carried out.
  size_t reads() const { return reads_; }
  size_t locks() const { return locks_; }
  size_t changes() const { return changes_; }

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    Posting& posting = waiting_.emplace_back(operations, completion);
    posting.is_carried = is_held_;
    if (posting.is_carried) posting.status = CountAndCarry(operations);
    return false;
  }
  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    Carry(call, completion);
    return true;
  }

 private:
  struct Posting {
    Posting(std::span<rdma::Operation> what, rdma::Completion* of) : operations(what), completion(of) {}

    std::span<rdma::Operation> operations;
    rdma::Completion* completion;
    bool is_carried = false;
    Status status;
  };
  Status CountAndCarry(std::span<rdma::Operation> operations) {
    const rdma::Verb first = operations[0].verb;
    (first == rdma::Verb::kRead ? reads_ : first == rdma::Verb::kCompareAndSwap ? locks_ : changes_) += 1;
    return Carry(operations);
  }

  bool is_held_ = false;
  std::deque<Posting> waiting_;
  size_t reads_ = 0;
  size_t locks_ = 0;
  size_t changes_ = 0;
};

}  // namespace gannet::ycsb
