// Agents find each other, notice each other's end, and withstand all messages of strangers.
#include "rdma/control/agent.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::rdma::control {
namespace agent_test {

constexpr uint64_t kPatienceNs = 60'000'000'000;

// While lacks_files is set, accept4 fails as in a process with too many open files.
std::atomic<bool> lacks_files = false;
std::atomic<uint64_t> failed_accepts = 0;

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
  // Each test program has loopback addresses of its own, so that no other program uses its ports.
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
    for (const Endpoint& endpoint : Endpoints(nodes)) options.nodes.emplace_back(endpoint);
    options.payload = {std::byte{static_cast<uint8_t>(self)}};
    options.heartbeat = absl::Milliseconds(20);
    options.silence_limit = absl::Seconds(30);
    options.handshake_limit = absl::Seconds(30);
    return options;
  }

  // `witness_` observes node 0.
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
    EXPECT_EQ(connect(fd, to.get(), to.size()), 0);
    return fd;
  }
  // Waits until the other end has closed the connection; false if it does not.
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

TEST_F(AgentTest, WhoIsCutOffHasLostItsSessionAndMayComeBackByAnother) {
  const auto zero = Start(Options(0, 3));
  const auto one = Start(Options(1, 3));
  const auto two = Start(Options(2, 3));
  const auto all_up = [&] { return zero->generation(1) != 0 && one->generation(0) != 0 && one->generation(2) != 0; };
  ASSERT_TRUE(Eventually(all_up));
  const uint64_t of_two = one->generation(2);
  for (const auto& [agent, peer] : {std::pair{zero.get(), NodeId{1}}, std::pair{one.get(), NodeId{0}}}) {
    const uint64_t first = agent->generation(peer);
    for (int times = 0; times < 2; ++times) {  // twice: the outcome of the first CutOff is not asked for
      const uint64_t before = agent->generation(peer);
      const int ended = witness_.ended + others_.ended;
      EXPECT_FALSE(agent->CutOff(peer, before));
      ASSERT_TRUE(Eventually([&, agent = agent, peer = peer] { return agent->generation(peer) != before; }));
      EXPECT_GT(witness_.ended + others_.ended, ended);  // its session has ended
      ASSERT_TRUE(Eventually(all_up));
    }
    const uint64_t after = agent->generation(peer);
    EXPECT_NE(after, first);
    EXPECT_TRUE(agent->CutOff(peer, first));
    for (int i = 0; i < 100; ++i) YieldThread();
    EXPECT_EQ(agent->generation(peer), after);  // the new session has not ended
  }
  EXPECT_EQ(one->generation(2), of_two);  // other nodes are not affected
}

TEST_F(AgentTest, AWrongSecretIsToldOnBothSides) {
  const auto zero = Start(Options(0, 2));
  AgentOptions wrong = Options(1, 2);
  wrong.secret = "another";
  const auto one = Start(wrong);
  ASSERT_TRUE(Eventually([&] { return zero->refusals() > 0 && !one->standing().ok(); }));
  EXPECT_TRUE(absl::StrContains(zero->last_refusal(), "secret")) << zero->last_refusal();
  EXPECT_TRUE(absl::StrContains(one->standing().message(), "node 0: refused: ")) << one->standing();
  EXPECT_TRUE(absl::StrContains(one->standing().message(), "secret")) << one->standing();
  EXPECT_TRUE(zero->standing().ok()) << zero->standing();
  EXPECT_EQ(zero->generation(1), 0u);
  EXPECT_EQ(one->generation(0), 0u);
  EXPECT_FALSE(one->MakeCredentialFor(0, 1).ok());
}

TEST_F(AgentTest, ATicketIsGoodAtThePeerOnceAndAsLongAsTheSession) {
  const auto zero = Start(Options(0, 2));
  auto one = Start(Options(1, 2));
  ASSERT_TRUE(Eventually([&] { return one->generation(0) != 0; }));
  const Credential credential = one->MakeCredentialFor(0, 5).value();
  const StatusOr<uint64_t> session = zero->Admit(credential);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_FALSE(zero->Admit(credential).ok());
  EXPECT_TRUE(zero->Admit(zero->MakeCredentialFor(0, 1).value()).ok());  // a credential for itself
  const Credential late = one->MakeCredentialFor(0, 6).value();
  one->Stop();
  ASSERT_TRUE(Eventually([&] { return witness_.last == *session; }));
  EXPECT_TRUE(absl::IsPermissionDenied(zero->Admit(late).status()));
}

