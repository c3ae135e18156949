// The agent's thread: connections, handshakes, heartbeats.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "rdma/control/agent.h"

namespace gannet::rdma::control {
namespace {

constexpr int kLongestPollMs = 50;
constexpr uint64_t kAcceptPauseNs = 100'000'000;
constexpr uint64_t kFirstBackoffNs = 20'000'000;
constexpr uint64_t kLongestBackoffNs = 500'000'000;

bool Later(uint64_t now, uint64_t since, absl::Duration limit) {
  return now > since && now - since > static_cast<uint64_t>(absl::ToInt64Nanoseconds(limit));
}

}  // namespace

void Agent::CutAll(uint64_t now) {
  const Status why = absl::UnavailableError("another node found it dead");
  const auto is_asked_for = [this](NodeId peer, uint64_t session) {
    return session != 0 && to_cut_[peer].load() == session;
  };
  for (Outgoing& to : outgoing_) {
    if (is_asked_for(to.peer, to.session)) Drop(&to, why, now);
  }
  std::erase_if(incoming_, [&](const std::unique_ptr<Incoming>& from) {
    if (!is_asked_for(from->from, from->session)) return false;
    Drop(from.get(), why);
    return true;
  });
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
  // The time is taken before the poll: if this thread is kept from running, a peer that spoke in time is still not
  // dropped.
  const uint64_t now = NowNanos();
  std::vector<pollfd> polled{{.fd = wake_, .events = POLLIN, .revents = 0},
                             {.fd = now >= accept_again_ns_ ? listener_ : -1, .events = POLLIN, .revents = 0}};
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
  poll(polled.data(), polled.size(), kLongestPollMs);
  uint64_t woken = 0;
  if (polled[0].revents != 0) (void)!read(wake_, &woken, sizeof woken);
  size_t next = 2;
  for (Outgoing& to : outgoing_) {
    if (to.stream.open()) Serve(&to, polled[next].revents, now);
    ++next;
    Watch(&to, now);
  }
  // To serve one may need a look at all of them, so none leaves the list meanwhile.
  std::vector<const Incoming*> ended;
  for (const auto& from : incoming_) {
    if (!Serve(from.get(), polled[next++].revents, now)) ended.push_back(from.get());
  }
  std::erase_if(incoming_, [&ended](const std::unique_ptr<Incoming>& from) {
    return std::ranges::find(ended, from.get()) != ended.end();
  });
  CutAll(now);
  if (polled[1].revents != 0) AcceptAll(now);
  half_open_.store(static_cast<size_t>(
      std::count_if(incoming_.begin(), incoming_.end(), [](const auto& from) { return from->session == 0; })));
}

void Agent::AcceptAll(uint64_t now) {
  // A bounded number, so that a flood of connections does not delay the heartbeats.
  for (int i = 0; i < options_.max_half_open; ++i) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return NoteNotAccepted(errno, now);
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

void Agent::NoteNotAccepted(int error, uint64_t now) {
  if (error == EAGAIN) lacks_files_ = false;  // none is left
  if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
  // The connection stays in the queue, so a poll for it would return at once.
  accept_again_ns_ = now + kAcceptPauseNs;
  if (std::exchange(lacks_files_, true)) return;
  RecordRefusal(absl::StrCat("cannot accept connections: ", strerror(error),
                             error == EMFILE ? ": raise the limit of open files (ulimit -n)" : ""));
}

void Agent::MakeRoom() {
  const auto is_half_open = [](const auto& from) { return from->session == 0; };
  if (std::count_if(incoming_.begin(), incoming_.end(), is_half_open) < options_.max_half_open) return;
  incoming_.erase(std::find_if(incoming_.begin(), incoming_.end(), is_half_open));  // the oldest
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
    // After it has declined it does not wait for an answer.
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
  to->last_sent_ns = 0;  // the first heartbeat goes out now: its answer carries the news
  has_place_ = true;
  return absl::OkStatus();
}

// Handles timeouts: connects, heartbeats, limits.
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
    // The session is established before the answer is sent: after it the peer may present credentials at once.
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
  // An older session of that node belongs to a process that died or to a connection that broke.
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
  view.book = CredentialBook();
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

}  // namespace gannet::rdma::control
