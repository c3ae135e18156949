// How two nodes prove to each other that they know the cluster's secret, without sending it, and agree on a key.
//
//   client                                   server
//     HELLO {version, who, cluster, nonce} ->
//                                         <- CHALLENGE {nonce}, or REFUSE {reason}
//     PROOF {HMAC(secret, "client", all of the above)} ->
//                                         <- WELCOME {HMAC(secret, "server", the same), sealed payload}, or REFUSE
//
// Both nonces are fresh, so nothing of it can be replayed; the two labels keep a proof from being reflected. The
// session key is another HMAC of the same text. The payload is the server's {incarnation, region table}: it is
// encrypted, since it contains the key of the server's memory.
//
// These are state machines without I/O: a message in, a message out. What comes in is not trusted.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rdma/base/status.h"
#include "rdma/control/crypto.h"
#include "rdma/control/stream.h"
#include "rdma/global_address.h"

namespace gannet::rdma::control {

inline constexpr uint64_t kMagic = 0x3174656e6e6147ull;  // "Gannet1"
inline constexpr uint16_t kProtocolVersion = 1;

enum FrameType : uint8_t { kHello = 1, kChallenge, kProof, kWelcome, kRefuse, kPing, kPong };

// What both sides must agree on.
struct ClusterShape {
  uint16_t version = kProtocolVersion;
  uint16_t num_nodes = 0;
  uint64_t bytes_per_node = 0;
};

// Who asks whom. `incarnation` tells a process that took the client's place anew from its predecessor.
struct Introduction {
  NodeId from = 0;
  NodeId to = 0;
  uint64_t incarnation = 0;
};

class ClientHandshake {
 public:
  ClientHandshake(std::string secret, const ClusterShape& shape, const Introduction& introduction);

  Frame Hello() const { return hello_; }
  // The next message to send, if any. An error ends the connection: PermissionDenied if either side refused.
  StatusOr<std::optional<Frame>> Take(const Frame& frame);

  // After WELCOME.
  bool done() const { return done_; }
  const Key& session_key() const { return session_key_; }
  const std::vector<std::byte>& payload() const { return payload_; }

 private:
  StatusOr<std::optional<Frame>> Answer(const Frame& challenge);
  Status Accept(const Frame& welcome);

  std::string secret_;
  Frame hello_;
  std::optional<Frame> challenge_;
  bool done_ = false;
  Key session_key_{};
  std::vector<std::byte> payload_;
};

class ServerHandshake {
 public:
  // `payload` is given to whoever proves to know the secret.
  ServerHandshake(std::string secret, const ClusterShape& shape, NodeId self, std::vector<std::byte> payload);

  // The message to send. If refused() after that, send it and close.
  Frame Take(const Frame& frame);

  bool done() const { return done_; }
  bool refused() const { return !refusal_.empty(); }
  const std::string& refusal() const { return refusal_; }
  // After HELLO; to be believed after done().
  const Introduction& introduction() const { return introduction_; }
  const Key& session_key() const { return session_key_; }

 private:
  Frame Refuse(std::string reason);
  Frame Challenge(const Frame& hello);
  Frame Judge(const Frame& proof);

  std::string secret_;
  ClusterShape shape_;
  NodeId self_;
  std::vector<std::byte> payload_;
  Introduction introduction_;
  std::optional<Frame> hello_;
  Frame challenge_;
  bool done_ = false;
  std::string refusal_;
  Key session_key_{};
};

}  // namespace gannet::rdma::control