TEST_F(AgentTest, ANodeThatFallsSilentIsGivenUp) {
  AgentOptions impatient = Options(0, 2);
  impatient.silence_limit = absl::Milliseconds(200);
  const auto zero = Start(impatient);
  AgentOptions silent = Options(1, 2);
  silent.heartbeat = absl::Hours(1);  // so node 0 gets no heartbeat
  const auto one = Start(silent);
  ASSERT_TRUE(Eventually([&] { return witness_.ended > 0; }));
  EXPECT_NE(zero->generation(0), 0u);
}

// To establish a session the agent looks at all its connections. It must not meet one that ended in the same turn.
TEST_F(AgentTest, ASessionBeginsInTheTurnInWhichAStrangerLeaves) {
  struct Gate : Observer {
    std::atomic<bool> reached = false;
    std::atomic<bool> open = false;
    void SessionEnded(uint64_t) override {
      reached = true;
      EXPECT_TRUE(Eventually([this] { return open.load(); }));
    }
  } gate;
  const auto zero = Agent::Start(Options(0, 3), &gate).value();
  auto one = Start(Options(1, 3));
  ASSERT_TRUE(Eventually([&] { return zero->generation(1) != 0 && one->generation(0) != 0; }));
  const int leaves = ConnectTo(Endpoints(1)[0]), stays = ConnectTo(Endpoints(1)[0]);
  Stream two(ConnectTo(Endpoints(1)[0]));
  const AgentOptions options = Options(2, 3);
  const std::vector<std::byte> about(2 * sizeof(uint32_t));  // an empty address and an empty payload
  ClientHandshake handshake(options.secret, options.shape, {.from = 2, .to = 0, .incarnation = 1}, about);
  ASSERT_TRUE(two.Send(handshake.Hello().type, handshake.Hello().body).ok());
  std::optional<Frame> proof;
  ASSERT_TRUE(Eventually([&] {
    const Status received = two.Receive([&](const Frame& challenge) {
      StatusOr<std::optional<Frame>> answer = handshake.Take(challenge);
      if (answer.ok()) proof = *std::move(answer);
      return answer.status();
    });
    return !received.ok() || proof.has_value();
  }));
  ASSERT_TRUE(proof.has_value());
  ASSERT_TRUE(Eventually([&] { return zero->half_open() == 3; }));
  one.reset();
  ASSERT_TRUE(Eventually([&] { return gate.reached.load(); }));
  close(leaves);
  ASSERT_TRUE(two.Send(proof->type, proof->body).ok());
  gate.open = true;  // the agent's next turn finds both
  EXPECT_TRUE(Eventually([&] { return zero->generation(2) != 0 && zero->half_open() == 1; }));
  close(stays);
}

// A node is reported dead only after everything that its session admitted has been cut off.
TEST_F(AgentTest, WhatASessionAdmittedIsCutOffBeforeTheNodeIsDead) {
  struct Cutter : Observer {
    std::atomic<const Agent*> agent = nullptr;
    std::atomic<uint64_t> generation_at_cut = 0;
    std::atomic<bool> may_return = false;
    std::atomic<bool> called = false;
    void SessionEnded(uint64_t) override {
      generation_at_cut = agent.load()->generation(1);
      called = true;
      for (const uint64_t end = NowNanos() + kPatienceNs; !may_return && NowNanos() < end;) SleepForNanos(1'000'000);
    }
  } cutter;
  const auto zero = Agent::Start(Options(0, 2), &cutter).value();
  cutter.agent = zero.get();
  auto one = Start(Options(1, 2));
  // The connecting node is the last to know that the session is up.
  ASSERT_TRUE(Eventually([&] { return zero->generation(1) != 0 && one->generation(0) != 0; }));
  const uint64_t generation = zero->generation(1);
  const Credential late = one->MakeCredentialFor(0, 1).value();
  one.reset();
  ASSERT_TRUE(Eventually([&] { return cutter.called.load(); }));
  EXPECT_EQ(cutter.generation_at_cut, generation);
  EXPECT_EQ(zero->generation(1), generation);  // alive until it is cut off
  EXPECT_FALSE(zero->Admit(late).ok());
  cutter.may_return = true;
  EXPECT_TRUE(Eventually([&] { return zero->generation(1) == 0; }));
}

