#include "rdma/verbs/connector.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "rdma/rpc.h"

namespace gannet::rdma::verbs {
namespace {

constexpr int kMostEventsAtOnce = 64;
constexpr int kLongestPollMs = 50;
constexpr int kListenBacklog = 256;
constexpr int kMaxReads = 16;            // in flight per queue pair, in each direction
constexpr uint8_t kRetries = 7;          // for a packet that is not acknowledged
constexpr uint8_t kReceiverRetries = 6;  // for a message that finds no receive buffer: the window makes that impossible
constexpr size_t kPrivateBytes = 56;     // private data of a CONNECT
constexpr size_t kMaxRejectBytes = 128;  // private data of a REJECT, with some reserve

uint64_t Nanos(absl::Duration duration) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
}

using PrivateBuffer = std::array<std::byte, kPrivateBytes>;

size_t EncodeRequest(NodeId to, const control::Credential& credential, PrivateBuffer* buffer) {
  WireWriter writer(*buffer);
  writer.PutU64(control::kMagic);
  writer.PutU16(control::kProtocolVersion);
  writer.PutU16(to);
  writer.PutU16(credential.from);
  writer.PutU16(credential.channel);
  writer.PutU64(credential.number);
  std::copy(credential.tag.begin(), credential.tag.end(), writer.Reserve(control::kTagBytes).begin());
  return writer.size();
}

// The received bytes may be longer than what was sent: the transport pads them.
StatusOr<control::Credential> DecodeRequest(NodeId self, std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  const uint64_t magic = reader.GetU64();
  const uint16_t version = reader.GetU16();
  const NodeId to = reader.GetU16();
  control::Credential credential;
  credential.from = reader.GetU16();
  credential.channel = reader.GetU16();
  credential.number = reader.GetU64();
  const std::span<const std::byte> tag = reader.GetRaw(control::kTagBytes);
  if (!reader.ok() || magic != control::kMagic) return absl::InvalidArgumentError("this port is a Gannet node's");
  if (version != control::kProtocolVersion) {
    return absl::InvalidArgumentError(absl::StrCat("protocol version ", control::kProtocolVersion, ", not ", version));
  }
  if (to != self) return absl::InvalidArgumentError(absl::StrCat("this is node ", self, ", not ", to));
  std::copy(tag.begin(), tag.end(), credential.tag.begin());
  return credential;
}

std::span<const std::byte> PrivateDataOf(const rdma_cm_event& event) {
  return {static_cast<const std::byte*>(event.param.conn.private_data), event.param.conn.private_data_len};
}

std::string ReasonOf(const rdma_cm_event& event) {
  std::string reason = absl::StrCat(rdma_event_str(event.event), " (", event.status, ")");
  if (event.event == RDMA_CM_EVENT_REJECTED && event.param.conn.private_data != nullptr) {
    WireReader reader(PrivateDataOf(event));
    const std::string_view said = reader.GetString();
    if (reader.ok()) absl::StrAppend(&reason, ": ", absl::CHexEscape(absl::string_view(said.data(), said.size())));
  }
  return reason;
}

}  // namespace

StatusOr<std::unique_ptr<Connector>> Connector::Make(NodeCore* core, Acceptor* acceptor) {
  std::unique_ptr<Connector> connector(new Connector(core, acceptor));
  connector->events_.reset(rdma_create_event_channel());
  if (connector->events_ == nullptr) return SystemError("cannot make an RDMA event channel");
  connector->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int fd = connector->events_->fd;
  if (connector->wake_ < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
    return SystemError("cannot wait for RDMA events");
  }
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(connector->events_.get(), &id, nullptr, RDMA_PS_TCP) != 0) {
    return SystemError("cannot make an RDMA listener");
  }
  connector->listener_.reset(id);
  control::Endpoint at = core->address().WithPort(0);  // any port: peers learn it in the control handshake
  if (rdma_bind_addr(id, at.get()) != 0 || rdma_listen(id, kListenBacklog) != 0) {
    return SystemError("cannot listen for queue pairs");
  }
  return connector;
}

void Connector::Run() {
  thread_ = Thread("connector", [this] { Loop(); });
}

void Connector::Stop() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    Enqueue([] {});
    thread_.join();
  }
  if (wake_ >= 0) close(std::exchange(wake_, -1));
}

void Connector::Enqueue(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);  // fails only if the thread is awake already
}

void Connector::RunAndWait(std::function<void()> job) {
  struct Done {
    Mutex mutex;
    CondVar changed;
    bool value = false;
  };
  const auto done = std::make_shared<Done>();
  Enqueue([done, job = std::move(job)] {
    job();
    const std::lock_guard lock(done->mutex);
    done->value = true;
    done->changed.notify_all();
  });
  std::unique_lock lock(done->mutex);
  done->changed.wait(lock, [&] { return done->value; });
}

