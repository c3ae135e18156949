// How two nodes prove to each other that they know the cluster's secret, without sending it, and agree on a key.
//
//   client                                   server
//     HELLO {version, cluster, who, nonce} ->
//                                         <- CHALLENGE {incarnation, nonce}, or REFUSE {kind, reason}
//     PROOF {HMAC(secret, "client", all of the above), sealed payload} ->
//       or DECLINE {HMAC, reason}
//                                         <- WELCOME {HMAC(secret, "server", the same), sealed payload}, or REFUSE
//
// Both nonces are fresh, so no message can be replayed. The labels prevent the reflection of a proof. The session key
// is another HMAC of the same text. The payloads describe the nodes and include their region tables. They are
// encrypted, because these tables contain the keys of the nodes' memory.
//
// These are state machines without I/O: a message in, a message out. Incoming messages are untrusted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "rdma/control/crypto.h"
#include "rdma/control/stream.h"
#include "rdma/global_address.h"

namespace gannet::rdma::control {

inline constexpr uint64_t kMagic = 0x3174656e6e6147ull;  // "Gannet1"
inline constexpr uint16_t kProtocolVersion = 4;

enum FrameType : uint8_t { kHello = 1, kChallenge, kProof, kWelcome, kRefuse, kPing, kPong, kDecline };

// Values on which both sides must agree.
struct ClusterShape {
  uint16_t version = kProtocolVersion;
  uint16_t num_nodes = 0;
  uint64_t bytes_per_node = 0;
  uint64_t configuration = 0;  // a hash of all other common settings
};

// The client and the server. `incarnation` distinguishes a new process in the client's place from its predecessor.
struct Introduction {
  NodeId from = 0;
  NodeId to = 0;
  uint64_t incarnation = 0;
};

// Reason why one side refuses the other.
struct Refusal {
  enum Kind : uint8_t { kDoesNotFit = 0, kPlaceIsTaken = 1 };  // kPlaceIsTaken may be temporary
  Kind kind = kDoesNotFit;
  std::string reason;  // empty: there is none
};

class ClientHandshake {
 public:
  // Reason why this client refuses a server of this incarnation; empty: it does not refuse.
  using Judge = std::function<std::string(uint64_t incarnation)>;

  // `payload` goes to the server with the proof; only a peer that knows the secret can decrypt it.
  ClientHandshake(std::string secret, const ClusterShape& shape, const Introduction& introduction,
                  std::vector<std::byte> payload, Judge judge = nullptr);

  Frame Hello() const { return hello_; }
  // The next message to send, if any. An error ends the connection: PermissionDenied if either side refused.
  StatusOr<std::optional<Frame>> Take(const Frame& frame);

  // Valid after WELCOME.
  bool done() const { return done_; }
  const Key& session_key() const { return session_key_; }
  const std::vector<std::byte>& payload() const { return peers_payload_; }
  // Valid after CHALLENGE; authenticated after done().
  uint64_t incarnation() const { return incarnation_; }
  // The reason of the server if it refused, or of this client if it declined.
  const Refusal& refusal() const { return refusal_; }

 private:
  StatusOr<std::optional<Frame>> Answer(const Frame& challenge);
  Status Accept(const Frame& welcome);

  std::string secret_;
  std::vector<std::byte> payload_;
  Judge judge_;
  Frame hello_;
  std::optional<Frame> challenge_;
  uint64_t incarnation_ = 0;
  Refusal refusal_;
  bool done_ = false;
  Key session_key_{};
  std::vector<std::byte> peers_payload_;
};

class ServerHandshake {
 public:
  // Reason for not admitting, at this time, a client that has proved to know the secret.
  using Judge = std::function<Refusal(const Introduction&)>;

  struct Self {
    NodeId id = 0;
    uint64_t incarnation = 0;
    std::vector<std::byte> payload;  // sent to clients that have proved to know the secret
  };

  ServerHandshake(std::string secret, const ClusterShape& shape, Self self, Judge judge = nullptr);

  // The message to send, if any. If refused() or declined() after that, send it and close.
  std::optional<Frame> Take(const Frame& frame);

  bool done() const { return done_; }
  bool refused() const { return !refusal_.reason.empty(); }
  const std::string& refusal() const { return refusal_.reason; }
  // True if the client knows the secret and refuses this server.
  bool declined() const { return !declined_.empty(); }
  const std::string& why_declined() const { return declined_; }
  // Valid after HELLO; authenticated after done() or declined().
  const Introduction& introduction() const { return introduction_; }
  const Key& session_key() const { return session_key_; }
  const std::vector<std::byte>& payload() const { return peers_payload_; }

 private:
  Frame Refuse(Refusal refusal);
  Frame Refuse(std::string reason) { return Refuse(Refusal{.reason = std::move(reason)}); }
  Frame Challenge(const Frame& hello);
  Frame Welcome(const Frame& proof);
  std::optional<Frame> Hear(const Frame& decline);

  std::string secret_;
  ClusterShape shape_;
  Self self_;
  Judge judge_;
  Introduction introduction_;
  std::optional<Frame> hello_;
  Frame challenge_;
  bool done_ = false;
  Refusal refusal_;
  std::string declined_;
  Key session_key_{};
  std::vector<std::byte> peers_payload_;
};

}  // namespace gannet::rdma::control
