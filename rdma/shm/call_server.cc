#include "rdma/shm/call_server.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "rdma/shm/futex.h"

namespace gannet::rdma::shm {
namespace {

constexpr uint64_t kPollNs = 50'000;              // how long a server thread polls before it sleeps
constexpr uint64_t kLongestSleepNs = 50'000'000;  // no wake-up gets lost, but a client can die before it sends one
constexpr int kRelaxesPerYield = 16;
constexpr size_t kBatch = 64;
constexpr size_t kMaxStatusMessageBytes = 1024;

void Answer(CallSlot* slot, std::byte* response, const StatusOr<size_t>& result) {
  if (result.ok()) {
    slot->status_code = 0;
    slot->response_bytes = static_cast<uint32_t>(*result);
    return;
  }
  const absl::string_view message = result.status().message();
  const size_t bytes = std::min(message.size(), kMaxStatusMessageBytes);
  std::copy_n(message.data(), bytes, reinterpret_cast<char*>(response));
  slot->status_code = static_cast<uint32_t>(result.status().code());
  slot->response_bytes = static_cast<uint32_t>(bytes);
}

}  // namespace

CallServer::CallServer(std::shared_ptr<Region> region, NodeId node, uint64_t node_word)
    : region_(std::move(region)),
      node_(node),
      node_word_(node_word),
      control_(&region_->control(node)),
      ready_words_(region_->num_nodes() * kShmChannelSlots / 64) {}

CallServer::~CallServer() {
  Join();
}

void CallServer::Handle(MethodId method, Handler handler) {
  GANNET_CHECK(!started(), "node %d: method %d is registered after Serve", node_, method);
  const bool is_new = handlers_.emplace(method, std::move(handler)).second;
  GANNET_CHECK(is_new, "node %d: method %d has two handlers", node_, method);
}

void CallServer::Start(int threads) {
  num_threads_.store(static_cast<uint64_t>(threads), std::memory_order_relaxed);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

void CallServer::Join() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

bool CallServer::NodeIsOurs() const {
  return control_->word.load(std::memory_order_acquire) == node_word_;
}

void CallServer::Loop() {
  uint64_t idle_since = NowNanos();
  for (int round = 1; NodeIsOurs(); ++round) {
    if (ServePending(kBatch, ServingMeter::By::kServer) > 0) {
      idle_since = NowNanos();
    } else if (NowNanos() - idle_since > kPollNs) {
      Sleep();
      idle_since = NowNanos();
    } else if (round % kRelaxesPerYield == 0) {
      sched_yield();
    } else {
      CpuRelax();
    }
  }
}

void CallServer::Sleep() {
  const uint32_t seen = control_->doorbell.load();
  control_->sleepers.fetch_add(1);
  if (!AnythingReady() && NodeIsOurs()) FutexWait(&control_->doorbell, seen, kLongestSleepNs);
  control_->sleepers.fetch_sub(1);
}

bool CallServer::AnythingReady() const {
  for (int i = 0; i < ready_words_; ++i) {
    if (control_->ready_channels[i].load() != 0) return true;
  }
  return false;
}

size_t CallServer::ServePending(size_t limit, ServingMeter::By by) {
  // A poll that finds nothing costs no look at the clock.
  if (!AnythingReady()) return 0;
  const uint64_t start = NowNanos();
  uint64_t end = start;
  const size_t served = ServeReady(limit, &end);
  if (served > 0) meter_.Add(by, end - start);
  return served;
}

size_t CallServer::ServeReady(size_t limit, uint64_t* end) {
  size_t served = 0;
  for (int i = 0; i < ready_words_; ++i) {
    // Serves one request of each channel in this snapshot, so that no channel starves another.
    for (uint64_t bits = control_->ready_channels[i].load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
      if (served == limit || !NodeIsOurs()) return served;
      const int bit = std::countr_zero(bits);
      control_->ready_channels[i].fetch_and(~(uint64_t{1} << bit));
      if (ServeChannel(i * 64 + bit, end)) ++served;
    }
  }
  return served;
}

bool CallServer::ServeChannel(int channel, uint64_t* end) {
  std::atomic<uint64_t>& ready = control_->ready_slots[channel].bits;
  const uint64_t bits = ready.load() & ((uint64_t{1} << kCallSlots) - 1);
  if (bits == 0) return false;
  const int slot = std::countr_zero(bits);
  const uint64_t before = ready.fetch_and(~(uint64_t{1} << slot));
  // The channel's bit was cleared: set it again if requests are left, so that other threads may serve them.
  if ((before & ~(uint64_t{1} << slot)) != 0) {
    control_->ready_channels[channel / 64].fetch_or(uint64_t{1} << channel % 64);
  }
  return Run(channel, slot, end);
}

bool CallServer::Run(int channel, int index, uint64_t* end) {
  const auto caller = static_cast<NodeId>(channel / kShmChannelSlots);
  ChannelArea& area = region_->channel(caller, channel % kShmChannelSlots);
  CallSlot& slot = area.slots[index];
  uint64_t word = slot.word.load(std::memory_order_acquire);
  if (PhaseOfCall(word) != CallPhase::kRequested || ServerOf(word) != node_ ||
      !slot.word.compare_exchange_strong(word, WithPhase(word, CallPhase::kRunning))) {
    return false;  // the caller gave up, or another thread was faster
  }
  const size_t request_bytes = std::min<size_t>(slot.request_bytes, kMaxMessageBytes);
  const std::span<std::byte> response = area.responses[index];
  Answer(&slot, response.data(),
         RunHandler(caller, slot, std::span<const std::byte>(area.requests[index]).first(request_bytes), response));
  slot.done_nanos = *end = NowNanos();
  slot.word.store(WithPhase(word, CallPhase::kDone), std::memory_order_release);
  return true;
}

StatusOr<size_t> CallServer::RunHandler(NodeId caller, const CallSlot& slot, std::span<const std::byte> request,
                                        std::span<std::byte> response) {
  // The caller lost its connection before the request was served. Such a request must have no effect.
  if (slot.server_word != node_word_) {
    return absl::UnavailableError(absl::StrCat("node ", node_, " is not the process that was called any more"));
  }
  if (slot.request_bytes > kMaxMessageBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a request of ", slot.request_bytes, " bytes is no message"));
  }
  const uint32_t method = slot.method;
  const auto handler = handlers_.find(method);
  if (handler == handlers_.end()) {
    return absl::UnimplementedError(absl::StrCat("node ", node_, " has no handler for method ", method));
  }
  StatusOr<size_t> bytes = handler->second(caller, request, response);
  GANNET_CHECK(!bytes.ok() || *bytes <= response.size(), "the handler of method %d says it wrote %d of %d bytes",
               method, *bytes, response.size());
  return bytes;
}

}  // namespace gannet::rdma::shm