void Connector::CutServing() {
  RunAndWait([this] {
    serving_ = false;
    EndServing([](const Link&) { return true; });
  });
}

void Connector::Connect(std::shared_ptr<Link> link, ibv_cq* cq, const control::Endpoint& to) {
  link->deadline_ns_ = NowNanos() + Nanos(core_->options().connect_limit);
  Enqueue([this, active = Active{std::move(link), cq}, to] { Begin(active, to); });
}

void Connector::Release(const std::shared_ptr<Link>& link) {
  RunAndWait([this, link = link.get()] {
    link->GoDown("released");
    if (link->id_ == nullptr) return;
    active_.erase(link->id_);
    Destroy(link);
  });
}

void Connector::SessionEnded(uint64_t session) {
  RunAndWait([this, session] { EndServing([session](const Link& link) { return link.session_ == session; }); });
}

void Connector::Loop() {
  for (bool stop = false; !stop;) {
    std::array<pollfd, 2> polled{pollfd{.fd = wake_, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = events_->fd, .events = POLLIN, .revents = 0}};
    poll(polled.data(), polled.size(), kLongestPollMs);
    uint64_t ignored;
    (void)!read(wake_, &ignored, sizeof ignored);
    {
      const std::lock_guard lock(mutex_);
      stop = stop_;
    }
    RunJobs();
    // A bounded number, so that a flood of requests does not delay the jobs.
    for (int i = 0; i < kMostEventsAtOnce && TakeEvent(); ++i) {
    }
    CheckDeadlines();
    EndServing([](const Link& link) { return link.cut(); });
  }
  EndServing([](const Link&) { return true; });
  for (auto& [id, active] : std::exchange(active_, {})) {
    active.link->GoDown("this node has left");
    Destroy(active.link.get());
  }
}

void Connector::RunJobs() {
  std::vector<std::function<void()>> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.swap(jobs_);
  }
  for (const auto& job : jobs) job();
}

void Connector::CheckDeadlines() {
  const uint64_t now = NowNanos();
  for (auto at = active_.begin(); at != active_.end();) {
    const std::shared_ptr<Link> link = at->second.link;
    if (link->state() != LinkState::kConnecting || now < link->deadline_ns_) {
      ++at;
      continue;
    }
    at = active_.erase(at);
    Destroy(link.get());
    link->GoDown("it did not answer in time");
  }
}

// Returns false if there is none.
bool Connector::TakeEvent() {
  rdma_cm_event* raw = nullptr;
  if (rdma_get_cm_event(events_.get(), &raw) != 0) return false;
  rdma_cm_id* id = raw->id;
  const bool is_request = raw->event == RDMA_CM_EVENT_CONNECT_REQUEST;
  Status status = absl::OkStatus();
  if (is_request) {
    status = Admit(id, *raw);
  } else if (const auto active = active_.find(id); active != active_.end()) {
    status = Advance(active->second, *raw);
  } else if (served_.contains(id) && raw->event != RDMA_CM_EVENT_ESTABLISHED) {
    status = absl::UnavailableError(ReasonOf(*raw));
  }
  if (is_request && !status.ok()) {
    std::array<std::byte, kMaxRejectBytes> reason;
    WireWriter writer(reason);
    writer.PutString(std::string_view(status.message().data(), std::min(status.message().size(), kMaxRejectBytes - 4)));
    // If this fails, the peer's deadline ends its attempt.
    rdma_reject(id, reason.data(), static_cast<uint8_t>(writer.size()));
  }
  rdma_ack_cm_event(raw);  // before the id is destroyed, because destroying waits for the acknowledgement
  if (status.ok()) return true;
  if (const auto active = active_.find(id); active != active_.end()) {
    const std::shared_ptr<Link> link = active->second.link;
    // If it was up, its channel uses the queue pair until it sees that the link is down, and then releases it.
    if (link->state() == LinkState::kConnecting) {
      active_.erase(active);
      Destroy(link.get());
    }
    link->GoDown(std::string(status.message()));
  } else if (served_.contains(id)) {
    EndServing([id](const Link& link) { return link.id_ == id; });
  } else if (is_request) {
    rdma_destroy_id(id);
  }
  return true;
}

void Connector::Begin(const Active& active, control::Endpoint to) {
  Link* link = active.link.get();
  if (link->state() == LinkState::kDown) return;  // released before this job ran
  if (rdma_create_id(events_.get(), &link->id_, nullptr, RDMA_PS_TCP) != 0) {
    return link->GoDown(std::string(SystemError("cannot make a connection id").message()));
  }
  active_[link->id_] = active;
  control::Endpoint from = core_->address().WithPort(0);
  const int limit_ms = static_cast<int>(absl::ToInt64Milliseconds(core_->options().connect_limit));
  if (rdma_resolve_addr(link->id_, from.get(), to.get(), limit_ms) != 0) {
    const Status status = SystemError("cannot resolve the address");
    active_.erase(link->id_);
    Destroy(link);
    link->GoDown(std::string(status.message()));
  }
}

