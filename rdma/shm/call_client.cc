#include "rdma/shm/call_client.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "rdma/shm/futex.h"
#include "rdma/verb_check.h"

namespace gannet::rdma::shm {
namespace {

constexpr uint64_t kReclaimIntervalNs = 10'000'000;

Status Gone(NodeId node) {
  return absl::UnavailableError(absl::StrCat("node ", node, " died or left during the call; it may have run or not"));
}

Status TimedOut(const CallRequest& call) {
  return absl::DeadlineExceededError(absl::StrCat("node ", call.node, " did not answer a call of method ", call.method,
                                                  " in ", absl::FormatDuration(call.timeout),
                                                  "; it may have run or not"));
}

uint64_t DeadlineOf(absl::Duration timeout) {
  const int64_t ns = absl::ToInt64Nanoseconds(timeout);  // saturates
  const uint64_t now = NowNanos();
  return ns <= 0 ? now : now + static_cast<uint64_t>(ns);
}

}  // namespace

CallClient::CallClient(std::shared_ptr<Region> region, NodeId node, uint16_t index, VerbCounters* counters)
    : region_(std::move(region)),
      area_(&region_->channel(node, index)),
      ready_bit_(node * kShmChannelSlots + index),
      counters_(counters) {
  finished_.reserve(kCallSlots);
  // An earlier user of this channel may have left calls behind; handlers may still run for them.
  for (int i = 0; i < kCallSlots; ++i) {
    uint64_t word = area_->slots[i].word.load();
    sequence_ = std::max(sequence_, word >> 24);
    if (PhaseOfCall(word) == CallPhase::kRequested &&
        area_->slots[i].word.compare_exchange_strong(word, WithPhase(word, CallPhase::kFree))) {
      continue;
    }
    const NodeId server = ServerOf(word);
    if (PhaseOfCall(word) != CallPhase::kRunning || server >= region_->num_nodes()) continue;
    NodeControl& control = region_->control(server);
    slots_[i] = {.use = Use::kAbandoned,
                 .server = server,
                 .word = word,
                 .server_process = {control.pid, control.start_time},
                 .pending = {}};
    used_slots_ |= 1u << i;
    abandoned_slots_ |= 1u << i;
    ++slots_at_[server];
  }
}

CallClient::~CallClient() {
  for (uint32_t bits = used_slots_ & ~abandoned_slots_; bits != 0; bits &= bits - 1) {
    const int i = std::countr_zero(bits);
    uint64_t word = slots_[i].word;
    area_->slots[i].word.compare_exchange_strong(word, WithPhase(word, CallPhase::kFree));
  }
}

bool CallClient::Submit(const CallRequest& call, Completion* completion) {
  if (call.node >= region_->num_nodes()) {
    completion->status = absl::InvalidArgumentError(
        absl::StrCat("CALL to node ", call.node, ": the cluster has ", region_->num_nodes(), " nodes"));
    return true;
  }
  if (call.request.size() > kMaxMessageBytes) {
    completion->status = absl::InvalidArgumentError(absl::StrCat(
        "CALL with a request of ", call.request.size(), " bytes; at most ", kMaxMessageBytes, " fit in a message"));
    return true;
  }
  const uint64_t node_word = region_->control(call.node).word.load(std::memory_order_acquire);
  if (call.connection != 0 && call.connection != node_word) {
    completion->status = ConnectionChanged(call.node);
    return true;
  }
  if (PhaseOf(node_word) != NodePhase::kAttached) {
    completion->status = absl::UnavailableError(absl::StrCat("CALL to node ", call.node, ", which is not there"));
    return true;
  }
  ++counters_->calls;
  ++counters_->round_trips;
  counters_->bytes_out += call.request.size();
  const Pending pending{call, completion, DeadlineOf(call.timeout), node_word};
  const int slot = waiting_.empty() ? FindSlot(call.node) : -1;
  if (slot >= 0) {
    Start(slot, pending);
  } else {
    waiting_.push_back(pending);
  }
  return false;
}

int CallClient::FindSlot(NodeId server) const {
  if (~used_slots_ == 0 || slots_at_[server] >= kCallsPerNode) return -1;
  return std::countr_zero(~used_slots_);  // the lowest one: its memory is in the cache
}

void CallClient::Start(int slot, const Pending& pending) {
  const CallRequest& call = pending.call;
  // A slot of a call in flight, or of one that was given up, may still be written by its server.
  GANNET_CHECK((used_slots_ >> slot & 1) == 0 && slots_at_[call.node] < kCallsPerNode,
               "call slot %d is used again; %d calls to node %d", slot, slots_at_[call.node], call.node);
  CallSlot& shared = area_->slots[slot];
  NodeControl& control = region_->control(call.node);
  if (!call.request.empty()) std::memcpy(area_->requests[slot], call.request.data(), call.request.size());
  shared.method = call.method;
  shared.request_bytes = static_cast<uint32_t>(call.request.size());
  shared.server_word = pending.node_word;
  Slot& mine = slots_[slot];
  mine.use = Use::kInFlight;
  mine.server = call.node;
  mine.word = CallWord(++sequence_, call.node, CallPhase::kRequested);
  mine.server_process = {control.pid.load(std::memory_order_relaxed),
                         control.start_time.load(std::memory_order_relaxed)};
  mine.pending = pending;
  used_slots_ |= 1u << slot;
  ++slots_at_[call.node];
  shared.word.store(mine.word, std::memory_order_release);
  Ring(call.node, slot);
}

void CallClient::Ring(NodeId server, int slot) {
  NodeControl& control = region_->control(server);
  control.ready_slots[ready_bit_].bits.fetch_or(uint64_t{1} << slot);
  control.ready_channels[ready_bit_ / 64].fetch_or(uint64_t{1} << ready_bit_ % 64);
  // A server counts itself as a sleeper before its last check for requests. So either it sees the request, or we see
  // the sleeper.
  if (control.sleepers.load() == 0) return;
  control.doorbell.fetch_add(1);
  FutexWakeOne(&control.doorbell);
}

size_t CallClient::PollBusy() {
  const uint64_t now = NowNanos();
  for (uint32_t bits = used_slots_ & ~abandoned_slots_; bits != 0; bits &= bits - 1) {
    const int slot = std::countr_zero(bits);
    if (Advance(slot, now)) finished_.push_back(slots_[slot].pending.completion);
  }
  if (abandoned_slots_ != 0) ReclaimAbandoned();
  if (!waiting_.empty()) {
    StartWaiting();
    FailWaiting(now);
  }
  if (finished_.empty()) return 0;
  // A resumed coroutine may submit new calls. No iteration over this object is in progress here.
  std::vector<Completion*> finished = std::move(finished_);
  for (Completion* completion : finished) Deliver(completion);
  const size_t count = finished.size();
  finished.clear();
  finished_ = std::move(finished);
  return count;
}

bool CallClient::ServerStillThere(const Pending& pending) const {
  return region_->control(pending.call.node).word.load(std::memory_order_acquire) == pending.node_word;
}

bool CallClient::Advance(int slot, uint64_t now_ns) {
  Slot& mine = slots_[slot];
  const uint64_t done = WithPhase(mine.word, CallPhase::kDone);
  if (area_->slots[slot].word.load(std::memory_order_acquire) == done) {
    TakeResponse(slot);
  } else if (!ServerStillThere(mine.pending)) {
    GiveUp(slot, Gone(mine.server));
  } else if (now_ns >= mine.pending.deadline_ns) {
    GiveUp(slot, TimedOut(mine.pending.call));
  } else {
    return false;
  }
  return true;
}

void CallClient::TakeResponse(int slot) {
  CallSlot& shared = area_->slots[slot];
  const CallRequest& call = slots_[slot].pending.call;
  Completion* completion = slots_[slot].pending.completion;
  const size_t bytes = shared.response_bytes;
  const auto code = static_cast<absl::StatusCode>(shared.status_code);
  completion->done_after = completion->done_before = shared.done_nanos;
  if (bytes > kMaxMessageBytes) {
    completion->status = absl::InternalError(absl::StrCat("node ", call.node, " answered with a broken length"));
  } else if (code != absl::StatusCode::kOk) {
    completion->status = Status(code, absl::string_view(reinterpret_cast<const char*>(area_->responses[slot]), bytes));
  } else if (bytes > call.response.size()) {
    completion->status =
        absl::ResourceExhaustedError(absl::StrCat("the response of method ", call.method, " has ", bytes,
                                                  " bytes; the caller's buffer holds ", call.response.size()));
  } else {
    if (bytes > 0) std::memcpy(call.response.data(), area_->responses[slot], bytes);
    completion->status = absl::OkStatus();
    completion->response_bytes = bytes;
  }
  counters_->bytes_in += bytes;
  Release(slot);
}

void CallClient::GiveUp(int slot, Status status) {
  uint64_t word = slots_[slot].word;
  if (area_->slots[slot].word.compare_exchange_strong(word, WithPhase(word, CallPhase::kFree))) {
    Release(slot);
  } else if (PhaseOfCall(word) == CallPhase::kDone) {
    return TakeResponse(slot);
  } else {
    slots_[slot].use = Use::kAbandoned;
    abandoned_slots_ |= 1u << slot;
  }
  slots_[slot].pending.completion->status = std::move(status);
}

void CallClient::Release(int slot) {
  GANNET_CHECK((used_slots_ >> slot & 1) != 0, "call slot %d is released twice", slot);
  slots_[slot].use = Use::kFree;
  used_slots_ &= ~(1u << slot);
  abandoned_slots_ &= ~(1u << slot);
  --slots_at_[slots_[slot].server];
}

void CallClient::ReclaimAbandoned() {
  const uint64_t now = NowNanos();
  const bool ask_the_system = now - last_reclaim_ns_ >= kReclaimIntervalNs;
  if (ask_the_system) last_reclaim_ns_ = now;
  for (uint32_t bits = abandoned_slots_; bits != 0; bits &= bits - 1) {
    const int slot = std::countr_zero(bits);
    const CallPhase phase = PhaseOfCall(area_->slots[slot].word.load(std::memory_order_acquire));
    if (phase == CallPhase::kDone || (ask_the_system && !IsRunning(slots_[slot].server_process))) Release(slot);
  }
}

void CallClient::StartWaiting() {
  for (size_t i = 0; i < waiting_.size();) {
    const int slot = FindSlot(waiting_[i].call.node);
    if (slot < 0) {
      ++i;
      continue;
    }
    Start(slot, waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void CallClient::FailWaiting(uint64_t now_ns) {
  std::erase_if(waiting_, [&](const Pending& pending) {
    if (!ServerStillThere(pending)) {
      pending.completion->status = Gone(pending.call.node);
    } else if (now_ns >= pending.deadline_ns) {
      pending.completion->status = TimedOut(pending.call);
    } else {
      return false;
    }
    finished_.push_back(pending.completion);
    return true;
  });
}

}  // namespace gannet::rdma::shm
