#include "rdma/sim/call_flight.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rdma/sim/sim_channel.h"

namespace gannet::rdma::sim {
namespace {

constexpr size_t kMaxStatusMessageBytes = 1024;

}  // namespace

void CallFlight::Depart(SimChannel* channel, const CallRequest& call, Completion* completion, Attachment* from,
                        Attachment* to) {
  channel_ = channel;
  connection_ = channel->index();
  completion_ = completion;
  call_ = call;
  from_ = from;
  to_ = to;
  vanished_ = false;
  late_ = core_->SpreadNanosOf(from->id, to->id, core_->DrawLuck());
  request_.assign(call.request.begin(), call.request.end());
  const int64_t timeout = absl::ToInt64Nanoseconds(call.timeout);  // saturates
  deadline_ = core_->now() + static_cast<uint64_t>(std::max<int64_t>(timeout, 0));
  set_label(0x40000000u ^ static_cast<uint32_t>(call.method) << 8 ^ from->id);
  Nic& nic = core_->nic(from->id);
  const uint64_t now = ToPicos(core_->now());
  departed_ = ToNanos(from->id == to->id ? nic.SendToSelf(now) : nic.Send(now, request_.size()));
  core_->CountDeparture(from, departed_);
  const bool lost = core_->cut(from->id, to->id) || core_->simulation().Chance(core_->faults().lost_request);
  if (lost) return Vanish();
  Post(departed_ + core_->WireNanos(from->id, to->id) + core_->DrawDelay(), Stage::kArrive);
}

void CallFlight::Post(uint64_t at, Stage stage) {
  stage_ = stage;
  core_->simulation().Post(at, this);
}

void CallFlight::Happen() {
  switch (stage_) {
    case Stage::kArrive:
      return Arrive();
    case Stage::kDeliver:
      return Deliver();
    case Stage::kReturn:
      return Return();
  }
}

void CallFlight::Arrive() {
  const bool never_sent = from_->phase == Attachment::Phase::kDead && departed_ > from_->gone_at;
  if (never_sent || !to_->there()) return Vanish();
  Nic& nic = core_->nic(to_->id);
  const uint64_t now = ToPicos(core_->now());
  const uint64_t here = from_->id == to_->id ? now : nic.Receive(now, request_.size());
  Post(ToNanos(nic.Serve(here)), Stage::kDeliver);
}

void CallFlight::Deliver() {
  if (!to_->there()) return Vanish();
  if (core_->simulation().tracing()) {
    core_->simulation().Trace(absl::StrCat("CALL of method ", call_.method, " with ", request_.size(),
                                           " bytes by node ", from_->id, " is at node ", to_->id));
  }
  if (core_->options().serving != Serving::kShared && !to_->queues.empty()) return DeliverToServerOf(*from_);
  to_->requests.push_back(this);
  WakeServer();
}

// Connections are given to the server threads in turn.
void CallFlight::DeliverToServerOf(const Attachment& caller) {
  const uint32_t connection = uint32_t{caller.id} << 16 | connection_;
  const size_t in_turn = to_->connections.size() % to_->queues.size();
  Attachment::ServerQueue& queue = *to_->queues[to_->connections.try_emplace(connection, in_turn).first->second];
  queue.connected = true;
  queue.requests.push_back(this);
  core_->simulation().Unpark(&queue, 1);
}

void CallFlight::WakeServer() {
  Simulation& simulation = core_->simulation();
  if (to_->parked_servers > 0) return simulation.Unpark(&to_->requests, 1);
  std::vector<uint64_t>& workers = to_->serving_workers;
  if (workers.empty()) return;
  // All are busy: a worker that is about to become idle must check again.
  if (!to_->observer_serves && !simulation.AnyIdle(to_->id)) return simulation.WakeIdleOf(to_->id);
  for (size_t i = 0; i < workers.size(); ++i) {
    const uint64_t worker = workers[to_->next_worker++ % workers.size()];
    if (simulation.IsIdle(worker)) return simulation.WakeIdleFiber(worker);
  }
  for (const uint64_t worker : workers) simulation.WakeIdleFiber(worker);
}

void CallFlight::Run() {
  Charge(Cost::kHandleCall);
  MessageBuffer* scratch = core_->scratch.Take();
  const StatusOr<size_t> bytes = RunHandler(scratch->room());
  code_ = bytes.status().code();
  if (bytes.ok()) {
    const std::span<const std::byte> written = scratch->room().first(*bytes);
    response_.assign(written.begin(), written.end());
  } else {
    const absl::string_view message = bytes.status().message().substr(0, kMaxStatusMessageBytes);
    const auto bytes_of_message = std::as_bytes(std::span(message.data(), message.size()));
    response_.assign(bytes_of_message.begin(), bytes_of_message.end());
  }
  core_->scratch.Return(scratch);
  Respond();
}

StatusOr<size_t> CallFlight::RunHandler(std::span<std::byte> response) {
  const auto handler = to_->handlers->find(call_.method);
  if (handler == to_->handlers->end()) {
    return absl::UnimplementedError(absl::StrCat("node ", to_->id, " has no handler for method ", call_.method));
  }
  StatusOr<size_t> bytes = handler->second(from_->id, request_, response);
  GANNET_CHECK(!bytes.ok() || *bytes <= response.size(), "the handler of method %d says it wrote %d of %d bytes",
               call_.method, *bytes, response.size());
  return bytes;
}

void CallFlight::Respond() {
  if (!to_->there() || core_->simulation().Chance(core_->faults().lost_response)) return Vanish();
  if (core_->cut(to_->id, from_->id)) return Vanish();
  Nic& nic = core_->nic(to_->id);
  const uint64_t now = ToPicos(core_->now());
  const uint64_t left = ToNanos(from_->id == to_->id ? nic.SendToSelf(now) : nic.Send(now, response_.size()));
  Post(left + core_->WireNanos(to_->id, from_->id) + late_ + core_->DrawDelay(), Stage::kReturn);
}

void CallFlight::Return() {
  if (channel_ == nullptr) return Vanish();
  Nic& nic = core_->nic(from_->id);
  const uint64_t now = ToPicos(core_->now());
  const uint64_t here = from_->id == to_->id ? now : nic.Receive(now, response_.size());
  HandOver();
  channel_->Returned(this, ToNanos(nic.Serve(here)));  // which forgets this
  Vanish();
}

void CallFlight::HandOver() {
  if (from_->phase == Attachment::Phase::kDead) {
    completion_->status = absl::UnavailableError(absl::StrCat("CALL by node ", from_->id, ", which is dead"));
    return;
  }
  if (code_ != absl::StatusCode::kOk) {
    completion_->status =
        Status(code_, absl::string_view(reinterpret_cast<const char*>(response_.data()), response_.size()));
  } else if (response_.size() > call_.response.size()) {
    completion_->status =
        absl::ResourceExhaustedError(absl::StrCat("the response of method ", call_.method, " has ", response_.size(),
                                                  " bytes; the caller's buffer holds ", call_.response.size()));
  } else {
    if (!response_.empty()) std::memcpy(call_.response.data(), response_.data(), response_.size());
    completion_->response_bytes = response_.size();
  }
  channel_->CountResponse(response_.size());
}

void CallFlight::Vanish() {
  vanished_ = true;
  if (channel_ == nullptr) core_->calls.Return(this);
}

void CallFlight::Forget() {
  channel_ = nullptr;
  if (vanished_) core_->calls.Return(this);
}

}  // namespace gannet::rdma::sim
