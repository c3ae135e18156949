#include "rdma/verbs/call_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "base/clock.h"

namespace gannet::rdma::verbs {
namespace {

constexpr int kMostCompletions = 1 << 17;  // largest size of one queue: 8 MiB
constexpr int kCallPollBatch = 16;
constexpr int kLongestSleepMs = 50;
constexpr int kRelaxesPerYield = 16;

absl::Status Broken(const char* how) {
  return absl::InvalidArgumentError(how);
}

}  // namespace

StatusOr<std::unique_ptr<CallServer>> CallServer::Make(std::shared_ptr<NodeCore> core) {
  std::unique_ptr<CallServer> server(new CallServer(std::move(core)));
  GANNET_RETURN_IF_ERROR(server->Open());
  return server;
}

Status CallServer::Open() {
  constexpr uint32_t kPerClient = kWindow + kSendBuffers;
  const int wanted =
      std::min(kMostCompletions, core_->num_nodes() * kMaxVerbsChannelsPerNode * static_cast<int>(kPerClient));
  const int entries = std::min(wanted, core_->limits().max_completions);
  max_clients_ = static_cast<size_t>(entries) / kPerClient;
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  events_.reset(ibv_create_comp_channel(core_->context()));
  if (wake_ < 0 || events_ == nullptr) return SystemError("cannot make a completion channel");
  if (fcntl(events_->fd, F_SETFL, fcntl(events_->fd, F_GETFL) | O_NONBLOCK) != 0) {
    return SystemError("cannot poll a completion channel");
  }
  cq_.reset(ibv_create_cq(core_->context(), entries, nullptr, events_.get(), 0));
  return cq_ != nullptr ? absl::OkStatus() : SystemError("cannot make a completion queue");
}

CallServer::~CallServer() {
  RequestStop();
  Join();
  if (wake_ >= 0) close(wake_);
}

void CallServer::Handle(MethodId method, Handler handler) {
  GANNET_CHECK(!started(), "node %d: method %d is registered after Serve", core_->id(), method);
  const bool is_new = handlers_.emplace(method, std::move(handler)).second;
  GANNET_CHECK(is_new, "node %d: method %d has two handlers", core_->id(), method);
}

void CallServer::Start(int threads) {
  num_threads_.store(static_cast<uint64_t>(threads), std::memory_order_relaxed);
  for (int i = 0; i < threads; ++i) threads_.emplace_back("server", [this] { Loop(); });
}

void CallServer::RequestStop() {
  stop_.store(true);
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);  // fails only if the threads are awake already
}

void CallServer::Join() {
  for (Thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void CallServer::Loop() {
  std::vector<std::byte> buffer(kMaxMessageBytes);
  const absl::Duration patience = core_->options().server_poll;
  uint64_t idle_since = NowNanos();
  for (int round = 1; !stop_; ++round) {
    if (ServeOne(&buffer, ServingMeter::By::kServer)) {
      idle_since = NowNanos();
    } else if (absl::Nanoseconds(NowNanos() - idle_since) > patience) {
      Sleep();
      idle_since = NowNanos();
    } else if (round % kRelaxesPerYield == 0) {
      YieldThread();
    } else {
      CpuRelax();
    }
  }
}

void CallServer::Sleep() {
  ++sleepers_;
  bool work = ibv_req_notify_cq(cq_.get(), 0) != 0;
  {
    // Finds requests that arrived before the notification was requested.
    const std::lock_guard lock(mutex_);
    PollLocked();
    work = work || !ready_.empty();
  }
  if (!work && !stop_) {
    std::array<pollfd, 2> polled{pollfd{.fd = wake_, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = events_->fd, .events = POLLIN, .revents = 0}};
    poll(polled.data(), polled.size(), kLongestSleepMs);
    uint64_t ignored;
    (void)!read(wake_, &ignored, sizeof ignored);
    ibv_cq* which = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(events_.get(), &which, &context) == 0) ibv_ack_cq_events(which, 1);
  }
  --sleepers_;
}

size_t CallServer::ServePending(size_t limit) {
  static thread_local std::vector<std::byte> buffer(kMaxMessageBytes);
  size_t served = 0;
  while (served < limit && !stop_ && ServeOne(&buffer, ServingMeter::By::kWorker)) ++served;
  return served;
}

bool CallServer::ServeOne(std::vector<std::byte>* buffer, ServingMeter::By by) {
  Request request;
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return false;
    PollLocked();
    if (ready_.empty()) return false;
    request = ready_.pop_front();
    WakeAnother();
  }
  const uint64_t start = NowNanos();
  Run(request, buffer);
  meter_.Add(by, NowNanos() - start);
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(request.body));
  return true;
}

