// A fabric that loses one completion: the n-th verb batch or call of one channel fails, with or without its effect. For
// tests of how transactions handle that; everything else goes to the underlying fabric.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/coro/task.h"
#include "rdma/fabric.h"
#include "rdma/relay.h"

namespace gannet::txn {

enum class Loss {
  kNothing,  // loses nothing; for `when_fired`
  kNotDone,
  kDone,
  kHalf,  // batch: only its first half is done; call: as kDone
  kLate,  // call: it is done some time after the caller gave up; batch: as kDone
};

// A channel that other threads compare with theirs while the test changes it.
class WatchedChannel {
 public:
  WatchedChannel(const rdma::Channel* channel = nullptr) : channel_(channel) {}  // NOLINT: implicit, like a pointer
  WatchedChannel& operator=(const WatchedChannel& other) {
    channel_.store(other.channel_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return *this;
  }
  bool Is(const rdma::Channel* channel) const { return channel_.load(std::memory_order_relaxed) == channel; }

 private:
  std::atomic<const rdma::Channel*> channel_;
};

// Says which completion is lost. Set by the test, on the thread of that channel: the threads of other channels look
// only at `channel`.
struct LossPlan {
  WatchedChannel channel = nullptr;  // null: none
  int skip = 0;
  Loss loss = Loss::kNotDone;
  bool fired = false;
  std::function<void()> when_fired = nullptr;

  bool Strikes(const rdma::Channel* at) {
    if (!channel.Is(at) || fired || skip-- > 0) return false;
    fired = true;
    if (when_fired != nullptr) when_fired();
    return loss != Loss::kNothing;
  }
};

class LossyChannel : public rdma::RelayChannel {
 public:
  LossyChannel(std::unique_ptr<rdma::Channel> inner, std::byte* memory, const rdma::Capabilities& capabilities,
               LossPlan* plan)
      : rdma::RelayChannel(std::move(inner), memory, capabilities), plan_(plan) {}

  size_t Poll() override {
    for (LateCall& late : late_) {
      if (late.started || NowNanos() < late.at) continue;
      late.started = true;
      Start(Serve(&late));
    }
    return rdma::RelayChannel::Poll();
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
    return Complete(Relay(operations, lost), completion);
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
    return Complete(RelayCall(call, completion, lost), completion);
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

  coro::Task<Status> Relay(std::span<rdma::Operation> operations, bool lost) {
    Status status = co_await inner().Post(operations);
    if (!lost) co_return status;
    for (rdma::Operation& operation : operations) operation.result = 0;
    co_return Lost();
  }

  coro::Task<Status> RelayCall(rdma::CallRequest call, rdma::Completion* completion, bool lost) {
    const StatusOr<size_t> bytes =
        co_await inner().Call(call.node, call.method, call.request, call.response, call.timeout, call.connection);
    if (bytes.ok()) completion->response_bytes = *bytes;
    if (lost) co_return absl::DeadlineExceededError("lost by the test");
    co_return bytes.status();
  }

  coro::Task<void> Serve(LateCall* late) {
    // No caller receives the result.
    const StatusOr<size_t> unheard =
        co_await inner().Call(late->call.node, late->call.method, late->request, late->response, late->call.timeout);
    late->response.clear();
  }

  LossPlan* plan_;
  std::list<LateCall> late_;
};

class LossyFabric : public rdma::RelayFabric {
 public:
  // Both must outlive this.
  LossyFabric(rdma::Fabric* inner, LossPlan* plan)
      : rdma::RelayFabric(
            inner, inner->capabilities(), [inner, plan](std::unique_ptr<rdma::Channel> channel, std::byte* memory) {
              return std::make_unique<LossyChannel>(std::move(channel), memory, inner->capabilities(), plan);
            }) {}
};

}  // namespace gannet::txn
