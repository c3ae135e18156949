#include "rdma/verbs/call_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"

namespace gannet::rdma::verbs {
namespace {

constexpr uint64_t kIndexBits = 16;

uint64_t DeadlineOf(absl::Duration timeout) {
  const int64_t ns = absl::ToInt64Nanoseconds(timeout);  // saturates
  const uint64_t now = NowNanos();
  return ns <= 0 ? now : now + static_cast<uint64_t>(ns);
}

Status TimedOut(const CallRequest& call) {
  return absl::DeadlineExceededError(absl::StrCat("node ", call.node, " did not answer a call of method ", call.method,
                                                  " in ", absl::FormatDuration(call.timeout),
                                                  "; it may have run or not"));
}

}  // namespace

CallClient::Call* CallClient::Make() {
  if (free_.empty()) {
    GANNET_CHECK(calls_.size() < (1u << kIndexBits), "%d calls at once on one channel", calls_.size());
    free_.push_back(static_cast<uint32_t>(calls_.size()));
    calls_.push_back(std::make_unique<Call>());
    calls_.back()->id = free_.back();
  }
  Call* call = calls_[free_.back()].get();
  free_.pop_back();
  call->id += uint64_t{1} << kIndexBits;
  return call;
}

CallClient::Call* CallClient::Find(uint64_t id) {
  const uint64_t index = id & ((1u << kIndexBits) - 1);
  Call* call = index < calls_.size() ? calls_[index].get() : nullptr;
  return call != nullptr && call->id == id && call->state != State::kFree ? call : nullptr;
}

void CallClient::Submit(const CallRequest& request, Completion* completion) {
  Call* call = Make();
  call->state = State::kWaiting;
  call->request = request;
  call->completion = completion;
  call->deadline_ns = DeadlineOf(request.timeout);
  call->received = 0;
  call->message = {
      .header = {.call = call->id,
                 .total_bytes = static_cast<uint32_t>(request.request.size()),
                 .offset = 0,
                 .room_or_code = static_cast<uint32_t>(std::min(request.response.size(), kMaxMessageBytes)),
                 .method = request.method},
      .body = request.request.data(),
      .unposted = 0};
  ++nodes_[request.node].used;
  nodes_[request.node].waiting.push_back(call->id);
  ++counters_->calls;
  ++counters_->round_trips;
  counters_->bytes_out += request.request.size();
}

void CallClient::Start(Lane* lane) {
  PerNode& node = nodes_[lane->node()];
  while (!node.waiting.empty()) {
    Call* call = Find(node.waiting.front());
    if (call != nullptr) {
      if (node.request_fragments + call->request_fragments() > kWindow ||
          node.response_fragments + call->response_fragments() > kWindow) {
        return;
      }
      node.request_fragments += call->request_fragments();
      node.response_fragments += call->response_fragments();
      call->state = State::kInFlight;
      lane->Add(&call->message);
    }
    node.waiting.pop_front();
  }
}

Status CallClient::TakeFragment(NodeId from, std::span<const std::byte> fragment) {
  FragmentHeader header;
  if (fragment.size() < sizeof header) return absl::InternalError("it answered without a header");
  std::memcpy(&header, fragment.data(), sizeof header);
  const std::span<const std::byte> payload = fragment.subspan(sizeof header);
  Call* call = Find(header.call);
  // Of a call that is not sent yet the lane still needs the message.
  const bool is_sent = call != nullptr && call->state != State::kWaiting && call->message.unposted == 0;
  if (!is_sent || call->request.node != from) {
    return absl::InternalError("it answered a call that was not made");
  }
  const bool ok = header.room_or_code == static_cast<uint32_t>(absl::StatusCode::kOk);
  const uint32_t most = ok ? call->message.header.room_or_code : kMaxErrorBytes;
  if (header.total_bytes > most || header.offset != call->received || header.offset > header.total_bytes ||
      payload.size() > header.total_bytes - header.offset) {
    return absl::InternalError("it answered with a broken length");
  }
  TakeResponse(call, header, payload);
  return absl::OkStatus();
}

void CallClient::TakeResponse(Call* call, const FragmentHeader& header, std::span<const std::byte> payload) {
  const bool ok = header.room_or_code == static_cast<uint32_t>(absl::StatusCode::kOk);
  if (ok && call->state == State::kInFlight && !payload.empty()) {
    std::memcpy(call->request.response.data() + header.offset, payload.data(), payload.size());
  }
  call->received += static_cast<uint32_t>(payload.size());
  if (call->received < header.total_bytes) return;
  counters_->bytes_in += header.total_bytes;
  if (ok) {
    if (call->state == State::kInFlight) call->completion->response_bytes = header.total_bytes;
    return End(call, absl::OkStatus());
  }
  // An error's message fits in one fragment.
  const absl::string_view message(reinterpret_cast<const char*>(payload.data()), payload.size());
  End(call, Status(static_cast<absl::StatusCode>(header.room_or_code), message));
}

void CallClient::End(Call* call, Status status) {
  if (call->state == State::kInFlight || call->state == State::kWaiting) {
    call->completion->status = std::move(status);
    finished_->push_back(call->completion);
  }
  Free(call);
}

void CallClient::Free(Call* call) {
  PerNode& node = nodes_[call->request.node];
  if (call->state != State::kWaiting) {
    node.request_fragments -= call->request_fragments();
    node.response_fragments -= call->response_fragments();
  }
  --node.used;
  call->state = State::kFree;
  call->kept_request.clear();
  free_.push_back(static_cast<uint32_t>(call->id & ((1u << kIndexBits) - 1)));
}

void CallClient::FailAll(NodeId node, const Status& status) {
  for (const auto& call : calls_) {
    if (call->state != State::kFree && call->request.node == node) End(call.get(), status);
  }
  while (!nodes_[node].waiting.empty()) nodes_[node].waiting.pop_front();
}

void CallClient::CheckDeadlines(uint64_t now_ns) {
  for (const auto& call : calls_) {
    if (call->state == State::kFree || call->state == State::kAbandoned || now_ns < call->deadline_ns) continue;
    const Status status = TimedOut(call->request);
    if (call->state == State::kWaiting) {
      End(call.get(), status);
      continue;
    }
    // The caller's buffers are valid only until its wait ends. The call itself is kept until its answer comes, which
    // returns the window.
    if (call->message.unposted > 0) {
      call->kept_request.assign(call->request.request.begin(), call->request.request.end());
      call->message.body = call->kept_request.data();
    }
    call->completion->status = status;
    finished_->push_back(call->completion);
    call->state = State::kAbandoned;
  }
}

}  // namespace gannet::rdma::verbs
