// A first walk through the shm fabric; the contract is tested by tests/conformance.
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rdma/coro/worker.h"
#include "rdma/fabric.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma {
namespace {

constexpr MethodId kEcho = 60000;

class ShmSmoke : public ::testing::Test {
 protected:
  void SetUp() override {
    fabric_ = ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = 64 << 20}).value();
    first_ = fabric_->Attach(0).value();
    second_ = fabric_->Attach(1).value();
    second_->Handle(kEcho, [](NodeId, std::span<const std::byte> request, std::span<std::byte> response) {
      std::memcpy(response.data(), request.data(), request.size());
      return StatusOr<size_t>(request.size());
    });
    channel_ = first_->OpenChannel().value();
    worker_.AddPoller([this] { return channel_->Poll(); });
  }

  GlobalAddress Heap(Node& node, uint64_t offset) { return {node.id(), node.heap_offset() + offset}; }

  StatusOr<size_t> CallEcho(std::string text, std::span<std::byte> response) {
    return worker_.BlockOn(EchoTask(channel_.get(), std::move(text), response));
  }
  static coro::Task<StatusOr<size_t>> EchoTask(Channel* channel, std::string text, std::span<std::byte> response) {
    co_return co_await channel->Call(1, kEcho, std::as_bytes(std::span(text)), response);
  }

  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<Node> first_, second_;
  std::unique_ptr<Channel> channel_;
  coro::Worker worker_;
};

coro::Task<void> WriteReadSwapAdd(Channel* channel, GlobalAddress at) {
  std::array<uint64_t, 16> out, in;
  for (size_t i = 0; i < out.size(); ++i) out[i] = 100 + i;
  EXPECT_TRUE((co_await channel->Write(out.data(), at, sizeof out)).ok());
  EXPECT_TRUE((co_await channel->Read(at, in.data(), sizeof in)).ok());
  EXPECT_EQ(in, out);
  EXPECT_EQ((co_await channel->CompareAndSwap(at, 100, 7)).value(), 100u);
  EXPECT_EQ((co_await channel->CompareAndSwap(at, 100, 8)).value(), 7u);
  EXPECT_EQ((co_await channel->FetchAndAdd(at + 8, 5)).value(), 101u);
  EXPECT_TRUE((co_await channel->Read(at, in.data(), 16)).ok());
  EXPECT_EQ(in[0], 7u);
  EXPECT_EQ(in[1], 106u);
}

TEST_F(ShmSmoke, VerbsReachTheOtherNodesMemory) {
  worker_.BlockOn(WriteReadSwapAdd(channel_.get(), Heap(*second_, 64)));
  const VerbCounters& done = channel_->counters();
  EXPECT_EQ(done.reads, 2u);
  EXPECT_EQ(done.writes, 1u);
  EXPECT_EQ(done.compare_and_swaps, 2u);
  EXPECT_EQ(done.fetch_and_adds, 1u);
  EXPECT_EQ(done.round_trips, 6u);
  EXPECT_EQ(done.bytes_out, 128u + 2 * 16 + 8);
  EXPECT_EQ(done.bytes_in, 128u + 2 * 8 + 8 + 16);
}

TEST_F(ShmSmoke, ServerThreadsAnswerCalls) {
  ASSERT_TRUE(second_->Serve(1).ok());
  std::array<std::byte, 16> response;
  ASSERT_EQ(CallEcho("hello", response).value(), 5u);
  EXPECT_EQ(std::memcmp(response.data(), "hello", 5), 0);
  EXPECT_EQ(CallEcho("longer than the buffer", response).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ShmSmoke, AWorkerServesBetweenItsCoroutines) {
  worker_.AddPoller([this] { return second_->ServePending(8); });
  std::array<std::byte, 16> response;
  ASSERT_EQ(CallEcho("hello", response).value(), 5u);
}

TEST_F(ShmSmoke, ADeadNodeIsUnavailable) {
  fabric_->Kill(1);
  EXPECT_FALSE(fabric_->Alive(1));
  std::array<std::byte, 16> response;
  EXPECT_EQ(CallEcho("hello", response).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace gannet::rdma
