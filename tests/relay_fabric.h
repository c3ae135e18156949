// A fabric in front of another one, for tests that make it misbehave: its nodes forward everything, but the test wraps
// their channels.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <utility>

#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/forwarding.h"

namespace gannet {

// A channel in front of `inner`. A derived class decides in Submit and SubmitCall what happens to verbs and calls.
class RelayChannel : public rdma::Channel {
 public:
  size_t Poll() override { return inner_->Poll(); }

 protected:
  RelayChannel(std::unique_ptr<rdma::Channel> inner, std::byte* memory, const rdma::Capabilities& capabilities)
      : Channel(inner->node(), inner->index(), memory, capabilities), inner_(std::move(inner)) {}

  rdma::Channel& inner() { return *inner_; }

  // Runs `task`, which sets the completion except for its status; the status is the task's result. Returns what Submit
  // and SubmitCall return: true if it is done.
  bool Complete(coro::Task<Status> task, rdma::Completion* completion) {
    auto suspended = std::make_shared<bool>(false);
    const coro::Task<void>* const started = Start(Finish(std::move(task), completion, suspended));
    if (started->done()) return true;
    *suspended = true;
    return false;
  }

  // Starts the task, which this object owns.
  coro::Task<void>* Start(coro::Task<void> task) {
    running_.remove_if([](const coro::Task<void>& each) { return each.done(); });
    running_.push_back(std::move(task));
    coro::Task<void>* const started = &running_.back();
    started->handle().resume();
    return started;
  }

 private:
  static coro::Task<void> Finish(coro::Task<Status> task, rdma::Completion* completion,
                                 std::shared_ptr<bool> suspended) {
    completion->status = co_await task;
    if (*suspended) rdma::Deliver(completion);
  }

  std::unique_ptr<rdma::Channel> inner_;
  std::list<coro::Task<void>> running_;
};

// Makes the channel in front of `inner`, a channel of the node whose memory begins at `memory`.
using WrapChannel =
    std::function<std::unique_ptr<rdma::Channel>(std::unique_ptr<rdma::Channel> inner, std::byte* memory)>;

class RelayNode final : public rdma::ForwardingNode {
 public:
  RelayNode(std::unique_ptr<rdma::Node> inner, WrapChannel wrap)
      : ForwardingNode(std::move(inner)), wrap_(std::move(wrap)) {}

  StatusOr<std::unique_ptr<rdma::Channel>> OpenChannel() override {
    StatusOr<std::unique_ptr<rdma::Channel>> channel = inner().OpenChannel();
    if (!channel.ok()) return channel.status();
    return wrap_(*std::move(channel), inner().memory().data());
  }

 private:
  WrapChannel wrap_;
};

class RelayFabric : public rdma::ForwardingFabric {
 public:
  // `inner` must outlive this. `capabilities`: what this fabric reports.
  RelayFabric(rdma::Fabric* inner, const rdma::Capabilities& capabilities, WrapChannel wrap)
      : ForwardingFabric(inner), capabilities_(capabilities), wrap_(std::move(wrap)) {}

  const rdma::Capabilities& capabilities() const override { return capabilities_; }
  StatusOr<std::unique_ptr<rdma::Node>> Attach(rdma::NodeId id) override {
    StatusOr<std::unique_ptr<rdma::Node>> node = inner().Attach(id);
    if (!node.ok()) return node.status();
    return std::unique_ptr<rdma::Node>(std::make_unique<RelayNode>(*std::move(node), wrap_));
  }

 private:
  const rdma::Capabilities capabilities_;
  const WrapChannel wrap_;
};

}  // namespace gannet
