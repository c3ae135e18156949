// Agents find each other, notice each other's end, and stand whatever strangers send them.
#include "rdma/control/agent.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rdma/base/clock.h"
#include "rdma/base/random.h"

namespace gannet::rdma::control {
namespace {

constexpr uint64_t kPatienceNs = 60'000'000'000;

struct Witness : Observer {
  std::atomic<int> ended = 0;
  std::atomic<uint64_t> last = 0;
  void SessionEnded(uint64_t session) override {
    last = session;
    ++ended;
  }
};

class AgentTest : public testing::Test {
 protected:
  // Each test program has loopback addresses of its own, so that nobody else has the ports.
  static std::vector<Endpoint> Endpoints(int nodes) {
    const int pid = getpid();
    std::vector<Endpoint> endpoints;
    for (int i = 0; i < nodes; ++i) {
      endpoints.push_back(
          ParseEndpoint(absl::StrCat("127.", pid >> 8 & 0xff, ".", pid & 0xff, ".", i + 1, ":7100")).value());
    }
    return endpoints;
  }

  static AgentOptions Options(NodeId self, int nodes) {
    AgentOptions options;
    options.self = self;
    options.incarnation = NowNanos();
    options.shape = {.num_nodes = static_cast<uint16_t>(nodes), .bytes_per_node = 4096};
    options.secret = "secret";
    options.nodes = Endpoints(nodes);
    options.payload = {std::byte{static_cast<uint8_t>(self)}};
    options.heartbeat = absl::Milliseconds(20);
    options.silence_limit = absl::Seconds(30);
    options.handshake_limit = absl::Seconds(30);
    return options;
  }

  // `witness_` is node 0's.
  std::unique_ptr<Agent> Start(const AgentOptions& options) {
    auto agent = Agent::Start(options, options.self == 0 ? &witness_ : &others_);
    EXPECT_TRUE(agent.ok()) << agent.status();
    return *std::move(agent);
  }

  template <class Predicate>
  static bool Eventually(Predicate predicate) {
    for (const uint64_t end = NowNanos() + kPatienceNs; !predicate();) {
      if (NowNanos() > end) return false;
      SleepForNanos(1'000'000);
    }
    return true;
  }

  // A blocking connection of a stranger.
  static int ConnectTo(const Endpoint& to) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to.address), sizeof to.address), 0);
    return fd;
  }
  // True once the other end has closed it.
  static bool Closed(int fd) {
    char byte;
    return Eventually([&] {
      const ssize_t got = recv(fd, &byte, 1, MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno == ECONNRESET);
    });
  }

  Witness witness_;
  Witness others_;
};

TEST_F(AgentTest, NodesFindEachOtherInAnyOrderAndExchangeWhatTheyAre) {
  const auto two = Start(Options(2, 3));
  EXPECT_EQ(two->generation(0), 0u);
  EXPECT_TRUE(absl::IsUnavailable(two->details(0).status()));
  const auto zero = Start(Options(0, 3));
  const auto one = Start(Options(1, 3));
  for (const Agent* agent : {zero.get(), one.get(), two.get()}) {
    for (const NodeId peer : {NodeId{0}, NodeId{1}, NodeId{2}}) {
      ASSERT_TRUE(Eventually([&] { return agent->generation(peer) != 0; })) << agent->WhyDown(peer);
      EXPECT_EQ(agent->details(peer)->payload, std::vector{std::byte{static_cast<uint8_t>(peer)}});
    }
  }
}

TEST_F(AgentTest, APlaceIsTakenOnce) {
  const auto first = Start(Options(0, 1));
  EXPECT_TRUE(absl::IsFailedPrecondition(Agent::Start(Options(0, 1), &witness_).status()));
}

TEST_F(AgentTest, ANodeThatLeavesIsNoticedAndItsSuccessorIsAnother) {
  const auto zero = Start(Options(0, 2));
  auto one = Start(Options(1, 2));
  ASSERT_TRUE(Eventually([&] { return zero->generation(1) != 0 && one->generation(0) != 0; }));
  const uint64_t before = zero->generation(1);
  one->Stop();
  one.reset();
  ASSERT_TRUE(Eventually([&] { return zero->generation(1) == 0 && witness_.ended > 0; }));
  one = Start(Options(1, 2));
  ASSERT_TRUE(Eventually([&] { return zero->generation(1) != 0; }));
  EXPECT_NE(zero->generation(1), before);
}

TEST_F(AgentTest, AWrongSecretIsToldOnBothSides) {
  const auto zero = Start(Options(0, 2));
  AgentOptions wrong = Options(1, 2);
  wrong.secret = "another";
  const auto one = Start(wrong);
  ASSERT_TRUE(Eventually([&] { return zero->refusals() > 0 && one->refusals() > 0; }));
  EXPECT_TRUE(absl::StrContains(zero->last_refusal(), "secret")) << zero->last_refusal();
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(one->WhyDown(0), "refused"); }));
  EXPECT_EQ(zero->generation(1), 0u);
  EXPECT_EQ(one->generation(0), 0u);
  EXPECT_FALSE(one->MakeTicketFor(0, 1).ok());
}

