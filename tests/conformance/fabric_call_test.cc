// CALL: echoes, many calls in flight, errors, deadlines, limits.
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tests/conformance/fabric_suite.h"

namespace gannet::rdma::conformance {
namespace fabric_call_test {

std::vector<std::byte> Bytes(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::array<std::byte, 8> StallRequest(GlobalAddress word) {
  std::array<std::byte, 8> request;
  WireWriter(request).PutU64(word.offset());
  return request;
}

TEST_P(FabricSuite, ACallComesBackWithItsResponse) {
  Make(3);
  for (size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, kMaxMessageBytes}) {
    const std::vector<std::byte> request = Bytes(size, size);
    for (const NodeId peer : {NodeId{1}, NodeId{2}}) {
      const auto response = Call(peer, kEcho, request, kMaxMessageBytes);
      ASSERT_TRUE(response.ok()) << response.status();
      ASSERT_EQ(*response, request);
    }
  }
}

TEST_P(FabricSuite, RequestAndResponseMayDifferInSize) {
  Make();
  const std::vector<std::byte> request(kMaxMessageBytes, std::byte{2});
  const std::vector<std::byte> sum = Call(1, kSum, request).value();
  EXPECT_EQ(WireReader(sum).GetU64(), 2 * kMaxMessageBytes);
  std::array<std::byte, 5> small;
  WireWriter writer(small);
  writer.PutU32(static_cast<uint32_t>(kMaxMessageBytes));
  writer.PutU8(3);
  const std::vector<std::byte> pattern = Call(1, kPattern, small, kMaxMessageBytes).value();
  ASSERT_EQ(pattern.size(), kMaxMessageBytes);
  for (size_t i = 0; i < pattern.size(); ++i) ASSERT_EQ(pattern[i], static_cast<std::byte>(3 + i));
}

TEST_P(FabricSuite, MessagesThatDoNotFitAreRefused) {
  Make();
  EXPECT_THAT(Call(1, kSum, std::vector<std::byte>(kMaxMessageBytes + 1)).status(),
              IsStatus(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Call(1, kEcho, Bytes(100, 1), 99).status(), IsStatus(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(Call(1, kEcho, Bytes(100, 1), 100).value().size(), 100u);
}

TEST_P(FabricSuite, AHandlersErrorTravelsAsItIs) {
  Make();
  std::array<std::byte, 256> request;
  WireWriter writer(request);
  writer.PutU32(static_cast<uint32_t>(absl::StatusCode::kAborted));
  writer.PutString("warehouse 7 is closed");
  const Status status = Call(1, kFail, writer.written()).status();
  EXPECT_THAT(status, IsStatus(absl::StatusCode::kAborted));
  EXPECT_EQ(status.message(), "warehouse 7 is closed");
}

TEST_P(FabricSuite, AMethodThatNobodyHandlesIsUnimplementedAndNamed) {
  Make();
  const Status status = Call(1, kNobody).status();
  EXPECT_THAT(status, IsStatus(absl::StatusCode::kUnimplemented));
  EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat(kNobody))) << status;
}

TEST_P(FabricSuite, TheHandlerLearnsWhoCalls) {
  Make();
  const std::vector<std::byte> response = Call(1, kCaller).value();
  EXPECT_EQ(WireReader(response).GetU16(), 0);
}

TEST_P(FabricSuite, ACallToANodeThatDoesNotExistIsRefused) {
  Make();
  EXPECT_THAT(Call(2, kEcho).status(), IsStatus(absl::StatusCode::kInvalidArgument));
}

TEST_P(FabricSuite, AWorkerServesItsOwnNode) {
  Make();
  node().Handle(kEcho, [](NodeId caller, std::span<const std::byte> request, std::span<std::byte> response) {
    EXPECT_EQ(caller, 0);
    std::memcpy(response.data(), request.data(), request.size());
    return StatusOr<size_t>(request.size());
  });
  worker_.AddPoller([this] { return node().ServePending(4); });
  const std::vector<std::byte> request = Bytes(300, 3);
  EXPECT_EQ(Call(0, kEcho, request).value(), request);
}

coro::Task<void> EchoManyTimes(Channel* channel, coro::Worker* worker, NodeId to, uint64_t seed, int times,
                               absl::Duration timeout, int* good) {
  std::vector<std::byte> response(3000);
  for (int i = 0; i < times; ++i) {
    const std::vector<std::byte> request = Bytes(8 + (seed * 131 + i * 17) % 2900, seed + i);
    const StatusOr<size_t> size = co_await channel->Call(to, kEcho, request, response, timeout);
    EXPECT_TRUE(size.ok()) << size.status();
    if (!size.ok() || *size != request.size()) co_return;
    if (std::memcmp(response.data(), request.data(), *size) == 0) ++*good;
    if (i % 3 == 0) co_await worker->Yield();
  }
}

// More calls at once than any backend has in flight: the others must wait, and no call may get another call's answer.
TEST_P(FabricSuite, ManyCallsAreInFlightAtOnce) {
  Make(3);
  constexpr int kCoroutines = 100, kTimes = 20;
  int good = 0;
  for (int i = 0; i < kCoroutines; ++i) {
    worker_.Spawn(EchoManyTimes(channel_.get(), &worker_, static_cast<NodeId>(1 + i % 2), i * 1000, kTimes,
                                harness_->patience(), &good));
  }
  worker_.Run();
  EXPECT_EQ(good, kCoroutines * kTimes);
}

TEST_P(FabricSuite, ACallThatIsNotAnsweredInTimeFailsAndItsAnswerGoesNowhere) {
  Make();
  const auto request = StallRequest(StallWord(1));
  EXPECT_THAT(Call(1, kStall, request, 8, absl::Milliseconds(20)).status(),
              IsStatus(absl::StatusCode::kDeadlineExceeded));
  const uint64_t go = 1;
  ASSERT_TRUE(Write(&go, StallWord(1), 8).ok());
  for (int i = 0; i < 50; ++i) {
    const std::vector<std::byte> echo = Bytes(64, i);
    ASSERT_EQ(Call(1, kEcho, echo).value(), echo);
  }
}

TEST_P(FabricSuite, ADeadlineOfZeroFails) {
  Make();
  const auto request = StallRequest(StallWord(1));
  EXPECT_THAT(Call(1, kStall, request, 8, absl::ZeroDuration()).status(),
              IsStatus(absl::StatusCode::kDeadlineExceeded));
}

coro::Task<void> StallOnce(Channel* channel, NodeId to, GlobalAddress word, absl::Duration timeout,
                           std::vector<Status>* ends) {
  const std::array<std::byte, 8> request = StallRequest(word);
  std::array<std::byte, 8> response;
  const StatusOr<size_t> size = co_await channel->Call(to, kStall, request, response, timeout);
  ends->push_back(size.status());
}

// All server threads of node 1 stall while more calls wait there than fit. Calls to node 2 are not delayed, and node 1
// works again afterwards.
TEST_P(FabricSuite, ANodeThatStallsHoldsUpNobodyElse) {
  Make(3);
  std::vector<Status> ends;
  for (int i = 0; i < 50; ++i) {
    worker_.Spawn(StallOnce(channel_.get(), 1, StallWord(1), absl::Milliseconds(50), &ends));
  }
  const std::vector<std::byte> echo = Bytes(64, 1);
  EXPECT_EQ(Call(2, kEcho, echo).value(), echo);
  worker_.Run();
  ASSERT_EQ(ends.size(), 50u);
  for (const Status& end : ends) EXPECT_THAT(end, IsStatus(absl::StatusCode::kDeadlineExceeded));
  const uint64_t go = 1;
  ASSERT_TRUE(Write(&go, StallWord(1), 8).ok());
  EXPECT_EQ(Call(1, kEcho, echo).value(), echo);
}

}  // namespace fabric_call_test
}  // namespace gannet::rdma::conformance
