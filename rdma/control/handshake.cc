#include "rdma/control/handshake.h"

#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "rdma/rpc.h"

namespace gannet::rdma::control {
namespace {

constexpr size_t kMaxReasonBytes = 512;

struct HelloBody {
  uint64_t magic = 0;
  ClusterShape shape;
  Introduction introduction;
};

Frame EncodeHello(const HelloBody& hello) {
  std::array<std::byte, 128> buffer;
  WireWriter writer(buffer);
  writer.PutU64(hello.magic);
  writer.PutU16(hello.shape.version);
  writer.PutU16(hello.shape.num_nodes);
  writer.PutU64(hello.shape.bytes_per_node);
  writer.PutU16(hello.introduction.from);
  writer.PutU16(hello.introduction.to);
  writer.PutU64(hello.introduction.incarnation);
  FillRandom(writer.Reserve(kKeyBytes));
  return {kHello, {writer.written().begin(), writer.written().end()}};
}

// False if it is of another length.
bool DecodeHello(const Frame& frame, HelloBody* hello) {
  WireReader reader(frame.body);
  hello->magic = reader.GetU64();
  hello->shape.version = reader.GetU16();
  hello->shape.num_nodes = reader.GetU16();
  hello->shape.bytes_per_node = reader.GetU64();
  hello->introduction.from = reader.GetU16();
  hello->introduction.to = reader.GetU16();
  hello->introduction.incarnation = reader.GetU64();
  reader.GetRaw(kKeyBytes);
  return reader.Finish().ok();
}

Key Prove(const std::string& secret, std::string_view label, const Frame& hello, const Frame& challenge) {
  return Authenticate(BytesOf(secret), {BytesOf(label), hello.body, challenge.body});
}

// Why a server does not talk to this client; empty: it does.
std::string ReasonToRefuse(const HelloBody& hello, const ClusterShape& shape, NodeId self) {
  if (hello.magic != kMagic) return "this is the control port of a Gannet node";
  if (hello.shape.version != shape.version) {
    return absl::StrCat("this node speaks version ", shape.version, " of the protocol, the peer version ",
                        hello.shape.version, ": run the same release everywhere");
  }
  if (hello.introduction.to != self) {
    return absl::StrCat("this is node ", self, ", not node ", hello.introduction.to, ": check the nodes' addresses");
  }
  if (hello.shape.num_nodes != shape.num_nodes || hello.shape.bytes_per_node != shape.bytes_per_node) {
    return absl::StrCat("this cluster has ", shape.num_nodes, " nodes of ", shape.bytes_per_node,
                        " bytes, the peer's has ", hello.shape.num_nodes, " of ", hello.shape.bytes_per_node);
  }
  if (hello.introduction.from >= shape.num_nodes || hello.introduction.from == self) {
    return absl::StrCat("the peer cannot be node ", hello.introduction.from, " of ", shape.num_nodes);
  }
  return "";
}

}  // namespace

ClientHandshake::ClientHandshake(std::string secret, const ClusterShape& shape, const Introduction& introduction)
    : secret_(std::move(secret)),
      hello_(EncodeHello({.magic = kMagic, .shape = shape, .introduction = introduction})) {}

StatusOr<std::optional<Frame>> ClientHandshake::Take(const Frame& frame) {
  if (frame.type == kRefuse) {
    WireReader reader(frame.body);
    const std::string_view reason = reader.GetString().substr(0, kMaxReasonBytes);
    return absl::PermissionDeniedError(
        absl::StrCat("refused: ", absl::CHexEscape(absl::string_view(reason.data(), reason.size()))));
  }
  if (frame.type == kChallenge && !challenge_.has_value()) return Answer(frame);
  if (frame.type == kWelcome && challenge_.has_value() && !done_) {
    GANNET_RETURN_IF_ERROR(Accept(frame));
    return std::optional<Frame>();
  }
  return absl::InvalidArgumentError(absl::StrCat("a message of type ", frame.type, " out of turn"));
}

StatusOr<std::optional<Frame>> ClientHandshake::Answer(const Frame& challenge) {
  if (challenge.body.size() != kKeyBytes) return absl::InvalidArgumentError("a challenge of a wrong length");
  challenge_ = challenge;
  const Key proof = Prove(secret_, "gannet client", hello_, *challenge_);
  return std::optional(Frame{kProof, {proof.begin(), proof.end()}});
}

Status ClientHandshake::Accept(const Frame& welcome) {
  WireReader reader(welcome.body);
  const std::span<const std::byte> proof = reader.GetRaw(kKeyBytes);
  const std::span<const std::byte> sealed = reader.GetBytes();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  if (!SameBytes(proof, Prove(secret_, "gannet server", hello_, *challenge_))) {
    return absl::PermissionDeniedError("the peer does not know the cluster's secret; is another program on its port?");
  }
  session_key_ = Prove(secret_, "gannet session", hello_, *challenge_);
  StatusOr<std::vector<std::byte>> payload =
      control::Open(Prove(secret_, "gannet payload", hello_, *challenge_), sealed);
  if (!payload.ok()) return payload.status();
  payload_ = *std::move(payload);
  done_ = true;
  return absl::OkStatus();
}

ServerHandshake::ServerHandshake(std::string secret, const ClusterShape& shape, NodeId self,
                                 std::vector<std::byte> payload)
    : secret_(std::move(secret)), shape_(shape), self_(self), payload_(std::move(payload)) {}

Frame ServerHandshake::Take(const Frame& frame) {
  if (frame.type == kHello && !hello_.has_value()) return Challenge(frame);
  if (frame.type == kProof && hello_.has_value() && !done_) return Judge(frame);
  return Refuse(absl::StrCat("a message of type ", frame.type, " out of turn"));
}

Frame ServerHandshake::Refuse(std::string reason) {
  refusal_ = std::move(reason);
  std::array<std::byte, kMaxReasonBytes + 8> buffer;
  WireWriter writer(buffer);
  writer.PutString(std::string_view(refusal_).substr(0, kMaxReasonBytes));
  return {kRefuse, {writer.written().begin(), writer.written().end()}};
}

Frame ServerHandshake::Challenge(const Frame& frame) {
  HelloBody hello;
  if (!DecodeHello(frame, &hello)) return Refuse("a greeting of a wrong length");
  if (std::string reason = ReasonToRefuse(hello, shape_, self_); !reason.empty()) return Refuse(std::move(reason));
  introduction_ = hello.introduction;
  hello_ = frame;
  challenge_ = {kChallenge, std::vector<std::byte>(kKeyBytes)};
  FillRandom(challenge_.body);
  return challenge_;
}

Frame ServerHandshake::Judge(const Frame& proof) {
  if (!SameBytes(proof.body, Prove(secret_, "gannet client", *hello_, challenge_))) {
    return Refuse("the peer does not know the cluster's secret");
  }
  const Key own = Prove(secret_, "gannet server", *hello_, challenge_);
  const std::vector<std::byte> sealed = Seal(Prove(secret_, "gannet payload", *hello_, challenge_), payload_);
  session_key_ = Prove(secret_, "gannet session", *hello_, challenge_);
  done_ = true;
  std::vector<std::byte> body(kMaxFrameBytes - 1);
  WireWriter writer(body);
  const std::span<std::byte> room = writer.Reserve(kKeyBytes);
  std::copy(own.begin(), own.end(), room.begin());
  writer.PutBytes(sealed);
  body.resize(writer.size());
  return {kWelcome, std::move(body)};
}

}  // namespace gannet::rdma::control