// This thread is about to be busy: it leaves all other and later requests to the sleeping threads.
void CallServer::WakeAnother() {
  if (sleepers_.load() == 0) return;
  if (ready_.empty() && ibv_req_notify_cq(cq_.get(), 0) == 0) PollLocked();
  if (ready_.empty()) return;
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
}

void CallServer::Run(const Request& request, std::vector<std::byte>* buffer) {
  std::string message;
  const Response response = RunHandler(request, *buffer, &message);
  const std::lock_guard lock(mutex_);
  const auto client = clients_.find(request.client);
  if (client == clients_.end() || stop_) return;  // the client is gone, so no one waits for the answer
  Client* to = client->second.get();
  to->unanswered -= FragmentsOf(request.header.total_bytes);
  Respond(to, request.header, response);
}

CallServer::Response CallServer::RunHandler(const Request& request, std::span<std::byte> room, std::string* message) {
  const MethodId method = request.header.method;
  const auto handler = handlers_.find(method);
  StatusOr<size_t> bytes =
      absl::UnimplementedError(absl::StrCat("node ", core_->id(), " has no handler for method ", method));
  if (handler != handlers_.end()) {
    bytes = handler->second(request.caller, std::span(request.body).first(request.header.total_bytes), room);
  }
  GANNET_CHECK(!bytes.ok() || *bytes <= room.size(), "the handler of method %d says it wrote %d of %d bytes", method,
               *bytes, room.size());
  if (bytes.ok() && *bytes > request.header.room_or_code) {
    bytes =
        absl::ResourceExhaustedError(absl::StrCat("the response of method ", method, " has ", *bytes,
                                                  " bytes; the caller's buffer holds ", request.header.room_or_code));
  }
  if (bytes.ok()) return {.code = absl::StatusCode::kOk, .body = room.first(*bytes)};
  *message = std::string(bytes.status().message().substr(0, kMaxErrorBytes));
  return {.code = bytes.status().code(), .body = std::as_bytes(std::span(*message))};
}

StatusOr<std::shared_ptr<Link>> CallServer::MakeLink(NodeId peer, uint16_t channel) {
  const std::lock_guard lock(mutex_);
  if (clients_.size() >= max_clients_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("node ", core_->id(), " serves ", clients_.size(), " channels; its card allows no more"));
  }
  return std::make_shared<Link>(core_, next_link_++ & 0x7fffffffu, peer, channel);
}

void CallServer::Add(const std::shared_ptr<Link>& link) {
  auto client = std::make_unique<Client>();
  client->link = link;
  client->send_buffers.resize(size_t{kSendBuffers} * kFragmentBytes);
  StatusOr<MemoryRegion> region = Register(core_->pd(), client->send_buffers.data(), client->send_buffers.size(), 0);
  // Without the region only answers that fit inline could be sent, so the link is useless.
  if (region.ok()) client->send_region = *std::move(region);
  const std::lock_guard lock(mutex_);
  clients_[link->number()] = std::move(client);
}

void CallServer::Remove(const std::shared_ptr<Link>& link) {
  const std::lock_guard lock(mutex_);
  const auto client = clients_.find(link->number());
  if (client == clients_.end()) return;
  // The NIC may send from the client's buffers until the queue pair is destroyed, so they live until then.
  client->second->link.reset();
  link->KeepToTheEnd(std::shared_ptr<Client>(std::move(client->second)));
  clients_.erase(client);
}

size_t CallServer::PollLocked() {
  std::array<ibv_wc, kCallPollBatch> completions;
  const int count = ibv_poll_cq(cq_.get(), kCallPollBatch, completions.data());
  GANNET_CHECK(count >= 0, "node %d: cannot poll the completion queue: %d", core_->id(), count);
  for (int i = 0; i < count; ++i) Take(completions[i]);
  return static_cast<size_t>(count);
}

void CallServer::Take(const ibv_wc& completion) {
  const WorkId id = WorkId::Decode(completion.wr_id);
  const auto found = clients_.find(id.link);
  if (found == clients_.end()) return;  // of a destroyed queue pair
  Client* client = found->second.get();
  Status status = absl::OkStatus();
  if (completion.status != IBV_WC_SUCCESS) {
    status = absl::UnavailableError(ibv_wc_status_str(completion.status));
  } else if (id.is_receive) {
    status = TakeFragment(client, completion, id.item);
  } else {
    client->completed = id.item + 1;
    SendWaiting(client);
  }
  if (!status.ok()) CutOff(client);
}

