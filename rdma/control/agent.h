// A node's part in the control network: it knows which nodes are alive, and admits only peers that know the secret.
//
// Any two agents have one TCP session with heartbeats in both directions; the agent with the higher number starts it. A
// process that dies closes its sockets, which its peers see at once. A silent machine is given up after
// `silence_limit`. An agent keeps trying to reach absent nodes, so nodes may start in any order, and a node that comes
// back is found.
//
//   session up:    generation(peer) != 0; details(peer) has the peer's payload; its credentials are valid
//   it ends:       its credentials are void; Observer::SessionEnded cuts off what they admitted; only then
//   generation(peer)
//                  is 0: once a node is seen dead, nothing that it began can take effect any more
//
// Guests are nodes without a fixed address: processes on any machine that come and go. Their numbers are the highest. A
// guest asks node 0 for its place; if another process has the place, the guest is refused (WaitForPlace). Guests learn
// the addresses of other guests from the nodes.
//
// A peer that is not a Gannet node, or a hostile one, occupies at most one of `max_half_open` places for
// `handshake_limit`, and a new connection replaces the oldest of them.
//
// Thread-safe. The agent has its own thread and calls observers on it.
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
#include "base/status.h"
#include "base/thread.h"
#include "rdma/control/endpoint.h"
#include "rdma/control/handshake.h"
#include "rdma/control/session.h"

namespace gannet::rdma::control {

// Address of a node; a guest's place has none.
using Place = std::optional<Endpoint>;

struct AgentOptions {
  NodeId self = 0;
  uint64_t incarnation = 0;  // of this process in this place: never the same twice
  ClusterShape shape;
  std::string secret;
  std::vector<Place> nodes;        // by id; the guests last
  std::optional<Endpoint> listen;  // if this node is a guest: where, with port 0 for any
  std::vector<std::byte> payload;  // what peers are told about this node; small
  // True if another process may take the place of a node with an address after the first has been seen. If false, nodes
  // that have seen the first process refuse the second.
  bool may_return = true;
  absl::Duration heartbeat = absl::Milliseconds(250);
  absl::Duration silence_limit = absl::Seconds(5);
  absl::Duration handshake_limit = absl::Seconds(5);
  int max_half_open = 64;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Called when a session, whose number Admit returned, has ended. When this returns, nothing that the session admitted
  // is active.
  virtual void SessionEnded(uint64_t session) = 0;
};

class Agent {
 public:
  struct Details {
    uint64_t generation = 0;
    std::vector<std::byte> payload;
  };

  // Listens at nodes[self]. FailedPrecondition: another process does.
  static StatusOr<std::unique_ptr<Agent>> Start(AgentOptions options, Observer* observer);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Ends all sessions and stops the thread. Must not be called by an observer.
  void Stop();
  // Does what Stop does, without waiting for the thread.
  void RequestStop();

  // Number of the current session with `peer`, different for each session; 0: there is none. For `self`: 1 until
  // stopped.
  uint64_t generation(NodeId peer) const { return generations_[peer].load(std::memory_order_acquire); }
  // Unavailable, with the reason, if there is no session.
  StatusOr<Details> details(NodeId peer) const;
  // Makes a credential for a queue pair to `peer`; Unavailable if there is no session.
  StatusOr<Credential> MakeCredentialFor(NodeId peer, uint16_t channel);
  // Returns the session of a credential. PermissionDenied: the credential is not valid.
  StatusOr<uint64_t> Admit(const Credential& credential);

  // Called by a guest. Waits until node 0 has admitted it and has named the other guests. FailedPrecondition: another
  // process has the place. PermissionDenied: this process does not fit the cluster. Unavailable: node 0 did not answer
  // within `limit`.
  Status WaitForPlace(absl::Duration limit) const;
  // PermissionDenied, with the reason: others refused this node. Either a node with an address did, and there is no
  // session with any other such node; or a node that knows the secret has seen another process in this place before.
  Status standing() const;

  // Ends this session with `peer`, because a node has found it dead. True: the session has ended. False: call again.
  bool CutOff(NodeId peer, uint64_t generation);

  // True if there is a session with `guest` or, if this node is a guest, if node 0 had one at its last message.
  bool KnowsOfGuest(NodeId guest) const;

