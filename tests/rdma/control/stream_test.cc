// Frames on a socket.
#include "rdma/control/stream.h"

#include <sys/socket.h>

#include <array>

#include "gtest/gtest.h"

namespace gannet::rdma::control {
namespace stream_test {

constexpr uint8_t kType = 1;

// The peer sends a frame for each one that this end takes, so there is always something to read.
TEST(StreamTest, APeerThatSendsWithoutPauseDoesNotKeepTheReceiver) {
  std::array<int, 2> ends;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
  Stream receiver(ends[0]), peer(ends[1]);
  constexpr int kAhead = 16, kMany = 1000;
  const std::array<std::byte, kMaxFrameBytes - 1> body{};
  for (int i = 0; i < kAhead; ++i) ASSERT_TRUE(peer.Send(kType, body).ok());
  int taken = 0;
  const auto take = [&](const Frame& frame) {
    EXPECT_EQ(frame.body.size(), body.size());
    return ++taken < kMany ? peer.Send(kType, body) : absl::OkStatus();
  };
  ASSERT_TRUE(receiver.Receive(take).ok());
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, kMany);
  // What this call left is taken by later ones.
  while (taken < kMany + kAhead - 1) {
    ASSERT_TRUE(peer.Flush().ok());
    ASSERT_TRUE(receiver.Receive(take).ok());
  }
}

}  // namespace stream_test
}  // namespace gannet::rdma::control
