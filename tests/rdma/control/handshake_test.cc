// The handshake, message by message: both ends learn the same key, and an end that does not know the secret learns
// nothing.
#include "rdma/control/handshake.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "rdma/control/session.h"

namespace gannet::rdma::control {
namespace handshake_test {

constexpr ClusterShape kShape{.version = 1, .num_nodes = 3, .bytes_per_node = 1 << 20, .configuration = 5};
constexpr Introduction kIntroduction{.from = 1, .to = 0, .incarnation = 7};

std::vector<std::byte> Payload() {
  return {std::byte{1}, std::byte{2}, std::byte{3}};
}
std::vector<std::byte> ClientsPayload() {
  return {std::byte{9}};
}
ServerHandshake MakeServer(const std::string& secret, ServerHandshake::Judge judge = nullptr) {
  return {secret, kShape, {.id = 0, .incarnation = 11, .payload = Payload()}, std::move(judge)};
}

struct Ends {
  ClientHandshake client;
  ServerHandshake server;
};

Ends MakeEnds(const std::string& client_secret, const std::string& server_secret, const ClusterShape& shape = kShape,
              const Introduction& introduction = kIntroduction) {
  return {ClientHandshake(client_secret, shape, introduction, ClientsPayload()), MakeServer(server_secret)};
}

// Exchanges all messages, up to the end or the client's error.
Status Converse(Ends* ends) {
  std::optional<Frame> to_server = ends->client.Hello();
  while (to_server.has_value()) {
    const std::optional<Frame> answer = ends->server.Take(*to_server);
    if (!answer.has_value()) return absl::OkStatus();
    StatusOr<std::optional<Frame>> next = ends->client.Take(*answer);
    if (!next.ok()) return next.status();
    to_server = *next;
  }
  return absl::OkStatus();
}

TEST(HandshakeTest, BothLearnTheSameKeyAndWhatTheOtherTells) {
  Ends ends = MakeEnds("secret", "secret");
  ASSERT_TRUE(Converse(&ends).ok());
  EXPECT_TRUE(ends.client.done());
  EXPECT_TRUE(ends.server.done());
  EXPECT_EQ(ends.client.session_key(), ends.server.session_key());
  EXPECT_EQ(ends.client.payload(), Payload());
  EXPECT_EQ(ends.client.incarnation(), 11u);
  EXPECT_EQ(ends.server.payload(), ClientsPayload());
  EXPECT_EQ(ends.server.introduction().from, 1);
  EXPECT_EQ(ends.server.introduction().incarnation, 7u);
}

TEST(HandshakeTest, EverySessionHasAnotherKey) {
  Ends one = MakeEnds("secret", "secret"), other = MakeEnds("secret", "secret");
  ASSERT_TRUE(Converse(&one).ok());
  ASSERT_TRUE(Converse(&other).ok());
  EXPECT_NE(one.client.session_key(), other.client.session_key());
}

TEST(HandshakeTest, AWrongSecretIsRefusedWithAReasonOnBothSides) {
  Ends ends = MakeEnds("secret", "another");
  const Status status = Converse(&ends);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "secret")) << status;
  EXPECT_TRUE(absl::StrContains(ends.server.refusal(), "secret"));
  EXPECT_FALSE(ends.client.done());
  EXPECT_FALSE(ends.server.done());
}

TEST(HandshakeTest, WhatDoesNotFitTheClusterIsRefusedAndNamed) {
  const struct {
    ClusterShape shape;
    Introduction introduction;
    const char* named;
  } cases[] = {
      {{.version = 2, .num_nodes = 3, .bytes_per_node = 1 << 20, .configuration = 5}, kIntroduction, "version"},
      {{.version = 1, .num_nodes = 4, .bytes_per_node = 1 << 20, .configuration = 5}, kIntroduction, "3 nodes"},
      {{.version = 1, .num_nodes = 3, .bytes_per_node = 1 << 21, .configuration = 5}, kIntroduction, "1048576 bytes"},
      {{.version = 1, .num_nodes = 3, .bytes_per_node = 1 << 20, .configuration = 6}, kIntroduction, "configuration"},
      {kShape, {.from = 1, .to = 2, .incarnation = 1}, "node 0, not node 2"},
      {kShape, {.from = 3, .to = 0, .incarnation = 1}, "cannot be node 3"},
      {kShape, {.from = 0, .to = 0, .incarnation = 1}, "cannot be node 0"},
  };
  for (const auto& [shape, introduction, named] : cases) {
    Ends ends = MakeEnds("secret", "secret", shape, introduction);
    const Status status = Converse(&ends);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), named)) << status;
    EXPECT_TRUE(absl::StrContains(ends.server.refusal(), named)) << ends.server.refusal();
  }
}

