#include "rdma/sim/sim_channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::rdma::sim {
namespace {

// Flights and calls in flight are in doubly linked lists of their channel.
template <class Record>
void PushFront(Record** head, Record* record) {
  record->previous = nullptr;
  record->next = *head;
  if (*head != nullptr) (*head)->previous = record;
  *head = record;
}

template <class Record>
void Unlink(Record** head, Record* record) {
  (record->previous == nullptr ? *head : record->previous->next) = record->next;
  if (record->next != nullptr) record->next->previous = record->previous;
}

}  // namespace

void DeadlineTimer::Happen() {
  if (channel != nullptr) channel->DeadlineCame(this);
  core->timers.Return(this);
}

SimChannel::SimChannel(FabricCore* core, Attachment* own, uint16_t index)
    : Channel(own->id, index, own->memory.data(), core->capabilities()),
      core_(core),
      own_(own),
      routes_(static_cast<size_t>(core->options().num_nodes)) {
  own_->used_channels[index] = true;
  own_->channels[index] = this;
}

SimChannel::~SimChannel() {
  for (Flight* flight = flights_; flight != nullptr; flight = flight->next) flight->Forget();
  for (CallFlight* call = calls_; call != nullptr;) std::exchange(call, call->next)->Forget();
  if (timer_ != nullptr) timer_->channel = nullptr;
  own_->channels[index()] = nullptr;
  own_->used_channels[index()] = false;
}

bool SimChannel::Admits(const Operation& operation) const {
  return IsAllowed(operation, core_->range()) && own_->there() && core_->Alive(operation.remote.node());
}

bool SimChannel::Submit(std::span<Operation> operations, Completion* completion) {
  if (operations.empty()) return true;
  Charge(Cost::kPostVerb, operations.size());
  for (const Operation& operation : operations) {
    if (!Admits(operation)) [[unlikely]] {
      completion->status = ExplainRefusal(operation, core_->range(), node(), own_->there());
      return true;
    }
    if (!core_->IsConnected(operation.remote.node(), operation.connection)) {
      completion->status = ConnectionChanged(operation.remote.node());
      return true;
    }
    CountVerb(operation, &counters_);
  }
  ++counters_.round_trips;
  Batch* batch = core_->batches.Take();
  batch->completion = completion;
  batch->missing = operations.size();
  batch->failure = Failure::kNone;
  batch->luck = core_->DrawLuck();
  for (Operation& operation : operations) {
    Flight* flight = core_->flights.Take(core_);
    PushFront(&flights_, flight);
    flight->Depart(this, &operation, own_, core_->current(operation.remote.node()), batch);
  }
  return false;
}

bool SimChannel::SubmitCall(const CallRequest& call, Completion* completion) {
  Charge(Cost::kPostVerb);
  if (!own_->there()) {
    completion->status = absl::UnavailableError(absl::StrCat("CALL by node ", node(), ", which is dead"));
    return true;
  }
  if (call.node >= core_->options().num_nodes) {
    completion->status = absl::InvalidArgumentError(
        absl::StrCat("CALL to node ", call.node, ": the cluster has ", core_->options().num_nodes, " nodes"));
    return true;
  }
  if (call.request.size() > kMaxMessageBytes) {
    completion->status = absl::InvalidArgumentError(absl::StrCat(
        "CALL with a request of ", call.request.size(), " bytes; at most ", kMaxMessageBytes, " fit in a message"));
    return true;
  }
  if (!core_->Alive(call.node)) {
    completion->status = absl::UnavailableError(absl::StrCat("CALL to node ", call.node, ", which is not there"));
    return true;
  }
  if (!core_->IsConnected(call.node, call.connection)) {
    completion->status = ConnectionChanged(call.node);
    return true;
  }
  ++counters_.calls;
  ++counters_.round_trips;
  counters_.bytes_out += call.request.size();
  CallFlight* flight = core_->calls.Take(core_);
  PushFront(&calls_, flight);
  flight->Depart(this, call, completion, own_, core_->current(call.node));
  ArmTimer(flight->deadline());
  return false;
}

