// A node's part in the control network: it knows which nodes are alive, and lets nobody in who does not know the
// secret.
//
// Every agent keeps one TCP session to every other node's agent (so there are two between two nodes, one each way) and
// sends heartbeats on it. A process that dies closes its sockets, which its peers see at once; a machine that falls
// silent is given up after `silence_limit`. Who is not there is tried again for ever, so the order of starting does not
// matter, and a node that comes back is found.
//
//   outgoing session up:   generation(peer) != 0; details(peer) has what it told us about itself
//   incoming session up:   tickets of that peer are honoured
//   either ends:           generation 0; Observer::SessionEnded, and what its tickets admitted is cut off
//
// A peer that is no Gannet node, or an evil one, costs at most one of `max_half_open` places for `handshake_limit`, and
// the oldest of them makes room for a new one.
//
// Thread-safe. One thread of its own; observers are called on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rdma/base/status.h"
#include "rdma/base/thread.h"
#include "rdma/control/endpoint.h"
#include "rdma/control/handshake.h"
#include "rdma/control/session.h"

namespace gannet::rdma::control {

struct AgentOptions {
  NodeId self = 0;
  uint64_t incarnation = 0;  // of this process in this place: never the same twice
  ClusterShape shape;
  std::string secret;
  std::vector<Endpoint> nodes;     // of every node, by id
  std::vector<std::byte> payload;  // what peers are told about this node; small
  absl::Duration heartbeat = absl::Milliseconds(250);
  absl::Duration silence_limit = absl::Seconds(5);
  absl::Duration handshake_limit = absl::Seconds(5);
  int max_half_open = 64;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // An incoming session, whose number Admit returned, is over: nothing that it admitted may go on.
  virtual void SessionEnded(uint64_t session) = 0;
};

class Agent {
 public:
  struct Details {
    uint64_t generation = 0;
    std::vector<std::byte> payload;
  };

  // Listens at nodes[self]. FailedPrecondition if somebody else does.
  static StatusOr<std::unique_ptr<Agent>> Start(AgentOptions options, Observer* observer);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Ends all sessions and stops the thread. Not from an observer.
  void Stop();
  // The same without waiting for the thread.
  void RequestStop();

  // Not zero while an outgoing session to `peer` is up, and another one for each session. For `self`: 1 until stopped.
  uint64_t generation(NodeId peer) const { return generations_[peer].load(std::memory_order_acquire); }
  // Unavailable, with the reason, if there is no session.
  StatusOr<Details> details(NodeId peer) const;
  // Makes a ticket for a queue pair to `peer`; Unavailable if there is no session.
  StatusOr<Ticket> MakeTicketFor(NodeId peer, uint16_t channel);
  // The incoming session that a ticket belongs to. PermissionDenied if it is not good.
  StatusOr<uint64_t> Admit(const Ticket& ticket);

  // Why there is no session to `peer`, for messages.
  std::string WhyDown(NodeId peer) const;
  // Who was refused by this node, and why: the latest, and how many.
  std::string last_refusal() const;
  uint64_t refusals() const { return refusals_.load(); }
  // Connections that have not proved who they are.
  size_t half_open() const { return half_open_.load(); }

 private:
  // A session that this node started.
  struct Outgoing {
    enum class State : uint8_t { kWaiting, kConnecting, kGreeting, kUp };
    NodeId peer = 0;
    State state = State::kWaiting;
    Stream stream;
    std::optional<ClientHandshake> handshake;
    std::optional<Heartbeats> heartbeats;
    uint64_t next_try_ns = 0;
    uint64_t backoff_ns = 0;
    uint64_t since_ns = 0;       // of this try
    uint64_t last_heard_ns = 0;  // when up
    uint64_t last_sent_ns = 0;
  };
  // A session that a peer started.
  struct Incoming {
    Stream stream;
    std::optional<ServerHandshake> handshake;  // until it is up
    std::optional<Heartbeats> heartbeats;
    uint64_t session = 0;
    NodeId from = 0;
    uint64_t last_heard_ns = 0;  // or when it came
  };
  // What others ask about: guarded by mutex_.
  struct PeerView {
    std::string why_down = "never seen";
    std::vector<std::byte> payload;
    Key key{};
  };
  struct Admission {
    uint64_t session = 0;
    Key key{};
    TicketBook book;
  };

  Agent(AgentOptions options, Observer* observer, int listener);

  void Run();
  void Turn();
  void AcceptAll(uint64_t now);
  void MakeRoom();

  void Try(Outgoing* to, uint64_t now);
  void Greet(Outgoing* to, uint64_t now);
  void Serve(Outgoing* to, short events, uint64_t now);
  Status TakeFrame(Outgoing* to, const Frame& frame, uint64_t now);
  void Watch(Outgoing* to, uint64_t now);
  void Drop(Outgoing* to, const Status& why, uint64_t now);

  // False: it has ended.
  bool Serve(Incoming* from, short events, uint64_t now);
  Status TakeFrame(Incoming* from, const Frame& frame, uint64_t now);
  void Establish(Incoming* from);
  void Drop(Incoming* from, const Status& why);
  void RecordRefusal(const std::string& reason);

  const AgentOptions options_;
  Observer* const observer_;
  int listener_;
  int wake_;
  std::atomic<bool> stop_ = false;
  uint64_t sequence_ = 1;  // of sessions, both ways
  std::unique_ptr<std::atomic<uint64_t>[]> generations_;
  std::atomic<uint64_t> next_ticket_ = 1;
  std::atomic<uint64_t> refusals_ = 0;
  std::atomic<size_t> half_open_ = 0;

  // The thread's own.
  std::vector<Outgoing> outgoing_;
  std::vector<std::unique_ptr<Incoming>> incoming_;

  mutable Mutex mutex_;
  std::vector<PeerView> views_;           // by node
  std::map<NodeId, Admission> admitted_;  // by node
  std::string last_refusal_;

  Thread thread_;
};

}  // namespace gannet::rdma::control
