#include "rdma/control/agent.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/base/check.h"

namespace gannet::rdma::control {
namespace {

constexpr int kLongestPollMs = 50;
constexpr uint64_t kFirstBackoffNs = 20'000'000;
constexpr uint64_t kLongestBackoffNs = 500'000'000;
constexpr uint64_t kSelfGeneration = 1;

uint64_t Nanos(absl::Duration duration) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
}

bool Later(uint64_t now, uint64_t since, absl::Duration limit) {
  return now > since && now - since > Nanos(limit);
}

}  // namespace

StatusOr<std::unique_ptr<Agent>> Agent::Start(AgentOptions options, Observer* observer) {
  if (options.self >= options.nodes.size() || options.nodes.size() != options.shape.num_nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", options.self, " of ", options.nodes.size(), " addresses does not exist"));
  }
  if (options.secret.empty()) return absl::InvalidArgumentError("the cluster has no secret: set one");
  const StatusOr<int> listener = Listen(options.nodes[options.self]);
  if (!listener.ok()) return listener.status();
  return std::unique_ptr<Agent>(new Agent(std::move(options), observer, *listener));
}

Agent::Agent(AgentOptions options, Observer* observer, int listener)
    : options_(std::move(options)),
      observer_(observer),
      listener_(listener),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      generations_(new std::atomic<uint64_t>[options_.nodes.size()]()),
      views_(options_.nodes.size()) {
  GANNET_CHECK(wake_ >= 0, "no eventfd: error %d", errno);
  for (size_t i = 0; i < options_.nodes.size(); ++i) {
    if (i == options_.self) continue;
    outgoing_.emplace_back();
    outgoing_.back().peer = static_cast<NodeId>(i);
  }
  // A node is its own peer, too: its queue pairs to itself need tickets.
  PeerView& self = views_[options_.self];
  FillRandom(self.key);
  self.payload = options_.payload;
  admitted_[options_.self] = {.session = sequence_++, .key = self.key, .book = {}};
  generations_[options_.self].store(kSelfGeneration);
  thread_ = Thread("control", [this] { Run(); });
}

void Agent::RequestStop() {
  stop_.store(true);
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);  // fails only if it is awake already
}

void Agent::Stop() {
  if (!thread_.joinable()) return;
  RequestStop();
  thread_.join();
}

Agent::~Agent() {
  Stop();
  close(wake_);
}

StatusOr<Agent::Details> Agent::details(NodeId peer) const {
  const std::lock_guard lock(mutex_);
  const uint64_t generation = generations_[peer].load();
  const PeerView& view = views_[peer];
  if (generation == 0) {
    return absl::UnavailableError(absl::StrCat("node ", peer, " is not there (", view.why_down, ")"));
  }
  return Details{.generation = generation, .payload = view.payload};
}

StatusOr<Ticket> Agent::MakeTicketFor(NodeId peer, uint16_t channel) {
  const std::lock_guard lock(mutex_);
  if (generations_[peer].load() == 0) return absl::UnavailableError(absl::StrCat("node ", peer, " is not there"));
  return MakeTicket(views_[peer].key, options_.self, channel, next_ticket_.fetch_add(1));
}

StatusOr<uint64_t> Agent::Admit(const Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  const auto admission = admitted_.find(ticket.from);
  if (admission == admitted_.end()) {
    return absl::PermissionDeniedError(absl::StrCat("node ", ticket.from, " has no session"));
  }
  GANNET_RETURN_IF_ERROR(admission->second.book.Use(admission->second.key, ticket));
  return admission->second.session;
}

std::string Agent::WhyDown(NodeId peer) const {
  const std::lock_guard lock(mutex_);
  return views_[peer].why_down;
}

std::string Agent::last_refusal() const {
  const std::lock_guard lock(mutex_);
  return last_refusal_;
}

void Agent::Run() {
  while (!stop_) Turn();
  const Status left = absl::UnavailableError("this node has left");
  generations_[options_.self].store(0);
  for (Outgoing& to : outgoing_) Drop(&to, left, NowNanos());
  for (const auto& from : incoming_) Drop(from.get(), left);
  incoming_.clear();
  close(listener_);
}