Status Connector::Advance(const Active& active, const rdma_cm_event& event) {
  Link* link = active.link.get();
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: {
      if (link->id_->verbs != core_->context()) {
        return absl::UnavailableError("the route to it uses another RDMA device than this node's");
      }
      const int limit_ms = static_cast<int>(absl::ToInt64Milliseconds(core_->options().connect_limit));
      return rdma_resolve_route(link->id_, limit_ms) == 0 ? absl::OkStatus() : SystemError("cannot resolve the route");
    }
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      GANNET_RETURN_IF_ERROR(link->MakeQueuePair(active.cq));
      return Ask(active);
    case RDMA_CM_EVENT_ESTABLISHED:
      link->GoUp();
      return absl::OkStatus();
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return absl::OkStatus();
    default:
      return absl::UnavailableError(ReasonOf(event));
  }
}

rdma_conn_param Connector::Parameters() const {
  rdma_conn_param parameters{};
  parameters.responder_resources = static_cast<uint8_t>(std::min(core_->limits().max_reads_as_responder, kMaxReads));
  parameters.initiator_depth = static_cast<uint8_t>(std::min(core_->limits().max_reads_as_initiator, kMaxReads));
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kReceiverRetries;
  return parameters;
}

Status Connector::Ask(const Active& active) {
  Link* link = active.link.get();
  const StatusOr<control::Credential> credential = core_->agent->MakeCredentialFor(link->peer(), link->channel());
  if (!credential.ok()) return credential.status();
  PrivateBuffer buffer;
  rdma_conn_param parameters = Parameters();
  parameters.private_data = buffer.data();
  parameters.private_data_len = static_cast<uint8_t>(EncodeRequest(link->peer(), *credential, &buffer));
  return rdma_connect(link->id_, &parameters) == 0 ? absl::OkStatus() : SystemError("cannot connect");
}

Status Connector::Admit(rdma_cm_id* id, const rdma_cm_event& event) {
  if (!serving_) return absl::UnavailableError("this node is leaving");
  const StatusOr<control::Credential> credential = DecodeRequest(core_->id(), PrivateDataOf(event));
  if (!credential.ok()) return credential.status();
  const StatusOr<uint64_t> session = core_->agent->Admit(*credential);
  if (!session.ok()) return session.status();
  if (id->verbs != core_->context()) return absl::UnavailableError("the request came by another RDMA device");
  if (credential->channel >= kMaxVerbsChannelsPerNode) {
    return absl::InvalidArgumentError(absl::StrCat("a node has no channel ", credential->channel));
  }
  // A peer has one queue pair here for each of its channels. If it asks for a second one, it has lost the first one, or
  // it breaks the rules.
  EndServing(
      [&](const Link& link) { return link.peer() == credential->from && link.channel() == credential->channel; });
  StatusOr<std::shared_ptr<Link>> made = acceptor_->MakeLink(credential->from, credential->channel);
  if (!made.ok()) return made.status();
  const std::shared_ptr<Link> link = *std::move(made);
  link->id_ = id;
  link->session_ = *session;
  Status status = link->MakeQueuePair(acceptor_->cq());
  if (status.ok()) {
    acceptor_->Add(link);
    link->GoUp();
    rdma_conn_param parameters = Parameters();
    parameters.responder_resources =
        std::min<uint8_t>(parameters.responder_resources, event.param.conn.responder_resources);
    parameters.initiator_depth = std::min<uint8_t>(parameters.initiator_depth, event.param.conn.initiator_depth);
    if (rdma_accept(id, &parameters) != 0) {
      status = SystemError("cannot accept");
      acceptor_->Remove(link);
    }
  }
  if (status.ok()) {
    served_[id] = link;
    num_served_ = served_.size();
    return status;
  }
  if (id->qp != nullptr) rdma_destroy_qp(id);
  link->id_ = nullptr;  // the caller destroys it
  return status;
}

void Connector::EndServing(const std::function<bool(const Link&)>& which) {
  for (auto at = served_.begin(); at != served_.end();) {
    const std::shared_ptr<Link> link = at->second;
    if (!which(*link)) {
      ++at;
      continue;
    }
    at = served_.erase(at);
    num_served_ = served_.size();
    acceptor_->Remove(link);
    link->GoDown("it was ended");
    Destroy(link.get());
  }
}

void Connector::Destroy(Link* link) {
  if (link->id_->qp != nullptr) rdma_destroy_qp(link->id_);
  rdma_destroy_id(std::exchange(link->id_, nullptr));
}

}  // namespace gannet::rdma::verbs
