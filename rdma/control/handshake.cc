#include "rdma/control/handshake.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/rpc.h"

namespace gannet::rdma::control {
namespace {

constexpr size_t kMaxReasonBytes = 512;

// Makes a proof, and also the session's key and the keys of the two payloads.
Key Prove(const std::string& secret, std::string_view label, const Frame& hello, const Frame& challenge) {
  return Authenticate(BytesOf(secret), {BytesOf(label), hello.body, challenge.body});
}
constexpr std::string_view kOfClient = "gannet client";
constexpr std::string_view kOfServer = "gannet server";
constexpr std::string_view kOfSession = "gannet session";
constexpr std::string_view kOfClientsPayload = "gannet client's payload";
constexpr std::string_view kOfServersPayload = "gannet server's payload";
constexpr std::string_view kOfDecline = "gannet decline";

struct HelloBody {
  uint64_t magic = 0;
  ClusterShape shape;
  Introduction introduction;
};

Frame EncodeHello(const HelloBody& hello) {
  std::array<std::byte, 128> buffer;
  WireWriter writer(buffer);
  writer.PutU64(hello.magic);  // magic and version come first in every version
  writer.PutU16(hello.shape.version);
  writer.PutU16(hello.shape.num_nodes);
  writer.PutU64(hello.shape.bytes_per_node);
  writer.PutU64(hello.shape.configuration);
  writer.PutU16(hello.introduction.from);
  writer.PutU16(hello.introduction.to);
  writer.PutU64(hello.introduction.incarnation);
  FillRandom(writer.Reserve(kKeyBytes));
  return {kHello, {writer.written().begin(), writer.written().end()}};
}

// A stranger's text may go to a terminal.
std::string Printable(std::string_view text) {
  std::string printable(text);
  std::replace_if(
      printable.begin(), printable.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return printable;
}

// Returns false if its length is not that of this version.
bool DecodeHello(const Frame& frame, HelloBody* hello) {
  WireReader reader(frame.body);
  hello->magic = reader.GetU64();
  hello->shape.version = reader.GetU16();
  hello->shape.num_nodes = reader.GetU16();
  hello->shape.bytes_per_node = reader.GetU64();
  hello->shape.configuration = reader.GetU64();
  hello->introduction.from = reader.GetU16();
  hello->introduction.to = reader.GetU16();
  hello->introduction.incarnation = reader.GetU64();
  reader.GetRaw(kKeyBytes);
  return reader.Finish().ok();
}

// Why a server refuses this client; empty: it does not.
std::string ReasonToRefuse(const HelloBody& hello, bool whole, const ClusterShape& shape, NodeId self) {
  if (hello.magic != kMagic) return "this is the control port of a Gannet node";
  if (hello.shape.version != shape.version) {
    return absl::StrCat("this node speaks version ", shape.version, " of the protocol, the peer version ",
                        hello.shape.version, ": run the same release everywhere");
  }
  if (!whole) return "a greeting of a wrong length";
  if (hello.introduction.to != self) {
    return absl::StrCat("this is node ", self, ", not node ", hello.introduction.to, ": check the nodes' addresses");
  }
  if (hello.shape.num_nodes != shape.num_nodes || hello.shape.bytes_per_node != shape.bytes_per_node) {
    return absl::StrCat("this cluster has ", shape.num_nodes, " nodes of ", shape.bytes_per_node,
                        " bytes, the peer's has ", hello.shape.num_nodes, " of ", hello.shape.bytes_per_node);
  }
  if (hello.shape.configuration != shape.configuration) {
    return absl::StrCat("node ", self, " has another configuration than node ", hello.introduction.from,
                        ": give all processes of a cluster the same, and run the same release");
  }
  if (hello.introduction.from >= shape.num_nodes || hello.introduction.from <= self) {
    return absl::StrCat("the peer cannot be node ", hello.introduction.from, " of ", shape.num_nodes, ": node ", self,
                        " accepts nodes of higher numbers");
  }
  return "";
}

// | proof | sealed payload |
Frame EncodeProof(FrameType type, const Key& proof, std::span<const std::byte> sealed) {
  std::vector<std::byte> body(kKeyBytes + sizeof(uint32_t) + sealed.size());
  WireWriter writer(body);
  const std::span<std::byte> room = writer.Reserve(kKeyBytes);
  std::copy(proof.begin(), proof.end(), room.begin());
  writer.PutBytes(sealed);
  return {type, std::move(body)};
}

}  // namespace

ClientHandshake::ClientHandshake(std::string secret, const ClusterShape& shape, const Introduction& introduction,
                                 std::vector<std::byte> payload, Judge judge)
    : secret_(std::move(secret)),
      payload_(std::move(payload)),
      judge_(std::move(judge)),
      hello_(EncodeHello({.magic = kMagic, .shape = shape, .introduction = introduction})) {}

StatusOr<std::optional<Frame>> ClientHandshake::Take(const Frame& frame) {
  if (frame.type == kRefuse) {
    WireReader reader(frame.body);
    refusal_.kind = reader.GetU8() == Refusal::kPlaceIsTaken ? Refusal::kPlaceIsTaken : Refusal::kDoesNotFit;
    const std::string_view reason = reader.GetString().substr(0, kMaxReasonBytes);
    refusal_.reason = absl::StrCat("refused: ", Printable(reason));
    return absl::PermissionDeniedError(refusal_.reason);
  }
  if (frame.type == kChallenge && !challenge_.has_value()) return Answer(frame);
  if (frame.type == kWelcome && challenge_.has_value() && !done_ && refusal_.reason.empty()) {
    GANNET_RETURN_IF_ERROR(Accept(frame));
    return std::optional<Frame>();
  }
  return absl::InvalidArgumentError(absl::StrCat("a message of type ", frame.type, " out of turn"));
}

StatusOr<std::optional<Frame>> ClientHandshake::Answer(const Frame& challenge) {
  WireReader reader(challenge.body);
  incarnation_ = reader.GetU64();
  reader.GetRaw(kKeyBytes);
  if (!reader.Finish().ok()) return absl::InvalidArgumentError("a challenge of a wrong length");
  challenge_ = challenge;
  if (judge_ != nullptr) refusal_.reason = judge_(incarnation_);
  if (refusal_.reason.empty()) {
    return std::optional(EncodeProof(kProof, Prove(secret_, kOfClient, hello_, *challenge_),
                                     Seal(Prove(secret_, kOfClientsPayload, hello_, *challenge_), payload_)));
  }
  const std::span<const std::byte> reason = BytesOf(refusal_.reason);
  return std::optional(
      EncodeProof(kDecline, Authenticate(Prove(secret_, kOfDecline, hello_, *challenge_), {reason}), reason));
}

Status ClientHandshake::Accept(const Frame& welcome) {
  WireReader reader(welcome.body);
  const std::span<const std::byte> proof = reader.GetRaw(kKeyBytes);
  const std::span<const std::byte> sealed = reader.GetBytes();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  if (!SameBytes(proof, Prove(secret_, kOfServer, hello_, *challenge_))) {
    refusal_.reason = "the peer does not know the cluster's secret; is another program on its port?";
    return absl::PermissionDeniedError(refusal_.reason);
  }
  session_key_ = Prove(secret_, kOfSession, hello_, *challenge_);
  StatusOr<std::vector<std::byte>> payload =
      control::Open(Prove(secret_, kOfServersPayload, hello_, *challenge_), sealed);
  if (!payload.ok()) return payload.status();
  peers_payload_ = *std::move(payload);
  done_ = true;
  return absl::OkStatus();
}

ServerHandshake::ServerHandshake(std::string secret, const ClusterShape& shape, Self self, Judge judge)
    : secret_(std::move(secret)), shape_(shape), self_(std::move(self)), judge_(std::move(judge)) {}

std::optional<Frame> ServerHandshake::Take(const Frame& frame) {
  if (frame.type == kHello && !hello_.has_value()) return Challenge(frame);
  if (frame.type == kProof && hello_.has_value() && !done_) return Welcome(frame);
  if (frame.type == kDecline && hello_.has_value() && !done_) return Hear(frame);
  return Refuse(absl::StrCat("a message of type ", frame.type, " out of turn"));
}

Frame ServerHandshake::Refuse(Refusal refusal) {
  refusal_ = std::move(refusal);
  std::array<std::byte, kMaxReasonBytes + 8> buffer;
  WireWriter writer(buffer);
  writer.PutU8(refusal_.kind);
  writer.PutString(std::string_view(refusal_.reason).substr(0, kMaxReasonBytes));
  return {kRefuse, {writer.written().begin(), writer.written().end()}};
}

Frame ServerHandshake::Challenge(const Frame& frame) {
  HelloBody hello;
  const bool whole = DecodeHello(frame, &hello);
  if (std::string reason = ReasonToRefuse(hello, whole, shape_, self_.id); !reason.empty()) {
    return Refuse(std::move(reason));
  }
  introduction_ = hello.introduction;
  hello_ = frame;
  challenge_ = {kChallenge, std::vector<std::byte>(sizeof self_.incarnation + kKeyBytes)};
  WireWriter writer(challenge_.body);
  writer.PutU64(self_.incarnation);
  FillRandom(writer.Reserve(kKeyBytes));
  return challenge_;
}

Frame ServerHandshake::Welcome(const Frame& proof) {
  WireReader reader(proof.body);
  const std::span<const std::byte> claimed = reader.GetRaw(kKeyBytes);
  const std::span<const std::byte> sealed = reader.GetBytes();
  if (!reader.Finish().ok() || !SameBytes(claimed, Prove(secret_, kOfClient, *hello_, challenge_))) {
    return Refuse("the peer does not know the cluster's secret");
  }
  StatusOr<std::vector<std::byte>> payload =
      control::Open(Prove(secret_, kOfClientsPayload, *hello_, challenge_), sealed);
  if (!payload.ok()) return Refuse("the peer's description of itself was changed on the way");
  if (judge_ != nullptr) {
    if (Refusal refusal = judge_(introduction_); !refusal.reason.empty()) return Refuse(std::move(refusal));
  }
  peers_payload_ = *std::move(payload);
  session_key_ = Prove(secret_, kOfSession, *hello_, challenge_);
  done_ = true;
  return EncodeProof(kWelcome, Prove(secret_, kOfServer, *hello_, challenge_),
                     Seal(Prove(secret_, kOfServersPayload, *hello_, challenge_), self_.payload));
}

std::optional<Frame> ServerHandshake::Hear(const Frame& decline) {
  WireReader reader(decline.body);
  const std::span<const std::byte> claimed = reader.GetRaw(kKeyBytes);
  const std::span<const std::byte> reason = reader.GetBytes();
  if (!reader.Finish().ok() || reason.empty() || reason.size() > kMaxReasonBytes ||
      !SameBytes(claimed, Authenticate(Prove(secret_, kOfDecline, *hello_, challenge_), {reason}))) {
    return Refuse("the peer does not know the cluster's secret");
  }
  declined_.assign(reinterpret_cast<const char*>(reason.data()), reason.size());
  return std::nullopt;
}

}  // namespace gannet::rdma::control
