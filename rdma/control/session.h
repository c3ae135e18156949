// Messages between two authenticated nodes: heartbeats, and credentials for queue pairs. All carry a message
// authentication code by the session's key.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "rdma/control/crypto.h"
#include "rdma/control/handshake.h"
#include "rdma/control/stream.h"

namespace gannet::rdma::control {

inline constexpr size_t kMaxNewsBytes = 3500;

// PING by the client, PONG by the server; numbered, so that an old one is not taken for a sign of life. Each may also
// carry news.
class Heartbeats {
 public:
  Heartbeats(const Key& key, FrameType sends, FrameType receives) : key_(key), sends_(sends), receives_(receives) {}

  // `news`: at most kMaxNewsBytes.
  Frame Next(std::span<const std::byte> news = {});
  // Returns the news. InvalidArgument: the heartbeat is not the peer's, or is an old one.
  StatusOr<std::vector<std::byte>> Check(const Frame& frame);

 private:
  Key key_;
  FrameType sends_;
  FrameType receives_;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
};

// A credential admits one queue pair. It is sent unencrypted (in rdma_cm's private data) and is valid once.
struct Credential {
  NodeId from = 0;
  uint16_t channel = 0;
  uint64_t number = 0;
  Tag tag{};
};

Credential MakeCredential(const Key& key, NodeId from, uint16_t channel, uint64_t number);

// The used credentials of one session.
class CredentialBook {
 public:
  // PermissionDenied: the credential was not made with `key`, or has been used.
  Status Use(const Key& key, const Credential& credential);

 private:
  std::unordered_set<uint64_t> used_;
};

}  // namespace gannet::rdma::control