void Agent::Turn() {
  std::vector<pollfd> polled{{.fd = wake_, .events = POLLIN, .revents = 0},
                             {.fd = listener_, .events = POLLIN, .revents = 0}};
  for (const Outgoing& to : outgoing_) {
    const bool writes = to.state == Outgoing::State::kConnecting || to.stream.wants_to_write();
    polled.push_back(
        {.fd = to.stream.fd(), .events = static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), .revents = 0});
  }
  for (const auto& from : incoming_) {
    polled.push_back({.fd = from->stream.fd(),
                      .events = static_cast<short>(POLLIN | (from->stream.wants_to_write() ? POLLOUT : 0)),
                      .revents = 0});
  }
  // Before the look at the sockets: however long this thread is kept from running, nobody who spoke in time is given
  // up.
  const uint64_t now = NowNanos();
  poll(polled.data(), polled.size(), kLongestPollMs);
  size_t next = 2;
  for (Outgoing& to : outgoing_) {
    if (to.stream.open()) Serve(&to, polled[next].revents, now);
    ++next;
    Watch(&to, now);
  }
  std::erase_if(incoming_,
                [&](const std::unique_ptr<Incoming>& from) { return !Serve(from.get(), polled[next++].revents, now); });
  if (polled[1].revents != 0) AcceptAll(now);
  half_open_.store(static_cast<size_t>(
      std::count_if(incoming_.begin(), incoming_.end(), [](const auto& from) { return from->session == 0; })));
}

void Agent::AcceptAll(uint64_t now) {
  // A bounded number, so that a flood of connections does not keep the heartbeats waiting.
  for (int i = 0; i < options_.max_half_open; ++i) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;  // none is left, or this process has too many files: the next turn tries again
    MakeRoom();
    auto from = std::make_unique<Incoming>();
    from->stream = Stream(fd);
    from->handshake.emplace(options_.secret, options_.shape, options_.self, options_.payload);
    from->last_heard_ns = now;
    incoming_.push_back(std::move(from));
  }
}

void Agent::MakeRoom() {
  const auto is_half_open = [](const auto& from) { return from->session == 0; };
  if (std::count_if(incoming_.begin(), incoming_.end(), is_half_open) < options_.max_half_open) return;
  incoming_.erase(std::find_if(incoming_.begin(), incoming_.end(), is_half_open));  // the oldest
}

void Agent::Try(Outgoing* to, uint64_t now) {
  to->since_ns = now;
  const StatusOr<int> fd = StartConnect(options_.nodes[to->peer]);
  if (!fd.ok()) return Drop(to, fd.status(), now);
  to->stream = Stream(*fd);
  to->state = Outgoing::State::kConnecting;
}

void Agent::Greet(Outgoing* to, uint64_t now) {
  if (const Status connected = ConnectResult(to->stream.fd()); !connected.ok()) return Drop(to, connected, now);
  to->state = Outgoing::State::kGreeting;
  to->handshake.emplace(options_.secret, options_.shape,
                        Introduction{.from = options_.self, .to = to->peer, .incarnation = options_.incarnation});
  const Frame hello = to->handshake->Hello();
  if (const Status sent = to->stream.Send(hello.type, hello.body); !sent.ok()) Drop(to, sent, now);
}

void Agent::Serve(Outgoing* to, short events, uint64_t now) {
  if (events == 0) return;
  if (to->state == Outgoing::State::kConnecting) return Greet(to, now);
  Status status = to->stream.Flush();
  if (status.ok()) status = to->stream.Receive([&](const Frame& frame) { return TakeFrame(to, frame, now); });
  if (!status.ok()) Drop(to, status, now);
}

Status Agent::TakeFrame(Outgoing* to, const Frame& frame, uint64_t now) {
  to->last_heard_ns = std::max(now, NowNanos());
  if (to->state == Outgoing::State::kUp) return to->heartbeats->Check(frame);
  StatusOr<std::optional<Frame>> answer = to->handshake->Take(frame);
  if (!answer.ok()) return answer.status();
  if (answer->has_value()) return to->stream.Send((*answer)->type, (*answer)->body);
  const std::lock_guard lock(mutex_);
  PeerView& view = views_[to->peer];
  view.key = to->handshake->session_key();
  view.payload = to->handshake->payload();
  to->heartbeats.emplace(view.key, kPing, kPong);
  to->handshake.reset();
  to->state = Outgoing::State::kUp;
  to->backoff_ns = 0;
  generations_[to->peer].store(++sequence_, std::memory_order_release);
  return absl::OkStatus();
}

