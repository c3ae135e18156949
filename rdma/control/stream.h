// A TCP connection that carries frames and never blocks:
//
//   | length of what follows 4 | type 1 | body 0..kMaxFrameBytes-1 |
//
// A peer's data is untrusted: a frame of another length is an error, at most one incomplete frame is kept, and only a
// few frames wait to be sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"

namespace gannet::rdma::control {

inline constexpr size_t kMaxFrameBytes = 4096;

struct Frame {
  uint8_t type = 0;
  std::vector<std::byte> body;
};

// Not thread-safe. Owns its socket.
class Stream {
 public:
  Stream() = default;
  // Takes a non-blocking socket.
  explicit Stream(int fd) : fd_(fd) {}
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream() { Close(); }

  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void Close();

  // Queues the frame and sends what the socket takes. ResourceExhausted if the peer does not read.
  Status Send(uint8_t type, std::span<const std::byte> body);
  bool wants_to_write() const { return !out_.empty(); }
  Status Flush();

  // Reads the available data, or a bounded part of it, and passes every complete frame to `take`. Stops at the first
  // error of `take` and returns it. Unavailable: the peer has closed. InvalidArgument: it does not send frames.
  Status Receive(const std::function<Status(Frame)>& take);

 private:
  StatusOr<bool> ReadSome();

  int fd_ = -1;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
};

}  // namespace gannet::rdma::control
