#include "rdma/control/session.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rdma/rpc.h"

namespace gannet::rdma::control {
namespace {

Tag TagOf(const Key& key, std::string_view label, std::span<const std::byte> text) {
  const Key whole = Authenticate(key, {BytesOf(label), text});
  Tag tag;
  std::copy_n(whole.begin(), kTagBytes, tag.begin());
  return tag;
}

Tag TagOfBeat(const Key& key, FrameType type, uint64_t number) {
  return TagOf(key, type == kPing ? "ping" : "pong", std::as_bytes(std::span(&number, 1)));
}

Tag TagOfTicket(const Key& key, const Ticket& ticket) {
  std::array<std::byte, 12> text;
  WireWriter writer(text);
  writer.PutU16(ticket.from);
  writer.PutU16(ticket.channel);
  writer.PutU64(ticket.number);
  return TagOf(key, "ticket", writer.written());
}

}  // namespace

Frame Heartbeats::Next() {
  ++sent_;
  std::array<std::byte, 8 + kTagBytes> body;
  WireWriter writer(body);
  writer.PutU64(sent_);
  const Tag tag = TagOfBeat(key_, sends_, sent_);
  std::copy(tag.begin(), tag.end(), writer.Reserve(kTagBytes).begin());
  return {sends_, {body.begin(), body.end()}};
}

Status Heartbeats::Check(const Frame& frame) {
  WireReader reader(frame.body);
  const uint64_t number = reader.GetU64();
  const std::span<const std::byte> tag = reader.GetRaw(kTagBytes);
  if (frame.type != receives_ || !reader.Finish().ok() || number <= received_ ||
      !SameBytes(tag, TagOfBeat(key_, receives_, number))) {
    return absl::InvalidArgumentError(absl::StrCat("a message of type ", frame.type, " that is no heartbeat"));
  }
  received_ = number;
  return absl::OkStatus();
}

Ticket MakeTicket(const Key& key, NodeId from, uint16_t channel, uint64_t number) {
  Ticket ticket{.from = from, .channel = channel, .number = number};
  ticket.tag = TagOfTicket(key, ticket);
  return ticket;
}

Status TicketBook::Use(const Key& key, const Ticket& ticket) {
  if (!SameBytes(ticket.tag, TagOfTicket(key, ticket))) {
    return absl::PermissionDeniedError(absl::StrCat("a ticket of node ", ticket.from, " that it did not make"));
  }
  if (!used_.insert(ticket.number).second) {
    return absl::PermissionDeniedError(absl::StrCat("a ticket of node ", ticket.from, " that was used before"));
  }
  return absl::OkStatus();
}

}  // namespace gannet::rdma::control