// Nodes without an address: they connect from anywhere, and take places.
class GuestTest : public AgentTest {
 protected:
  static constexpr int kHosts = 2;
  static AgentOptions Options(NodeId self, int guests) {
    AgentOptions options = AgentTest::Options(std::min<NodeId>(self, kHosts - 1), kHosts);
    options.self = self;
    options.incarnation = NowNanos();
    options.shape.num_nodes = static_cast<uint16_t>(kHosts + guests);
    options.nodes.resize(kHosts + guests);
    if (self >= kHosts) options.listen = LocalEndpointTowards(*options.nodes[0]).value();
    options.payload = {std::byte{static_cast<uint8_t>(self)}};
    options.may_return = false;
    return options;
  }
  static bool Knows(const Agent& agent, NodeId peer) {
    return Eventually([&] { return agent.generation(peer) != 0; });
  }
};

TEST_F(GuestTest, GuestsGetPlacesAndEveryNodeFindsEveryOther) {
  std::vector<std::unique_ptr<Agent>> agents;
  for (const NodeId id : {3, 0, 2, 4, 1}) agents.push_back(Start(Options(id, 3)));
  for (const auto& agent : agents) {
    for (NodeId peer = 0; peer < 5; ++peer) {
      ASSERT_TRUE(Knows(*agent, peer)) << peer << ": " << agent->WhyDown(peer);
      EXPECT_EQ(agent->details(peer)->payload, std::vector{std::byte{static_cast<uint8_t>(peer)}});
    }
    EXPECT_TRUE(agent->standing().ok());
  }
}

TEST_F(GuestTest, APlaceIsOneProcessesUntilItEnds) {
  const auto zero = Start(Options(0, 2)), one = Start(Options(1, 2));
  auto first = Start(Options(2, 2));
  ASSERT_TRUE(first->WaitForPlace(absl::Seconds(60)).ok());
  auto second = Start(Options(2, 2));
  const Status taken = second->WaitForPlace(absl::Seconds(60));
  EXPECT_TRUE(absl::IsFailedPrecondition(taken)) << taken;
  EXPECT_TRUE(absl::StrContains(taken.message(), "another process has place 2")) << taken;
  ASSERT_TRUE(Knows(*one, 2));
  first.reset();
  ASSERT_TRUE(Knows(*second, 0));  // it tries again
  ASSERT_TRUE(Knows(*second, 1));
  const auto other = Start(Options(3, 2));
  EXPECT_TRUE(other->WaitForPlace(absl::Seconds(60)).ok());
  EXPECT_TRUE(other->KnowsOfGuest(2));  // node 0 tells it, with or without a session to that guest
  EXPECT_TRUE(Eventually([&] { return second->KnowsOfGuest(3); }));
}

TEST_F(GuestTest, AGuestWaitsForNode0) {
  const auto guest = Start(Options(2, 1));
  const Status status = guest->WaitForPlace(absl::Milliseconds(10));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  const auto one = Start(Options(1, 1)), zero = Start(Options(0, 1));
  EXPECT_TRUE(guest->WaitForPlace(absl::Seconds(60)).ok());
}

TEST_F(GuestTest, AnotherConfigurationIsRefused) {
  const auto zero = Start(Options(0, 1));
  AgentOptions options = Options(2, 1);
  options.shape.configuration = 77;
  const auto guest = Start(options);
  const Status status = guest->WaitForPlace(absl::Seconds(60));
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "another configuration")) << status;
}

