#include "rdma/control/stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::rdma::control {
namespace {

constexpr size_t kMaxWaitingBytes = 8 * kMaxFrameBytes;
constexpr int kMostReadsAtOnce = 8;  // of a socket, so that a peer that never stops delays no others
constexpr size_t kLengthBytes = sizeof(uint32_t);

}  // namespace

Stream::Stream(Stream&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), in_(std::move(other.in_)), out_(std::move(other.out_)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    in_ = std::move(other.in_);
    out_ = std::move(other.out_);
  }
  return *this;
}

void Stream::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  in_.clear();
  out_.clear();
}

Status Stream::Send(uint8_t type, std::span<const std::byte> body) {
  if (out_.size() + body.size() > kMaxWaitingBytes) return absl::ResourceExhaustedError("the peer does not read");
  const auto length = static_cast<uint32_t>(1 + body.size());
  const auto length_bytes = std::as_bytes(std::span(&length, 1));
  out_.insert(out_.end(), length_bytes.begin(), length_bytes.end());
  out_.push_back(std::byte{type});
  out_.insert(out_.end(), body.begin(), body.end());
  return Flush();
}

Status Stream::Flush() {
  while (!out_.empty()) {
    const ssize_t sent = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return absl::OkStatus();
    if (sent < 0) return absl::UnavailableError(absl::StrCat("cannot send: ", strerror(errno)));
    out_.erase(out_.begin(), out_.begin() + sent);
  }
  return absl::OkStatus();
}

// Returns true if there may be more.
StatusOr<bool> Stream::ReadSome() {
  std::array<std::byte, kMaxFrameBytes> chunk;
  const ssize_t got = recv(fd_, chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (got < 0) return absl::UnavailableError(absl::StrCat("the connection broke: ", strerror(errno)));
  if (got == 0) return absl::UnavailableError("the peer closed the connection");
  in_.insert(in_.end(), chunk.begin(), chunk.begin() + got);
  return static_cast<size_t>(got) == chunk.size();
}

Status Stream::Receive(const std::function<Status(Frame)>& take) {
  bool more = true;
  for (int reads = 0; more && reads < kMostReadsAtOnce; ++reads) {
    StatusOr<bool> read = ReadSome();
    // Frames that arrived before the end still count: a refusal, for example.
    more = read.ok() && *read;
    size_t at = 0;
    while (in_.size() - at >= kLengthBytes) {
      uint32_t length;
      std::memcpy(&length, in_.data() + at, sizeof length);
      if (length < 1 || length > kMaxFrameBytes) {
        return absl::InvalidArgumentError(absl::StrCat("a frame of ", length, " bytes: this is no Gannet peer"));
      }
      if (in_.size() - at - kLengthBytes < length) break;
      const std::byte* start = in_.data() + at + kLengthBytes;
      at += kLengthBytes + length;
      GANNET_RETURN_IF_ERROR(take(Frame{static_cast<uint8_t>(start[0]), {start + 1, start + length}}));
    }
    in_.erase(in_.begin(), in_.begin() + static_cast<ptrdiff_t>(at));
    if (!read.ok()) return read.status();
  }
  return absl::OkStatus();
}

}  // namespace gannet::rdma::control
