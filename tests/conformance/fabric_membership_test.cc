// Nodes attach, leave and die.
#include <array>
#include <vector>

#include "absl/strings/match.h"
#include "base/thread.h"
#include "tests/conformance/fabric_suite.h"

namespace gannet::rdma::conformance {
namespace fabric_membership_test {

coro::Task<void> StallUntilItFails(Channel* channel, NodeId to, uint64_t offset, std::vector<Status>* ends) {
  std::array<std::byte, 8> request;
  WireWriter(request).PutU64(offset);
  std::array<std::byte, 8> response;
  const StatusOr<size_t> size = co_await channel->Call(to, kStall, request, response, absl::Seconds(60));
  ends->push_back(size.status());
}

coro::Task<void> KillOnceCallsRun(FabricHarness* harness, coro::Worker* worker) {
  for (int i = 0; i < 100; ++i) co_await worker->Yield();
  harness->Kill(1);
}

TEST_P(FabricSuite, ATakenNodeCannotBeTakenAgain) {
  Make();
  EXPECT_THAT(fabric().Attach(0).status(), IsStatus(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fabric().Attach(1).status(), IsStatus(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(fabric().Attach(2).status(), IsStatus(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(fabric().Alive(0));
  EXPECT_TRUE(fabric().Alive(1));
  EXPECT_FALSE(fabric().Alive(2));
}

TEST_P(FabricSuite, CallsInFlightToANodeThatDiesAreUnavailable) {
  Make();
  std::vector<Status> ends;
  for (int i = 0; i < 60; ++i) {
    worker_.Spawn(StallUntilItFails(channel_.get(), 1, StallWord(1).offset(), &ends));
  }
  worker_.Spawn(KillOnceCallsRun(harness_.get(), &worker_));
  worker_.Run();
  ASSERT_EQ(ends.size(), 60u);
  for (const Status& end : ends) EXPECT_THAT(end, IsStatus(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(fabric().Alive(1));
}

TEST_P(FabricSuite, VerbsAndCallsToADeadNodeAreUnavailableAndNameIt) {
  Make(3);
  ASSERT_TRUE(Add(At(1, 0), 1).ok());
  harness_->Kill(1);
  // Until the death is noticed, in bounded time, verbs may still work.
  while (fabric().Alive(1)) YieldThread();
  std::array<std::byte, 64> buffer{};
  for (const Operation& operation :
       {Operation::Read(At(1, 0), buffer.data(), 64), Operation::Write(buffer.data(), At(1, 0), 64),
        Operation::CompareAndSwap(At(1, 0), 1, 2), Operation::FetchAndAdd(At(1, 0), 1)}) {
    std::array<Operation, 1> batch{operation};
    const Status status = Post(batch);
    EXPECT_THAT(status, IsStatus(absl::StatusCode::kUnavailable));
    EXPECT_TRUE(absl::StrContains(status.message(), "node 1")) << status;
  }
  const Status call = Call(1, kEcho).status();
  EXPECT_THAT(call, IsStatus(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(absl::StrContains(call.message(), "node 1")) << call;
  // The other nodes continue.
  EXPECT_TRUE(Add(At(2, 0), 1).ok());
  EXPECT_TRUE(Call(2, kEcho).ok());
}

TEST_P(FabricSuite, ABatchWithADeadNodeFailsAsAWhole) {
  Make(3);
  harness_->Kill(1);
  while (fabric().Alive(1)) YieldThread();
  std::array<std::byte, 8> buffer;
  std::array<Operation, 2> batch{Operation::Read(At(2, 0), buffer.data(), 8),
                                 Operation::Read(At(1, 0), buffer.data(), 8)};
  EXPECT_THAT(Post(batch), IsStatus(absl::StatusCode::kUnavailable));
}

TEST_P(FabricSuite, ADeadNodesPlaceCanBeTakenAndItsMemoryIsNew) {
  Make();
  ASSERT_TRUE(Add(At(1, 0), 77).ok());
  harness_->Kill(1);
  while (fabric().Alive(1)) YieldThread();
  harness_->Restart(1);
  ASSERT_TRUE(fabric().WaitForAll(absl::Seconds(20)).ok());
  EXPECT_EQ(ReadWord(At(1, 0)), 0u);
  const std::array<std::byte, 3> request{};
  EXPECT_EQ(Call(1, kEcho, request).value().size(), 3u);
}

TEST_P(FabricSuite, WhatIsBoundToAConnectionEndsWithIt) {
  Make();
  const uint64_t before = node().ConnectionTo(1);
  ASSERT_NE(before, 0u);
  EXPECT_EQ(node().ConnectionTo(1), before);
  const auto swap = [&](uint64_t connection) {
    std::array<Operation, 1> batch{Operation::CompareAndSwap(At(1, 0), 0, 5)};
    batch[0].connection = connection;
    return Post(batch);
  };
  const auto echo = [](Channel* channel, uint64_t connection) -> coro::Task<StatusOr<size_t>> {
    std::array<std::byte, 8> request{};
    std::array<std::byte, 8> response{};
    co_return co_await channel->Call(1, kEcho, request, response, absl::Seconds(60), connection);
  };
  EXPECT_THAT(swap(before + 1), IsStatus(absl::StatusCode::kUnavailable));
  EXPECT_THAT(worker_.BlockOn(echo(channel_.get(), before + 1)).status(), IsStatus(absl::StatusCode::kUnavailable));
  EXPECT_EQ(ReadWord(At(1, 0)), 0u);
  EXPECT_TRUE(swap(before).ok());
  EXPECT_TRUE(worker_.BlockOn(echo(channel_.get(), before)).ok());
  EXPECT_EQ(ReadWord(At(1, 0)), 5u);
  EXPECT_TRUE(node().CutOff(1, before + 1));  // there is no such connection
  EXPECT_EQ(node().ConnectionTo(1), before);

  harness_->Kill(1);
  while (fabric().Alive(1)) YieldThread();
  EXPECT_EQ(node().ConnectionTo(1), 0u);
  EXPECT_TRUE(node().CutOff(1, before));
  harness_->Restart(1);
  ASSERT_TRUE(fabric().WaitForAll(absl::Seconds(20)).ok());
  const uint64_t after = node().ConnectionTo(1);
  EXPECT_NE(after, 0u);
  EXPECT_NE(after, before);
  EXPECT_TRUE(node().CutOff(1, before));
  EXPECT_THAT(swap(before), IsStatus(absl::StatusCode::kUnavailable));
  EXPECT_EQ(ReadWord(At(1, 0)), 0u);
  EXPECT_TRUE(swap(after).ok());
}

TEST_P(FabricSuite, ANodeThatLeavesIsUnavailableAndItsChannelsAreOfNoUse) {
  Make();
  node().Shutdown();
  EXPECT_FALSE(fabric().Alive(0));
  EXPECT_THAT(Add(At(1, 0), 1).status(), IsStatus(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Call(1, kEcho).status(), IsStatus(absl::StatusCode::kUnavailable));
  node().Shutdown();  // the second call does nothing
}

TEST_P(FabricSuite, WaitForAllNamesWhoIsMissing) {
  Make(3);
  harness_->Kill(2);
  while (fabric().Alive(2)) YieldThread();
  const Status status = fabric().WaitForAll(absl::Milliseconds(5));
  EXPECT_THAT(status, IsStatus(absl::StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(absl::StrContains(status.message(), " 2")) << status;
}

TEST_P(FabricSuite, ChannelsAreNumberedAndRunOut) {
  Make();
  std::vector<std::unique_ptr<Channel>> channels;
  StatusOr<std::unique_ptr<Channel>> next = node().OpenChannel();
  for (; next.ok(); next = node().OpenChannel()) {
    EXPECT_EQ((*next)->node(), 0);
    EXPECT_EQ((*next)->index(), channels.size() + 1);  // 0 is the fixture's
    channels.push_back(*std::move(next));
  }
  EXPECT_THAT(next.status(), IsStatus(absl::StatusCode::kResourceExhausted));
  EXPECT_LT(channels.size(), 127u);  // lock words have another use for number 127 (index/shared_leaf/claim/claim.h)
  channels.erase(channels.begin() + 3);
  next = node().OpenChannel();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*next)->index(), 4);
}

TEST_P(FabricSuite, ServeNeedsAtLeastOneThreadAndHappensOnce) {
  Make();
  EXPECT_THAT(node().Serve(0), IsStatus(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(node().Serve(1).ok());
  EXPECT_THAT(node().Serve(1), IsStatus(absl::StatusCode::kFailedPrecondition));
}

}  // namespace fabric_membership_test
}  // namespace gannet::rdma::conformance