// What the time of day asks for.
void Agent::Watch(Outgoing* to, uint64_t now) {
  switch (to->state) {
    case Outgoing::State::kWaiting:
      if (now >= to->next_try_ns) Try(to, now);
      return;
    case Outgoing::State::kConnecting:
    case Outgoing::State::kGreeting:
      if (Later(now, to->since_ns, options_.handshake_limit)) {
        Drop(to, absl::UnavailableError("it did not answer in time"), now);
      }
      return;
    case Outgoing::State::kUp:
      if (Later(now, to->last_heard_ns, options_.silence_limit)) {
        return Drop(to, absl::UnavailableError("it fell silent"), now);
      }
      if (Later(now, to->last_sent_ns, options_.heartbeat)) {
        to->last_sent_ns = now;
        const Frame ping = to->heartbeats->Next();
        if (const Status sent = to->stream.Send(ping.type, ping.body); !sent.ok()) Drop(to, sent, now);
      }
  }
}

void Agent::Drop(Outgoing* to, const Status& why, uint64_t now) {
  to->stream.Close();
  to->handshake.reset();
  to->heartbeats.reset();
  to->state = Outgoing::State::kWaiting;
  to->backoff_ns = std::clamp(2 * to->backoff_ns, kFirstBackoffNs, kLongestBackoffNs);
  to->next_try_ns = now + to->backoff_ns;
  const std::lock_guard lock(mutex_);
  views_[to->peer].why_down = std::string(why.message());
  generations_[to->peer].store(0, std::memory_order_release);
}

bool Agent::Serve(Incoming* from, short events, uint64_t now) {
  Status status = absl::OkStatus();
  if (events != 0) status = from->stream.Flush();
  if (events != 0 && status.ok()) {
    status = from->stream.Receive([&](const Frame& frame) { return TakeFrame(from, frame, now); });
  }
  const absl::Duration limit = from->session == 0 ? options_.handshake_limit : options_.silence_limit;
  if (status.ok() && Later(now, from->last_heard_ns, limit)) status = absl::UnavailableError("it fell silent");
  if (status.ok()) return from->stream.open();
  Drop(from, status);
  return false;
}

Status Agent::TakeFrame(Incoming* from, const Frame& frame, uint64_t now) {
  if (!from->stream.open()) return absl::OkStatus();
  if (from->session != 0) {
    GANNET_RETURN_IF_ERROR(from->heartbeats->Check(frame));
    from->last_heard_ns = std::max(now, NowNanos());
    const Frame pong = from->heartbeats->Next();
    return from->stream.Send(pong.type, pong.body);
  }
  const Frame answer = from->handshake->Take(frame);
  Status refused = absl::OkStatus();
  if (from->handshake->refused()) {
    RecordRefusal(from->handshake->refusal());
    refused = absl::PermissionDeniedError(from->handshake->refusal());
  }
  // Before the answer: with that in hand the peer comes with tickets at once.
  if (from->handshake->done()) Establish(from);
  GANNET_RETURN_IF_ERROR(from->stream.Send(answer.type, answer.body));
  return refused;
}

void Agent::Establish(Incoming* from) {
  from->from = from->handshake->introduction().from;
  from->session = ++sequence_;
  from->last_heard_ns = NowNanos();
  from->heartbeats.emplace(from->handshake->session_key(), kPong, kPing);
  // An older session of that node is of a process that died, or of a connection that broke.
  for (const auto& other : incoming_) {
    if (other.get() != from && other->session != 0 && other->from == from->from) {
      Drop(other.get(), absl::UnavailableError("a newer session took its place"));
    }
  }
  const std::lock_guard lock(mutex_);
  admitted_[from->from] = {.session = from->session, .key = from->handshake->session_key(), .book = {}};
  from->handshake.reset();
}

void Agent::Drop(Incoming* from, const Status& why) {
  from->stream.Close();
  if (from->session == 0) {
    if (!absl::IsPermissionDenied(why) && !stop_) RecordRefusal(std::string(why.message()));
    return;
  }
  const uint64_t session = std::exchange(from->session, 0);
  {
    const std::lock_guard lock(mutex_);
    const auto admission = admitted_.find(from->from);
    if (admission != admitted_.end() && admission->second.session == session) admitted_.erase(admission);
  }
  observer_->SessionEnded(session);
}

void Agent::RecordRefusal(const std::string& reason) {
  ++refusals_;
  const std::lock_guard lock(mutex_);
  last_refusal_ = reason;
}

}  // namespace gannet::rdma::control
