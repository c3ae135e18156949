#include "txn/durable/start_together.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/coro/worker.h"
#include "base/stop.h"
#include "base/thread.h"

namespace gannet::txn {
namespace {

using Stage = EpochWords::Stage;
using Refusal = EpochWords::Refusal;

constexpr uint64_t kLookAtStagesEveryNanos = 200'000;
// How long a node that refuses waits for a node that has not come to its own outcome.
constexpr absl::Duration kTellWithin = absl::Seconds(5);

class Starter {
 public:
  Starter(rdma::Fabric& fabric, rdma::Node& node, EpochWords& words, rdma::Channel* channel,
          const std::atomic<bool>* stop)
      : fabric_(fabric), self_(node.id()), words_(words), channel_(channel), stop_(stop) {
    worker_.AddPoller([channel] { return channel->Poll(); });
  }

  // Returns nothing if all nodes accept.
  std::optional<Refusal> AwaitAcceptance(absl::Duration timeout);
  // *run gets that of node 0. All nodes accept.
  Status AgreeOnRun(log::Identity* run);
  // Waits until every other node has refused, too, has begun, or is gone.
  void AwaitHeard(absl::Duration timeout);

 private:
  // Returns kNone also if the node is not alive.
  Stage Look(rdma::NodeId node) {
    if (!fabric_.Alive(node)) return Stage::kNone;
    return words_.StageOf(node, channel_, &worker_).value_or(Stage::kNone);
  }
  Refusal WithoutLog(rdma::NodeId node) const {
    return {self_, absl::FailedPreconditionError(
                       absl::StrCat("node ", node, " was opened without a directory, and this one with one: give all ",
                                    "nodes the same DatabaseOptions::directory"))};
  }

  rdma::Fabric& fabric_;
  const rdma::NodeId self_;
  EpochWords& words_;
  rdma::Channel* const channel_;
  const std::atomic<bool>* const stop_;
  coro::Worker worker_;
};

std::optional<Refusal> Starter::AwaitAcceptance(absl::Duration timeout) {
  uint64_t deadline = NowNanos() + NanosOf(timeout);
  for (;;) {
    std::string missing;
    bool reads = false;
    for (int i = 0; i < fabric_.num_nodes(); ++i) {
      const auto node = static_cast<rdma::NodeId>(i);
      if (node == self_) continue;
      switch (Look(node)) {
        case Stage::kRefuses:
          // If the node has gone in the meantime, it may come back.
          if (StatusOr<Refusal> refusal = words_.RefusalOf(node, channel_, &worker_); refusal.ok()) return *refusal;
          absl::StrAppend(&missing, " ", i);
          break;
        case Stage::kNoLog:
          return WithoutLog(node);
        case Stage::kNone:
          absl::StrAppend(&missing, " ", i);
          break;
        case Stage::kReads:
          reads = true;
          break;
        case Stage::kAccepts:
        case Stage::kLogs:
          break;
      }
    }
    if (!reads && missing.empty()) return std::nullopt;
    if (Status go_on = CheckStop(stop_, "this node waited for the others to recover"); !go_on.ok()) {
      return Refusal{self_, std::move(go_on)};
    }
    const uint64_t now = NowNanos();
    if (reads) {
      deadline = now + NanosOf(timeout);
    } else if (now >= deadline) {
      return Refusal{self_, absl::DeadlineExceededError(absl::StrCat(
                                "after ", absl::FormatDuration(timeout), " these nodes have not been started:", missing,
                                ". A cluster with a directory starts together; no node has begun"))};
    }
    SleepForNanos(kLookAtStagesEveryNanos);
  }
}

Status Starter::AgreeOnRun(log::Identity* run) {
  if (self_ == 0) return absl::OkStatus();
  StatusOr<log::Identity> first = words_.RunOf(0, channel_, &worker_);
  if (!first.ok()) return first.status();
  *run = *first;
  return absl::OkStatus();
}

void Starter::AwaitHeard(absl::Duration timeout) {
  uint64_t deadline = NowNanos() + NanosOf(timeout);
  for (;;) {
    bool waits = false;
    bool reads = false;
    for (int i = 0; i < fabric_.num_nodes(); ++i) {
      const auto node = static_cast<rdma::NodeId>(i);
      if (node == self_ || !fabric_.Alive(node)) continue;
      const Stage stage = Look(node);
      reads |= stage == Stage::kReads;
      waits |= stage == Stage::kNone || stage == Stage::kAccepts;
    }
    const uint64_t now = NowNanos();
    if (reads) deadline = now + NanosOf(timeout);
    if (IsStopRequested(stop_) || (!reads && (!waits || now >= deadline))) return;
    SleepForNanos(kLookAtStagesEveryNanos);
  }
}

}  // namespace

Status StartTogether(rdma::Fabric& fabric, rdma::Node& node, EpochWords& words, const Status& own,
                     absl::Duration wait_for_others, const std::atomic<bool>* stop, log::Identity* run) {
  *run = log::Identity::Random();
  if (fabric.num_nodes() == 1) return own;
  const StatusOr<std::unique_ptr<rdma::Channel>> channel = node.OpenChannel();
  if (!channel.ok()) return own.ok() ? channel.status() : own;
  Starter starter(fabric, node, words, channel->get(), stop);
  std::optional<Refusal> refusal;
  if (own.ok()) {
    words.SetRun(*run);
    words.SetStage(Stage::kAccepts);
    refusal = starter.AwaitAcceptance(wait_for_others);
    if (!refusal.has_value()) return starter.AgreeOnRun(run);
  } else {
    refusal = Refusal{node.id(), own};
  }
  words.Refuse(*refusal);
  starter.AwaitHeard(std::min(wait_for_others, kTellWithin));
  if (refusal->node == node.id()) return refusal->why;
  return Status(refusal->why.code(), absl::StrCat("node ", refusal->node, " refuses to start, and so does this node: ",
                                                  absl::string_view(refusal->why.message())));
}

}  // namespace gannet::txn
