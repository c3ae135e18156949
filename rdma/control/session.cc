#include "rdma/control/session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rdma/rpc.h"

namespace gannet::rdma::control {
namespace {

Tag TagOf(const Key& key, std::string_view label, std::span<const std::byte> text) {
  const Key whole = Authenticate(key, {BytesOf(label), text});
  Tag tag;
  std::copy_n(whole.begin(), kTagBytes, tag.begin());
  return tag;
}

Tag TagOfBeat(const Key& key, FrameType type, std::span<const std::byte> text) {
  return TagOf(key, type == kPing ? "ping" : "pong", text);
}

Tag TagOfCredential(const Key& key, const Credential& credential) {
  std::array<std::byte, 12> text;
  WireWriter writer(text);
  writer.PutU16(credential.from);
  writer.PutU16(credential.channel);
  writer.PutU64(credential.number);
  return TagOf(key, "ticket", writer.written());
}

}  // namespace

// | tag 16 | number 8 | news |
Frame Heartbeats::Next(std::span<const std::byte> news) {
  GANNET_CHECK(news.size() <= kMaxNewsBytes, "%d bytes of news", news.size());
  ++sent_;
  std::vector<std::byte> body(kTagBytes + sizeof sent_ + news.size());
  std::memcpy(body.data() + kTagBytes, &sent_, sizeof sent_);
  std::copy(news.begin(), news.end(), body.begin() + kTagBytes + sizeof sent_);
  const Tag tag = TagOfBeat(key_, sends_, std::span(body).subspan(kTagBytes));
  std::copy(tag.begin(), tag.end(), body.begin());
  return {sends_, std::move(body)};
}

StatusOr<std::vector<std::byte>> Heartbeats::Check(const Frame& frame) {
  WireReader reader(frame.body);
  const std::span<const std::byte> tag = reader.GetRaw(kTagBytes);
  const uint64_t number = reader.GetU64();
  if (frame.type != receives_ || !reader.ok() || number <= received_ ||
      !SameBytes(tag, TagOfBeat(key_, receives_, std::span(frame.body).subspan(kTagBytes)))) {
    return absl::InvalidArgumentError(absl::StrCat("a message of type ", frame.type, " that is no heartbeat"));
  }
  received_ = number;
  const std::span<const std::byte> news = reader.GetRaw(reader.remaining());
  return std::vector<std::byte>(news.begin(), news.end());
}

Credential MakeCredential(const Key& key, NodeId from, uint16_t channel, uint64_t number) {
  Credential credential{.from = from, .channel = channel, .number = number};
  credential.tag = TagOfCredential(key, credential);
  return credential;
}

Status CredentialBook::Use(const Key& key, const Credential& credential) {
  if (!SameBytes(credential.tag, TagOfCredential(key, credential))) {
    return absl::PermissionDeniedError(absl::StrCat("a credential of node ", credential.from, " that it did not make"));
  }
  if (!used_.insert(credential.number).second) {
    return absl::PermissionDeniedError(absl::StrCat("a credential of node ", credential.from, " that was used before"));
  }
  return absl::OkStatus();
}

}  // namespace gannet::rdma::control