TEST_F(AgentTest, ATicketIsGoodAtThePeerOnceAndAsLongAsTheSession) {
  const auto zero = Start(Options(0, 2));
  auto one = Start(Options(1, 2));
  ASSERT_TRUE(Eventually([&] { return one->generation(0) != 0; }));
  const Ticket ticket = one->MakeTicketFor(0, 5).value();
  const StatusOr<uint64_t> session = zero->Admit(ticket);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE(zero->Admit(ticket).ok());
  EXPECT_TRUE(zero->Admit(zero->MakeTicketFor(0, 1).value()).ok());  // its own
  const Ticket late = one->MakeTicketFor(0, 6).value();
  one->Stop();
  ASSERT_TRUE(Eventually([&] { return witness_.last == *session; }));
  EXPECT_TRUE(absl::IsPermissionDenied(zero->Admit(late).status()));
}

TEST_F(AgentTest, ANodeThatFallsSilentIsGivenUp) {
  AgentOptions impatient = Options(0, 2);
  impatient.silence_limit = absl::Milliseconds(200);
  const auto zero = Start(impatient);
  AgentOptions silent = Options(1, 2);
  silent.heartbeat = absl::Hours(1);  // so node 0 does not hear of it
  const auto one = Start(silent);
  ASSERT_TRUE(Eventually([&] { return witness_.ended > 0; }));
  EXPECT_NE(zero->generation(0), 0u);
}

TEST_F(AgentTest, RandomBytesAreRefused) {
  const auto zero = Start(Options(0, 2));
  Random random(1);
  for (int round = 0; round < 50; ++round) {
    const int fd = ConnectTo(Endpoints(1)[0]);
    std::string bytes(1 + random.Below(300), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    // Most such lengths are no frame's. One that is must not wait for ever: this end closes.
    (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    close(fd);
  }
  ASSERT_TRUE(Eventually([&] { return zero->refusals() >= 50 && zero->half_open() == 0; })) << zero->refusals();
  const auto one = Start(Options(1, 2));
  EXPECT_TRUE(Eventually([&] { return zero->generation(1) != 0 && one->generation(0) != 0; }));
}

TEST_F(AgentTest, ALengthOutOfRangeClosesTheConnection) {
  const auto zero = Start(Options(0, 2));
  for (const uint32_t length : {uint32_t{0}, uint32_t{kMaxFrameBytes + 1}, ~uint32_t{0}}) {
    const int fd = ConnectTo(Endpoints(1)[0]);
    ASSERT_EQ(send(fd, &length, sizeof length, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof length));
    EXPECT_TRUE(Closed(fd));
    EXPECT_TRUE(absl::StrContains(zero->last_refusal(), "frame")) << zero->last_refusal();
    close(fd);
  }
}

TEST_F(AgentTest, AHalfOpenConnectionEndsByItself) {
  AgentOptions options = Options(0, 1);
  options.handshake_limit = absl::Milliseconds(100);
  const auto zero = Start(options);
  const int fd = ConnectTo(Endpoints(1)[0]);
  EXPECT_TRUE(Closed(fd));
  EXPECT_TRUE(Eventually([&] { return zero->half_open() == 0; }));
  close(fd);
}

TEST_F(AgentTest, AThousandIdleConnectionsCostLittleAndKeepNobodyOut) {
  AgentOptions options = Options(0, 2);
  options.handshake_limit = absl::Hours(1);
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  const auto zero = Start(options);
  std::vector<int> idle;
  for (int i = 0; i < 1000; ++i) idle.push_back(ConnectTo(Endpoints(1)[0]));
  ASSERT_TRUE(Eventually([&] { return zero->half_open() == static_cast<size_t>(options.max_half_open); }));
  EXPECT_TRUE(Closed(idle.front()));  // the oldest made room
  const auto one = Start(Options(1, 2));
  EXPECT_TRUE(Eventually([&] { return zero->generation(1) != 0 && one->generation(0) != 0; }));
  for (const int fd : idle) close(fd);
  EXPECT_TRUE(Eventually([&] { return zero->half_open() == 0; }));
}

TEST(EndpointTest, ReadsHostAndPortAndRefusesTheRest) {
  EXPECT_EQ(ParseEndpoint("127.0.0.1:7100")->ToString(), "127.0.0.1:7100");
  EXPECT_EQ(ParseEndpoint(":7100")->ToString(), "127.0.0.1:7100");
  for (const char* bad : {"", "host", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseEndpoint(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace gannet::rdma::control