size_t SimChannel::Poll() {
  Simulation& simulation = core_->simulation();
  if (simulation.current_fiber() != poller_) [[unlikely]]
    AdoptPoller(simulation.current_fiber());
  if (done_.empty()) return 0;
  const uint64_t now = simulation.now();
  // The node's clock has an offset, and may run at another rate.
  const uint64_t node_now = simulation.NowNanos();
  while (!done_.empty() && done_.front().visible_at <= now) {
    const Done done = done_.pop_front();
    done.completion->done_after = done.completion->done_before = node_now - (now - done.visible_at);
    delivering_.push_back(done.completion);
  }
  if (!done_.empty()) simulation.WakeIdleFiber(poller_, done_.front().visible_at);
  if (delivering_.empty()) return 0;
  Charge(Cost::kCompletion, delivering_.size());
  // A resumed coroutine may submit, and even poll.
  std::vector<Completion*> finished = std::exchange(delivering_, {});
  for (Completion* completion : finished) Deliver(completion);
  const size_t count = finished.size();
  finished.clear();
  delivering_ = std::move(finished);
  return count;
}

void SimChannel::AdoptPoller(uint64_t fiber) {
  poller_ = fiber;
  core_->simulation().BindCurrentTo(node());
}

void SimChannel::Complete(Completion* completion, uint64_t visible_at) {
  // Completions are seen in order: a later one is not visible earlier.
  if (!done_.empty()) visible_at = std::max(visible_at, done_.at(done_.size() - 1).visible_at);
  done_.push_back({completion, visible_at});
  if (poller_ != kNobody) core_->simulation().WakeIdleFiber(poller_, visible_at);
}

void SimChannel::Returned(Flight* flight, uint64_t visible_at) {
  Unlink(&flights_, flight);
  Batch* batch = flight->batch();
  if (flight->failure() != Failure::kNone && batch->failure == Failure::kNone) {
    batch->failure = flight->failure();
    batch->failed_verb = flight->verb();
    batch->failed_node = flight->target();
  }
  if (--batch->missing > 0) return;
  batch->completion->status = batch->ToStatus();
  Complete(batch->completion, visible_at);
  core_->batches.Return(batch);
}

void SimChannel::Returned(CallFlight* call, uint64_t visible_at) {
  Unlink(&calls_, call);
  Complete(call->completion(), visible_at);
  call->Forget();
}

void SimChannel::GiveUp(CallFlight* call, Status status) {
  Unlink(&calls_, call);
  call->completion()->status = std::move(status);
  Complete(call->completion(), core_->now());
  call->Forget();
}

void SimChannel::FailCallsTo(const Attachment* gone) {
  for (CallFlight* call = calls_; call != nullptr;) {
    CallFlight* const each = std::exchange(call, call->next);
    if (each->server() != gone) continue;
    GiveUp(each, absl::UnavailableError(
                     absl::StrCat("node ", gone->id, " died or left during the call; it may have run or not")));
  }
}

void SimChannel::ArmTimer(uint64_t deadline) {
  if (timer_ != nullptr && timer_->at <= deadline) return;
  if (timer_ != nullptr) timer_->channel = nullptr;
  timer_ = core_->timers.Take(core_);
  timer_->channel = this;
  timer_->at = deadline;
  core_->simulation().Post(deadline, timer_);
}

void SimChannel::DeadlineCame(const DeadlineTimer* timer) {
  if (timer != timer_) return;
  timer_ = nullptr;
  const uint64_t now = core_->now();
  uint64_t next = UINT64_MAX;
  for (CallFlight* call = calls_; call != nullptr;) {
    CallFlight* const each = std::exchange(call, call->next);
    if (each->deadline() > now) {
      next = std::min(next, each->deadline());
      continue;
    }
    GiveUp(each, absl::DeadlineExceededError(
                     absl::StrCat("node ", each->server()->id, " did not answer a call of method ", each->method(),
                                  " in ", absl::FormatDuration(each->call().timeout), "; it may have run or not")));
  }
  if (next != UINT64_MAX) ArmTimer(next);
}

}  // namespace gannet::rdma::sim
