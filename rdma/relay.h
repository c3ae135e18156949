// A fabric in front of another one, whose nodes forward everything, but whose channels are wrapped: by tests that make
// it misbehave, and by comparisons in which clients post more.
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

namespace gannet::rdma {

// A channel in front of `inner`. A derived class decides in Submit and SubmitCall what happens to verbs and calls.
class RelayChannel : public Channel {
 public:
  size_t Poll() override { return inner_->Poll(); }

 protected:
  RelayChannel(std::unique_ptr<Channel> inner, std::byte* memory, const Capabilities& capabilities)
      : Channel(inner->node(), inner->index(), memory, capabilities), inner_(std::move(inner)) {}

  Channel& inner() { return *inner_; }

  // Runs `task`, which sets the completion except for its status; the status is the task's result. Returns what Submit
  // and SubmitCall return: true if it is done.
  bool Complete(coro::Task<Status> task, Completion* completion) {
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
  static coro::Task<void> Finish(coro::Task<Status> task, Completion* completion, std::shared_ptr<bool> suspended) {
    completion->status = co_await task;
    if (*suspended) Deliver(completion);
  }

  std::unique_ptr<Channel> inner_;
  std::list<coro::Task<void>> running_;
};

// Makes the channel in front of `inner`, a channel of the node whose memory begins at `memory`.
using WrapChannel = std::function<std::unique_ptr<Channel>(std::unique_ptr<Channel> inner, std::byte* memory)>;

class RelayNode final : public ForwardingNode {
 public:
  RelayNode(std::unique_ptr<Node> inner, WrapChannel wrap) : ForwardingNode(std::move(inner)), wrap_(std::move(wrap)) {}

  StatusOr<std::unique_ptr<Channel>> OpenChannel() override {
    StatusOr<std::unique_ptr<Channel>> channel = inner().OpenChannel();
    if (!channel.ok()) return channel.status();
    return wrap_(*std::move(channel), inner().memory().data());
  }

 private:
  WrapChannel wrap_;
};

class RelayFabric : public ForwardingFabric {
 public:
  // `inner` must outlive this. `capabilities`: what this fabric reports.
  RelayFabric(Fabric* inner, const Capabilities& capabilities, WrapChannel wrap)
      : ForwardingFabric(inner), capabilities_(capabilities), wrap_(std::move(wrap)) {}

  const Capabilities& capabilities() const override { return capabilities_; }
  StatusOr<std::unique_ptr<Node>> Attach(NodeId id) override {
    StatusOr<std::unique_ptr<Node>> node = inner().Attach(id);
    if (!node.ok()) return node.status();
    return std::unique_ptr<Node>(std::make_unique<RelayNode>(*std::move(node), wrap_));
  }

 private:
  const Capabilities capabilities_;
  const WrapChannel wrap_;
};

}  // namespace gannet::rdma