  // Reason why there is no session with `peer`, for messages.
  std::string WhyDown(NodeId peer) const;
  // Peers that this node refused: the latest with the reason, and their number.
  std::string last_refusal() const;
  uint64_t refusals() const { return refusals_.load(); }
  // Number of connections that have not yet authenticated.
  size_t half_open() const { return half_open_.load(); }

 private:
  // What a peer states about itself in the handshake.
  struct About {
    std::string listens_at;
    std::vector<std::byte> payload;
    std::vector<std::byte> Encode() const;
    static StatusOr<About> Decode(std::span<const std::byte> bytes);
  };
  // A session with a node of a lower number, which this node starts.
  struct Outgoing {
    enum class State : uint8_t { kWaiting, kConnecting, kGreeting, kUp };
    NodeId peer = 0;
    Place at;
    State state = State::kWaiting;
    Stream stream;
    std::optional<ClientHandshake> handshake;
    std::optional<Heartbeats> heartbeats;
    uint64_t session = 0;  // when up
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
    uint64_t last_heard_ns = 0;  // or the time of its arrival
  };
  // State for callers' threads: guarded by mutex_.
  struct PeerView {
    std::string why_down = "never seen";
    Refusal refused_us;  // at the last try
    uint64_t incarnation = 0;
    About about;
    Key key{};
    // Valid while a session is up.
    uint64_t session = 0;
    CredentialBook book;
  };

  Agent(AgentOptions options, Observer* observer, int listener);

  bool IsGuest(NodeId node) const { return !options_.nodes[node].has_value(); }
  void Wake();
  void Run();
  void Turn();
  void AcceptAll(uint64_t now);
  // Pauses, and says so once, if this process or machine has no file or memory for another connection.
  void NoteNotAccepted(int error, uint64_t now);
  void MakeRoom();
  // Ends the sessions that CutOff asked for.
  void CutAll(uint64_t now);

  bool MayTry(const Outgoing& to) const;
  void Try(Outgoing* to, uint64_t now);
  void Greet(Outgoing* to, uint64_t now);
  void Serve(Outgoing* to, short events, uint64_t now);
  Status TakeFrame(Outgoing* to, const Frame& frame, uint64_t now);
  Status TakeAnswer(Outgoing* to, const Frame& frame);
  void Watch(Outgoing* to, uint64_t now);
  void Drop(Outgoing* to, const Status& why, uint64_t now);

  // False: the session has ended.
  bool Serve(Incoming* from, short events, uint64_t now);
  Status TakeFrame(Incoming* from, const Frame& frame, uint64_t now);
  Status TakeGreeting(Incoming* from, const Frame& frame);
  Status Establish(Incoming* from);
  void Drop(Incoming* from, const Status& why);

  // Begin and end of a session.
  uint64_t Enter(NodeId peer, const Key& key, uint64_t incarnation, About about);
  void Leave(NodeId peer, uint64_t session, const Status& why);

  std::string JudgeServer(NodeId server, uint64_t incarnation) const;
  Refusal JudgeClient(const Introduction& client) const;
  std::vector<std::byte> NewsFor(NodeId peer) const;
  void TakeNews(NodeId from, std::span<const std::byte> news);
  void RecordRefusal(const std::string& reason);

  const AgentOptions options_;
  Observer* const observer_;
  int listener_;
  int wake_;
  std::atomic<bool> stop_ = false;
  uint64_t sequence_ = 1;  // of sessions
  std::unique_ptr<std::atomic<uint64_t>[]> generations_;
  std::unique_ptr<std::atomic<uint64_t>[]> to_cut_;  // by node: the generation that is to end, if it is up
  std::atomic<uint64_t> next_ticket_ = 1;
  std::atomic<uint64_t> refusals_ = 0;
  std::atomic<size_t> half_open_ = 0;

  // Used by the agent's thread only.
  std::vector<Outgoing> outgoing_;
  std::vector<std::unique_ptr<Incoming>> incoming_;
  bool has_place_ = true;
  uint64_t accept_again_ns_ = 0;
  bool lacks_files_ = false;  // the last accept failed for want of a file or memory

  mutable Mutex mutex_;
  std::vector<PeerView> views_;  // by node
  std::string last_refusal_;
  std::optional<std::vector<NodeId>> fellows_;  // from node 0's last news: the guests that it has sessions with
  std::string declined_;                        // why a node that knows the secret refuses this one

  Thread thread_;
};

}  // namespace gannet::rdma::control