Status CallServer::TakeFragment(Client* client, const ibv_wc& completion, uint32_t buffer) {
  if (completion.byte_len < sizeof(FragmentHeader)) return Broken("a fragment without a header");
  FragmentHeader header;
  const std::byte* data = client->link->buffer(buffer);
  std::memcpy(&header, data, sizeof header);
  const uint32_t bytes = completion.byte_len - sizeof header;
  FragmentHeader& whole = client->assembling;
  if (header.offset == 0) {
    if (header.total_bytes > kMaxMessageBytes || header.room_or_code > kMaxMessageBytes)
      return Broken("a broken length");
    client->unanswered += FragmentsOf(header.total_bytes);
    if (client->unanswered > kWindow) return Broken("more requests than the window allows");
    whole = header;
    if (client->assembled.empty() && !spare_.empty()) {
      client->assembled = std::move(spare_.back());
      spare_.pop_back();
    }
    if (client->assembled.size() < header.total_bytes) client->assembled.resize(header.total_bytes);
    whole.offset = 0;
  } else if (header.call != whole.call || header.offset != whole.offset || header.total_bytes != whole.total_bytes) {
    return Broken("a fragment out of order");
  }
  if (bytes > whole.total_bytes - whole.offset) return Broken("more than the whole");
  if (bytes == 0 && whole.total_bytes != 0) return Broken("an empty fragment");
  if (bytes > 0) std::memcpy(client->assembled.data() + whole.offset, data + sizeof header, bytes);
  whole.offset += bytes;
  GANNET_RETURN_IF_ERROR(client->link->PostReceive(buffer));
  if (whole.offset < whole.total_bytes) return absl::OkStatus();
  ready_.push_back({.client = client->link->number(),
                    .caller = client->link->peer(),
                    .header = whole,
                    .body = std::exchange(client->assembled, {})});
  return absl::OkStatus();
}

void CallServer::Respond(Client* client, const FragmentHeader& request, const Response& response) {
  // A client that keeps its window takes what it has asked for.
  if (client->waiting.size() > kWindow) return CutOff(client);
  const auto total = static_cast<uint32_t>(response.body.size());
  std::array<std::byte, kFragmentBytes> fragment;
  uint32_t offset = 0;
  do {
    const uint32_t bytes = std::min(kPayloadBytes, total - offset);
    const FragmentHeader header{.call = request.call,
                                .total_bytes = total,
                                .offset = offset,
                                .room_or_code = static_cast<uint32_t>(response.code),
                                .method = request.method};
    std::memcpy(fragment.data(), &header, sizeof header);
    if (bytes > 0) std::memcpy(fragment.data() + sizeof header, response.body.data() + offset, bytes);
    const std::span<const std::byte> whole(fragment.data(), sizeof header + bytes);
    if (client->waiting.empty() && client->sent - client->completed < kSendBuffers) {
      SendFragment(client, whole);
    } else {
      client->waiting.push_back({whole.begin(), whole.end()});
    }
    offset += bytes;
  } while (offset < total);
}

void CallServer::SendWaiting(Client* client) {
  while (!client->waiting.empty() && client->sent - client->completed < kSendBuffers) {
    const std::vector<std::byte> fragment = client->waiting.pop_front();
    SendFragment(client, fragment);
  }
}

void CallServer::SendFragment(Client* client, std::span<const std::byte> fragment) {
  ibv_sge what{
      .addr = reinterpret_cast<uint64_t>(fragment.data()), .length = static_cast<uint32_t>(fragment.size()), .lkey = 0};
  ibv_send_wr work{};
  work.wr_id = WorkId{.is_receive = false, .link = client->link->number(), .item = client->sent}.Encode();
  work.sg_list = &what;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND;
  work.send_flags = IBV_SEND_SIGNALED;
  if (fragment.size() <= client->link->max_inline()) {
    work.send_flags |= IBV_SEND_INLINE;
  } else if (client->send_region == nullptr) {
    return CutOff(client);
  } else {
    std::byte* buffer = client->send_buffers.data() + size_t{client->sent % kSendBuffers} * kFragmentBytes;
    std::memcpy(buffer, fragment.data(), fragment.size());
    what.addr = reinterpret_cast<uint64_t>(buffer);
    what.lkey = client->send_region->lkey;
  }
  ++client->sent;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(client->link->qp(), &work, &bad) != 0) CutOff(client);
}

void CallServer::CutOff(Client* client) {
  if (client->link->cut()) return;
  client->link->Cut();
  ++cut_off_;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  (void)ibv_modify_qp(client->link->qp(), &attributes, IBV_QP_STATE);  // it may be in that state already
}

}  // namespace gannet::rdma::verbs