// The node that comes second, the higher or the lower one, is refused by nodes that have seen the first one.
TEST_F(GuestTest, ANodeThatMayNotReturnIsRefusedAndTold) {
  for (const NodeId returns : {NodeId{0}, NodeId{1}}) {
    const NodeId stays = 1 - returns;
    auto first = Start(Options(returns, 1));
    const auto witness = Start(Options(stays, 1));
    ASSERT_TRUE(Knows(*witness, returns));
    first.reset();
    const auto second = Start(Options(returns, 1));
    ASSERT_TRUE(Eventually([&] { return !second->standing().ok(); }));
    EXPECT_TRUE(absl::StrContains(second->standing().message(), "was in this cluster before")) << second->standing();
    EXPECT_EQ(witness->generation(returns), 0u);
  }
}

TEST_F(AgentTest, RandomBytesAreRefused) {
  const auto zero = Start(Options(0, 2));
  Random random(1);
  for (int round = 0; round < 50; ++round) {
    const int fd = ConnectTo(Endpoints(1)[0]);
    std::string bytes(1 + random.Below(300), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    // Most such lengths are invalid. A valid one must not wait without end, so this end closes.
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
  EXPECT_TRUE(Closed(idle.front()));  // the oldest connection was closed for a newer one
  const auto one = Start(Options(1, 2));
  EXPECT_TRUE(Eventually([&] { return zero->generation(1) != 0 && one->generation(0) != 0; }));
  for (const int fd : idle) close(fd);
  EXPECT_TRUE(Eventually([&] { return zero->half_open() == 0; }));
}

TEST_F(AgentTest, ANodeWithTooManyOpenFilesSaysSoOnceAndPauses) {
  constexpr uint64_t kPauseNs = 100'000'000;
  const auto zero = Start(Options(0, 1));
  lacks_files = true;
  const uint64_t begin = NowNanos();
  const int fd = ConnectTo(Endpoints(1)[0]);
  ASSERT_TRUE(Eventually([&] { return failed_accepts >= 4; }));
  const uint64_t failed = failed_accepts;
  EXPECT_LE(failed, 2 + (NowNanos() - begin) / kPauseNs);
  EXPECT_EQ(zero->refusals(), 1u);
  EXPECT_TRUE(absl::StrContains(zero->last_refusal(), "raise the limit of open files")) << zero->last_refusal();
  lacks_files = false;
  EXPECT_TRUE(Eventually([&] { return zero->half_open() == 1; }));
  close(fd);
}

TEST(EndpointTest, ReadsHostAndPortAndRefusesTheRest) {
  EXPECT_EQ(ParseEndpoint("127.0.0.1:7100")->ToString(), "127.0.0.1:7100");
  EXPECT_EQ(ParseEndpoint(":7100")->ToString(), "127.0.0.1:7100");
  EXPECT_EQ(ParseEndpoint("[2001:db8::7]:7100")->ToString(), "[2001:db8::7]:7100");
  EXPECT_EQ(ParseEndpoint("[::1]:7100")->host(), "::1");
  EXPECT_EQ(ParseEndpoint("[::1]:7100")->port(), 7100);
  for (const char* bad : {"", "host", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:x", "::1",
                          "2001:db8::7:7100", "[::1]", "[::1]:", "[]:7100", "[::1:7100"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseEndpoint(bad).status())) << bad;
  }
  EXPECT_FALSE(ParseNumericEndpoint("localhost:7100").ok());
}

// A machine without IPv6 can parse such an address, too, but only a machine with IPv6 can listen there.
TEST(EndpointTest, ListensAtAnyPortOfBothFamilies) {
  for (const char* host : {"127.0.0.1", "::1"}) {
    Endpoint at = ParseHost(host).value();
    const StatusOr<int> listener = Listen(&at);
    if (!listener.ok() && at.address.ss_family == AF_INET6) continue;
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_NE(at.port(), 0);
    EXPECT_EQ(LocalEndpointTowards(at)->host(), host);
    const int connection = StartConnect(at).value();
    close(connection);
    close(*listener);
  }
}

}  // namespace agent_test
}  // namespace gannet::rdma::control

// Takes the place of the one in the C library.
int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  using namespace gannet::rdma::control::agent_test;
  if (!lacks_files) return static_cast<int>(syscall(SYS_accept4, fd, address, size, flags));
  ++failed_accepts;
  errno = EMFILE;
  return -1;
}
