// A fabric that loses one completion: the n-th verb batch or call of one channel fails, done or not. For tests of what
// transactions make of that; all else goes to the fabric beneath.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rdma/base/clock.h"
#include "rdma/coro/task.h"
#include "rdma/fabric.h"

namespace gannet::txn {

enum class Loss {
  kNothing,  // is lost; for `when_fired`
  kNotDone,
  kDone,
  kHalf,  // of a batch: only its first half is done; of a call: as kDone
  kLate,  // of a call: it is done, a while after it was given up; of a batch: as kDone
};

// Which one. Armed by the test.
struct LossPlan {
  const rdma::Channel* channel = nullptr;  // null: none
  int skip = 0;
  Loss loss = Loss::kNotDone;
  bool fired = false;
  std::function<void()> when_fired = nullptr;

  bool Strikes(const rdma::Channel* at) {
    if (at != channel || fired || skip-- > 0) return false;
    fired = true;
    if (when_fired != nullptr) when_fired();
    return loss != Loss::kNothing;
  }
};

class LossyChannel : public rdma::Channel {
 public:
  LossyChannel(std::unique_ptr<rdma::Channel> inner, std::byte* memory, LossPlan* plan)
      : Channel(inner->node(), inner->index(), memory, inner->capabilities()), inner_(std::move(inner)), plan_(plan) {}

  size_t Poll() override {
    for (LateCall& late : late_) {
      if (late.started || NowNanos() < late.at) continue;
      late.started = true;
      Start(Serve(&late));
    }
    return inner_->Poll();
  }

 protected:
  bool Submit(std::span<rdma::Operation> operations, rdma::Completion* completion) override {
    const bool lost = plan_->Strikes(this);
    const bool half = lost && plan_->loss == Loss::kHalf;
    if (lost && (plan_->loss == Loss::kNotDone || (half && operations.size() < 2))) {
      completion->status = Lost();
      return true;
    }
    if (half) operations = operations.first(operations.size() / 2);
    auto suspended = std::make_shared<bool>(false);
    return Finished(Start(Relay(operations, completion, lost, suspended)), suspended);
  }

  bool SubmitCall(const rdma::CallRequest& call, rdma::Completion* completion) override {
    const bool lost = plan_->Strikes(this);
    if (lost && (plan_->loss == Loss::kNotDone || plan_->loss == Loss::kLate)) {
      if (plan_->loss == Loss::kLate) {
        late_.push_back({.at = NowNanos() + kLateNanos, .call = call, .request = {}, .response = {}});
        late_.back().request.assign(call.request.begin(), call.request.end());
        late_.back().response.resize(call.response.size());
      }
      completion->status = absl::DeadlineExceededError("lost by the test");
      return true;
    }
    auto suspended = std::make_shared<bool>(false);
    return Finished(Start(RelayCall(call, completion, lost, suspended)), suspended);
  }

 private:
  static constexpr uint64_t kLateNanos = 300'000;

  struct LateCall {
    uint64_t at;
    rdma::CallRequest call;
    std::vector<std::byte> request;
    std::vector<std::byte> response;
    bool started = false;
  };

  static Status Lost() { return absl::UnavailableError("lost by the test"); }

  // The task, which this owns.
  coro::Task<void>* Start(coro::Task<void> task) {
    running_.remove_if([](const coro::Task<void>& each) { return each.done(); });
    running_.push_back(std::move(task));
    coro::Task<void>* const started = &running_.back();
    started->handle().resume();
    return started;
  }
  static bool Finished(const coro::Task<void>* task, const std::shared_ptr<bool>& suspended) {
    if (task->done()) return true;
    *suspended = true;
    return false;
  }

  coro::Task<void> Relay(std::span<rdma::Operation> operations, rdma::Completion* completion, bool lost,
                         std::shared_ptr<bool> suspended) {
    Status status = co_await inner_->Post(operations);
    if (lost) {
      status = Lost();
      for (rdma::Operation& operation : operations) operation.result = 0;
    }
    completion->status = std::move(status);
    if (*suspended) completion->waiter.resume();
  }

  coro::Task<void> RelayCall(rdma::CallRequest call, rdma::Completion* completion, bool lost,
                             std::shared_ptr<bool> suspended) {
    const StatusOr<size_t> bytes =
        co_await inner_->Call(call.node, call.method, call.request, call.response, call.timeout, call.connection);
    completion->status = bytes.status();
    if (lost) completion->status = absl::DeadlineExceededError("lost by the test");
    if (bytes.ok()) completion->response_bytes = *bytes;
    if (*suspended) completion->waiter.resume();
  }

  coro::Task<void> Serve(LateCall* late) {
    // Nobody hears what it says.
    const StatusOr<size_t> unheard =
        co_await inner_->Call(late->call.node, late->call.method, late->request, late->response, late->call.timeout);
    late->response.clear();
  }

  std::unique_ptr<rdma::Channel> inner_;
  LossPlan* plan_;
  std::list<LateCall> late_;
  std::list<coro::Task<void>> running_;
};

class LossyNode : public rdma::Node {
 public:
  LossyNode(std::unique_ptr<rdma::Node> inner, LossPlan* plan) : inner_(std::move(inner)), plan_(plan) {}

  rdma::NodeId id() const override { return inner_->id(); }
  std::span<std::byte> memory() override { return inner_->memory(); }
  uint64_t heap_offset() const override { return inner_->heap_offset(); }
  uint64_t writable_offset() const override { return inner_->writable_offset(); }
  StatusOr<std::unique_ptr<rdma::Channel>> OpenChannel() override {
    StatusOr<std::unique_ptr<rdma::Channel>> channel = inner_->OpenChannel();
    if (!channel.ok()) return channel.status();
    return std::unique_ptr<rdma::Channel>(
        std::make_unique<LossyChannel>(*std::move(channel), inner_->memory().data(), plan_));
  }
  void Handle(rdma::MethodId method, rdma::Handler handler) override { inner_->Handle(method, std::move(handler)); }
  Status Serve(int threads) override { return inner_->Serve(threads); }
  size_t ServePending(size_t limit) override { return inner_->ServePending(limit); }
  uint64_t ConnectionTo(rdma::NodeId peer) const override { return inner_->ConnectionTo(peer); }
  bool CutOff(rdma::NodeId peer, uint64_t connection) override { return inner_->CutOff(peer, connection); }
  void Shutdown() override { inner_->Shutdown(); }

 private:
  std::unique_ptr<rdma::Node> inner_;
  LossPlan* plan_;
};

class LossyFabric : public rdma::Fabric {
 public:
  // Both must outlive this.
  LossyFabric(rdma::Fabric* inner, LossPlan* plan) : inner_(inner), plan_(plan) {}

  const rdma::Capabilities& capabilities() const override { return inner_->capabilities(); }
  int num_nodes() const override { return inner_->num_nodes(); }
  StatusOr<std::unique_ptr<rdma::Node>> Attach(rdma::NodeId id) override {
    StatusOr<std::unique_ptr<rdma::Node>> node = inner_->Attach(id);
    if (!node.ok()) return node.status();
    return std::unique_ptr<rdma::Node>(std::make_unique<LossyNode>(*std::move(node), plan_));
  }
  bool Alive(rdma::NodeId id) const override { return inner_->Alive(id); }
  Status WaitForAll(absl::Duration timeout) override { return inner_->WaitForAll(timeout); }

 private:
  rdma::Fabric* inner_;
  LossPlan* plan_;
};

}  // namespace gannet::txn