// A node of a lower number waits for the session. Otherwise the two could have two.
TEST(HandshakeTest, OnlyANodeOfAHigherNumberIsAccepted) {
  for (const NodeId from : {NodeId{0}, NodeId{1}, NodeId{2}}) {
    Ends ends{ClientHandshake("secret", kShape, {.from = from, .to = 1, .incarnation = 7}, ClientsPayload()),
              ServerHandshake("secret", kShape, {.id = 1, .incarnation = 11, .payload = Payload()})};
    const Status status = Converse(&ends);
    EXPECT_EQ(status.ok(), from == 2) << status;
    EXPECT_EQ(ends.server.done(), from == 2);
    if (from == 2) continue;
    EXPECT_TRUE(absl::StrContains(status.message(), "accepts nodes of higher numbers")) << status;
  }
}

// The greeting of a future release may have another length.
TEST(HandshakeTest, AnotherVersionIsNamedWhateverItsGreetingLooksLike) {
  Ends ends = MakeEnds("secret", "secret", {.version = 3, .num_nodes = 3, .bytes_per_node = 1 << 20});
  Frame hello = ends.client.Hello();
  hello.body.resize(hello.body.size() + 20);
  EXPECT_EQ(ends.server.Take(hello)->type, kRefuse);
  EXPECT_TRUE(absl::StrContains(ends.server.refusal(), "version 3")) << ends.server.refusal();
}

TEST(HandshakeTest, AClientThatIsNotWantedNowIsToldWhatKindOfRefusalItIs) {
  Ends ends{ClientHandshake("secret", kShape, kIntroduction, ClientsPayload()),
            MakeServer("secret", [](const Introduction& client) {
              return Refusal{.kind = Refusal::kPlaceIsTaken, .reason = client.incarnation == 7 ? "taken" : ""};
            })};
  EXPECT_TRUE(absl::IsPermissionDenied(Converse(&ends)));
  EXPECT_EQ(ends.client.refusal().kind, Refusal::kPlaceIsTaken);
  EXPECT_EQ(ends.client.refusal().reason, "refused: taken");
  EXPECT_FALSE(ends.server.done());
}

TEST(HandshakeTest, AClientMayDeclineAndOnlyWhoKnowsTheSecretIsBelieved) {
  const auto judge = [](uint64_t incarnation) { return std::string(incarnation == 11 ? "not you" : ""); };
  Ends ends{ClientHandshake("secret", kShape, kIntroduction, ClientsPayload(), judge), MakeServer("secret")};
  const Frame decline = **ends.client.Take(*ends.server.Take(ends.client.Hello()));
  EXPECT_EQ(decline.type, kDecline);
  EXPECT_EQ(ends.client.refusal().reason, "not you");
  Frame forged = decline;
  forged.body.back() ^= std::byte{1};
  ServerHandshake other = ends.server;
  EXPECT_EQ(other.Take(forged)->type, kRefuse);
  EXPECT_FALSE(other.declined());
  EXPECT_FALSE(ends.server.Take(decline).has_value());
  EXPECT_EQ(ends.server.why_declined(), "not you");
  EXPECT_FALSE(ends.server.done());
}

// Another program answers at the node's address without knowing the secret.
TEST(HandshakeTest, TheClientAsksTheServerForAProof) {
  Ends ends = MakeEnds("secret", "secret");
  const Frame challenge = *ends.server.Take(ends.client.Hello());
  const Frame proof = **ends.client.Take(challenge);
  Frame welcome = *ends.server.Take(proof);
  ASSERT_EQ(welcome.type, kWelcome);
  Frame reflected = welcome;
  std::copy_n(proof.body.begin(), kKeyBytes, reflected.body.begin());  // the client's own proof, sent back
  EXPECT_TRUE(absl::IsPermissionDenied(ends.client.Take(reflected).status()));
  EXPECT_FALSE(ends.client.done());
}

