#include "rdma/control/agent.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rdma/base/check.h"
#include "rdma/base/clock.h"
#include "rdma/rpc.h"

namespace gannet::rdma::control {
namespace {

constexpr int kLongestPollMs = 50;
constexpr uint64_t kFirstBackoffNs = 20'000'000;
constexpr uint64_t kLongestBackoffNs = 500'000'000;
constexpr uint64_t kSelfGeneration = 1;
constexpr uint64_t kLookAgainNs = 1'000'000;

uint64_t Nanos(absl::Duration duration) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
}

bool Later(uint64_t now, uint64_t since, absl::Duration limit) {
  return now > since && now - since > Nanos(limit);
}

}  // namespace

std::vector<std::byte> Agent::About::Encode() const {
  std::vector<std::byte> bytes(2 * sizeof(uint32_t) + listens_at.size() + payload.size());
  WireWriter writer(bytes);
  writer.PutString(listens_at);
  writer.PutBytes(payload);
  return bytes;
}

StatusOr<Agent::About> Agent::About::Decode(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  About about;
  about.listens_at = std::string(reader.GetString());
  const std::span<const std::byte> payload = reader.GetBytes();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  about.payload.assign(payload.begin(), payload.end());
  return about;
}

StatusOr<std::unique_ptr<Agent>> Agent::Start(AgentOptions options, Observer* observer) {
  if (options.self >= options.nodes.size() || options.nodes.size() != options.shape.num_nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", options.self, " of ", options.nodes.size(), " addresses does not exist"));
  }
  const auto has_address = [](const Place& place) { return place.has_value(); };
  if (!options.nodes[0].has_value() || !std::is_partitioned(options.nodes.begin(), options.nodes.end(), has_address)) {
    return absl::InvalidArgumentError("the nodes without an address, which are guests, must be the last, and not all");
  }
  if (options.secret.empty()) return absl::InvalidArgumentError("the cluster has no secret: set one");
  Place at = options.nodes[options.self].has_value() ? options.nodes[options.self] : options.listen;
  if (!at.has_value()) return absl::InvalidArgumentError("a guest needs an address to listen at");
  const StatusOr<int> listener = Listen(&*at);
  if (!listener.ok()) return listener.status();
  options.listen = at;
  return std::unique_ptr<Agent>(new Agent(std::move(options), observer, *listener));
}

Agent::Agent(AgentOptions options, Observer* observer, int listener)
    : options_(std::move(options)),
      observer_(observer),
      listener_(listener),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      generations_(new std::atomic<uint64_t>[options_.nodes.size()]()),
      has_place_(!IsGuest(options_.self)),
      views_(options_.nodes.size()) {
  GANNET_CHECK(wake_ >= 0, "no eventfd: error %d", errno);
  for (NodeId peer = 0; peer < options_.self; ++peer) {
    outgoing_.emplace_back();
    outgoing_.back().peer = peer;
    outgoing_.back().at = options_.nodes[peer];
  }
  // A node is its own peer, too: its queue pairs to itself need tickets.
  PeerView& self = views_[options_.self];
  FillRandom(self.key);
  self.about = {.listens_at = options_.listen->ToString(), .payload = options_.payload};
  self.session = sequence_++;
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
  return Details{.generation = generation, .payload = view.about.payload};
}

StatusOr<Ticket> Agent::MakeTicketFor(NodeId peer, uint16_t channel) {
  const std::lock_guard lock(mutex_);
  if (generations_[peer].load() == 0) return absl::UnavailableError(absl::StrCat("node ", peer, " is not there"));
  return MakeTicket(views_[peer].key, options_.self, channel, next_ticket_.fetch_add(1));
}

StatusOr<uint64_t> Agent::Admit(const Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  if (ticket.from >= views_.size() || views_[ticket.from].session == 0) {
    return absl::PermissionDeniedError(absl::StrCat("node ", ticket.from, " has no session"));
  }
  PeerView& view = views_[ticket.from];
  GANNET_RETURN_IF_ERROR(view.book.Use(view.key, ticket));
  return view.session;
}

Status Agent::WaitForPlace(absl::Duration limit) const {
  for (const uint64_t deadline = NowNanos() + Nanos(limit);;) {
    {
      const std::lock_guard lock(mutex_);
      if (fellows_.has_value()) return absl::OkStatus();
      const Refusal& refusal = views_[0].refused_us;
      if (!refusal.reason.empty()) {
        const std::string what = absl::StrCat("node 0: ", refusal.reason);
        return refusal.kind == Refusal::kPlaceIsTaken ? absl::FailedPreconditionError(what)
                                                      : absl::PermissionDeniedError(what);
      }
    }
    if (NowNanos() >= deadline || stop_) {
      return absl::UnavailableError(absl::StrCat("node 0 is not there (", WhyDown(0), ")"));
    }
    SleepForNanos(kLookAgainNs);
  }
}