TEST(HandshakeTest, AnyChangedBitIsNoticed) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    Ends ends = MakeEnds("secret", "secret");
    const uint64_t which = random.Below(4);
    const auto spoil = [&](Frame frame, uint64_t number) {
      if (number == which)
        frame.body[random.Below(frame.body.size())] ^= std::byte{static_cast<uint8_t>(1u << random.Below(8))};
      return frame;
    };
    const Frame challenge = spoil(*ends.server.Take(spoil(ends.client.Hello(), 0)), 1);
    if (challenge.type == kRefuse) continue;
    const Frame proof = spoil(**ends.client.Take(challenge), 2);
    const Frame answer = spoil(*ends.server.Take(proof), 3);
    EXPECT_FALSE(ends.client.Take(answer).ok());
    EXPECT_FALSE(ends.client.done());
  }
}

TEST(HandshakeTest, AReplayedProofIsRefused) {
  Ends first = MakeEnds("secret", "secret");
  const Frame hello = first.client.Hello();
  const Frame proof = **first.client.Take(*first.server.Take(hello));
  ServerHandshake again = MakeServer("secret");
  ASSERT_EQ(again.Take(hello)->type, kChallenge);
  EXPECT_EQ(again.Take(proof)->type, kRefuse);
  EXPECT_FALSE(again.done());
}

TEST(HandshakeTest, RandomMessagesHarmNothing) {
  Random random(2);
  for (int round = 0; round < 3000; ++round) {
    Ends ends = MakeEnds("secret", "secret");
    if (random.OneIn(2)) (void)ends.server.Take(ends.client.Hello());
    for (int i = 0; i < 4; ++i) {
      Frame frame{static_cast<uint8_t>(random.Below(10)), std::vector<std::byte>(random.Below(200))};
      for (std::byte& byte : frame.body) byte = static_cast<std::byte>(random());
      if (ends.server.refused()) break;
      (void)ends.server.Take(frame);
      (void)ends.client.Take(frame);
    }
    EXPECT_FALSE(ends.server.done());
    EXPECT_FALSE(ends.client.done());
  }
}

TEST(SealTest, OpensOnlyWithItsKeyAndUnchanged) {
  Key key, other;
  FillRandom(key);
  FillRandom(other);
  std::vector<std::byte> sealed = Seal(key, Payload());
  EXPECT_EQ(Open(key, sealed).value(), Payload());
  EXPECT_FALSE(Open(other, sealed).ok());
  EXPECT_FALSE(Open(key, std::span(sealed).first(10)).ok());
  for (std::byte& byte : sealed) {
    byte ^= std::byte{1};
    EXPECT_FALSE(Open(key, sealed).ok());
    byte ^= std::byte{1};
  }
}

TEST(HeartbeatsTest, OldAndForeignOnesAreNoSignOfLife) {
  Key key, other;
  FillRandom(key);
  FillRandom(other);
  Heartbeats client(key, kPing, kPong), server(key, kPong, kPing), stranger(other, kPing, kPong);
  const Frame first = client.Next(), second = client.Next();
  EXPECT_TRUE(server.Check(first).ok());
  EXPECT_FALSE(server.Check(first).ok());
  EXPECT_TRUE(server.Check(second).ok());
  EXPECT_EQ(*server.Check(client.Next(Payload())), Payload());
  Frame changed = client.Next(Payload());
  changed.body.back() ^= std::byte{1};
  EXPECT_FALSE(server.Check(changed).ok());
  EXPECT_FALSE(server.Check(stranger.Next()).ok());
  EXPECT_FALSE(server.Check(server.Next()).ok());  // a heartbeat sent back to its sender
  EXPECT_TRUE(client.Check(server.Next()).ok());
}

TEST(CredentialTest, GoodOnceAndOnlyAsItWasMade) {
  Key key, other;
  FillRandom(key);
  FillRandom(other);
  CredentialBook book;
  const Credential credential = MakeCredential(key, 1, 2, 3);
  Credential changed = credential;
  changed.channel = 3;
  EXPECT_FALSE(book.Use(key, changed).ok());
  EXPECT_FALSE(book.Use(other, credential).ok());
  EXPECT_TRUE(book.Use(key, credential).ok());
  EXPECT_FALSE(book.Use(key, credential).ok());
  EXPECT_TRUE(book.Use(key, MakeCredential(key, 1, 2, 4)).ok());
}

}  // namespace handshake_test
}  // namespace gannet::rdma::control