Status Agent::standing() const {
  const std::lock_guard lock(mutex_);
  if (!declined_.empty()) return absl::PermissionDeniedError(declined_);
  Status refused = absl::OkStatus();
  for (size_t peer = 0; peer < views_.size(); ++peer) {
    if (peer == options_.self || IsGuest(static_cast<NodeId>(peer))) continue;
    if (views_[peer].session != 0) return absl::OkStatus();
    const std::string& reason = views_[peer].refused_us.reason;
    if (!reason.empty()) refused = absl::PermissionDeniedError(absl::StrCat("node ", peer, ": ", reason));
  }
  return refused;
}

bool Agent::KnowsOfGuest(NodeId guest) const {
  if (generation(guest) != 0) return true;
  const std::lock_guard lock(mutex_);
  return fellows_.has_value() && std::count(fellows_->begin(), fellows_->end(), guest) > 0;
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
    from->handshake.emplace(
        options_.secret, options_.shape,
        ServerHandshake::Self{
            .id = options_.self, .incarnation = options_.incarnation, .payload = views_[options_.self].about.Encode()},
        [this](const Introduction& client) { return JudgeClient(client); });
    from->last_heard_ns = now;
    incoming_.push_back(std::move(from));
  }
}

void Agent::MakeRoom() {
  const auto is_half_open = [](const auto& from) { return from->session == 0; };
  if (std::count_if(incoming_.begin(), incoming_.end(), is_half_open) < options_.max_half_open) return;
  incoming_.erase(std::find_if(incoming_.begin(), incoming_.end(), is_half_open));  // the oldest
}

// Guests go to node 0 first: it alone decides who has which place.
bool Agent::MayTry(const Outgoing& to) const {
  return to.at.has_value() && (has_place_ || to.peer == 0);
}

void Agent::Try(Outgoing* to, uint64_t now) {
  to->since_ns = now;
  const StatusOr<int> fd = StartConnect(*to->at);
  if (!fd.ok()) return Drop(to, fd.status(), now);
  to->stream = Stream(*fd);
  to->state = Outgoing::State::kConnecting;
}

void Agent::Greet(Outgoing* to, uint64_t now) {
  if (const Status connected = ConnectResult(to->stream.fd()); !connected.ok()) return Drop(to, connected, now);
  to->state = Outgoing::State::kGreeting;
  to->handshake.emplace(options_.secret, options_.shape,
                        Introduction{.from = options_.self, .to = to->peer, .incarnation = options_.incarnation},
                        views_[options_.self].about.Encode(),
                        [this, to](uint64_t incarnation) { return JudgeServer(to->peer, incarnation); });
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
  if (to->state != Outgoing::State::kUp) return TakeAnswer(to, frame);
  const StatusOr<std::vector<std::byte>> news = to->heartbeats->Check(frame);
  if (!news.ok()) return news.status();
  TakeNews(to->peer, *news);
  return absl::OkStatus();
}

Status Agent::TakeAnswer(Outgoing* to, const Frame& frame) {
  ClientHandshake& handshake = *to->handshake;
  StatusOr<std::optional<Frame>> answer = handshake.Take(frame);
  {
    const std::lock_guard lock(mutex_);
    views_[to->peer].refused_us = handshake.refusal();
  }
  if (!answer.ok()) return answer.status();
  if (answer->has_value()) {
    GANNET_RETURN_IF_ERROR(to->stream.Send((*answer)->type, (*answer)->body));
    // What it declined it does not wait for.
    return handshake.refusal().reason.empty() ? absl::OkStatus()
                                              : absl::PermissionDeniedError(handshake.refusal().reason);
  }
  StatusOr<About> about = About::Decode(handshake.payload());
  if (!about.ok()) return about.status();
  to->session = Enter(to->peer, handshake.session_key(), handshake.incarnation(), *std::move(about));
  to->heartbeats.emplace(handshake.session_key(), kPing, kPong);
  to->handshake.reset();
  to->state = Outgoing::State::kUp;
  to->backoff_ns = 0;
  to->last_sent_ns = 0;  // the first one goes out now: its answer has the news
  has_place_ = true;
  return absl::OkStatus();
}

// What the time of day asks for.
void Agent::Watch(Outgoing* to, uint64_t now) {
  switch (to->state) {
    case Outgoing::State::kWaiting:
      if (now >= to->next_try_ns && MayTry(*to)) Try(to, now);
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
  Leave(to->peer, std::exchange(to->session, 0), why);
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
  if (from->session == 0) return TakeGreeting(from, frame);
  const StatusOr<std::vector<std::byte>> news = from->heartbeats->Check(frame);
  if (!news.ok()) return news.status();
  from->last_heard_ns = std::max(now, NowNanos());
  const Frame pong = from->heartbeats->Next(NewsFor(from->from));
  return from->stream.Send(pong.type, pong.body);
}

Status Agent::TakeGreeting(Incoming* from, const Frame& frame) {
  const std::optional<Frame> answer = from->handshake->Take(frame);
  Status ends = absl::OkStatus();
  if (from->handshake->refused()) {
    RecordRefusal(from->handshake->refusal());
    ends = absl::PermissionDeniedError(from->handshake->refusal());
  } else if (from->handshake->declined()) {
    const NodeId peer = from->handshake->introduction().from;
    const std::string& why = from->handshake->why_declined();
    RecordRefusal(absl::StrCat("node ", peer, " declined: ", absl::CHexEscape(why)));
    // A guest that outlived its cluster is no reason to leave.
    const std::lock_guard lock(mutex_);
    if (!IsGuest(peer)) declined_ = absl::StrCat("node ", peer, ": ", absl::CHexEscape(why));
    ends = absl::PermissionDeniedError(why);
  } else if (from->handshake->done()) {
    // Before the answer: with that in hand the peer comes with tickets at once.
    GANNET_RETURN_IF_ERROR(Establish(from));
  }
  if (answer.has_value()) GANNET_RETURN_IF_ERROR(from->stream.Send(answer->type, answer->body));
  return ends;
}

Status Agent::Establish(Incoming* from) {
  const ServerHandshake& handshake = *from->handshake;
  StatusOr<About> about = About::Decode(handshake.payload());
  if (!about.ok()) return about.status();
  from->from = handshake.introduction().from;
  // An older session of that node is of a process that died, or of a connection that broke.
  for (const auto& other : incoming_) {
    if (other.get() != from && other->session != 0 && other->from == from->from) {
      Drop(other.get(), absl::UnavailableError("a newer session took its place"));
    }
  }
  from->session = Enter(from->from, handshake.session_key(), handshake.introduction().incarnation, *std::move(about));
  from->last_heard_ns = NowNanos();
  from->heartbeats.emplace(handshake.session_key(), kPong, kPing);
  from->handshake.reset();
  return absl::OkStatus();
}

void Agent::Drop(Incoming* from, const Status& why) {
  from->stream.Close();
  if (from->session != 0) return Leave(from->from, std::exchange(from->session, 0), why);
  if (!absl::IsPermissionDenied(why) && !stop_) RecordRefusal(std::string(why.message()));
}

uint64_t Agent::Enter(NodeId peer, const Key& key, uint64_t incarnation, About about) {
  const std::lock_guard lock(mutex_);
  PeerView& view = views_[peer];
  view.refused_us = {};
  view.incarnation = incarnation;
  view.about = std::move(about);
  view.key = key;
  view.book = TicketBook();
  view.session = ++sequence_;
  generations_[peer].store(view.session, std::memory_order_release);
  return view.session;
}

void Agent::Leave(NodeId peer, uint64_t session, const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (session != 0) views_[peer].session = 0;
    views_[peer].why_down = std::string(why.message());
  }
  if (session == 0) return;
  observer_->SessionEnded(session);
  generations_[peer].store(0, std::memory_order_release);
}

std::string Agent::JudgeServer(NodeId server, uint64_t incarnation) const {
  const std::lock_guard lock(mutex_);
  const uint64_t seen = views_[server].incarnation;
  if (options_.may_return || IsGuest(server) || seen == 0 || seen == incarnation) return "";
  return absl::StrCat("node ", server, " was in this cluster before, as another process; its data went with that");
}

Refusal Agent::JudgeClient(const Introduction& client) const {
  const std::lock_guard lock(mutex_);
  const PeerView& view = views_[client.from];
  if (view.incarnation == 0 || view.incarnation == client.incarnation) return {};
  if (IsGuest(client.from)) {
    if (view.session == 0) return {};
    return {.kind = Refusal::kPlaceIsTaken, .reason = absl::StrCat("another process has place ", client.from)};
  }
  if (options_.may_return) return {};
  return {.reason = absl::StrCat("node ", client.from, " was in this cluster before, as another process; its data ",
                                 "went with that")};
}

// For guests, where the other guests are: | number 2 | address, as a string |...
std::vector<std::byte> Agent::NewsFor(NodeId peer) const {
  if (!IsGuest(peer)) return {};
  std::vector<std::byte> news(kMaxNewsBytes);
  WireWriter writer(news);
  const std::lock_guard lock(mutex_);
  for (NodeId guest = 0; guest < views_.size(); ++guest) {
    if (!IsGuest(guest) || guest == options_.self || guest == peer || views_[guest].session == 0) continue;
    const std::string& at = views_[guest].about.listens_at;
    if (writer.room() < sizeof(NodeId) + sizeof(uint32_t) + at.size()) break;
    writer.PutU16(guest);
    writer.PutString(at);
  }
  news.resize(writer.size());
  return news;
}

void Agent::TakeNews(NodeId from, std::span<const std::byte> news) {
  WireReader reader(news);
  std::vector<NodeId> guests;
  while (reader.remaining() > 0) {
    const NodeId guest = reader.GetU16();
    const std::string at(reader.GetString());
    if (!reader.ok() || guest >= views_.size() || !IsGuest(guest)) return;
    guests.push_back(guest);
    const StatusOr<Endpoint> endpoint = ParseNumericEndpoint(at);
    if (endpoint.ok() && guest < outgoing_.size()) outgoing_[guest].at = *endpoint;
  }
  if (from != 0) return;
  const std::lock_guard lock(mutex_);
  fellows_ = std::move(guests);
}

void Agent::RecordRefusal(const std::string& reason) {
  ++refusals_;
  const std::lock_guard lock(mutex_);
  last_refusal_ = reason;
}

}  // namespace gannet::rdma::control
