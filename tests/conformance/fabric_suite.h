// The contract of rdma/fabric.h as tests, which every backend passes unchanged. A backend joins with one file:
//
//   INSTANTIATE_TEST_SUITE_P(MyFabric, FabricSuite, ::testing::Values(FabricFactory{...}), NameOfFactory);
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "base/coro/worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/fabric.h"
#include "rdma/rpc.h"
#include "tests/conformance/fabric_harness.h"
#include "tests/conformance/fabric_peer.h"

namespace gannet::rdma::conformance {

inline std::string NameOfFactory(const ::testing::TestParamInfo<FabricFactory>& info) {
  return info.param.name;
}

MATCHER_P(IsStatus, code, std::string(negation ? "isn't " : "is ") + absl::StatusCodeToString(code)) {
  *result_listener << arg;
  return arg.code() == code;
}

class FabricSuite : public ::testing::TestWithParam<FabricFactory> {
 protected:
  // The test drives node 0; the peers are nodes 1 to num_nodes - 1.
  void Make(int num_nodes = 2) {
    harness_ = GetParam().make(num_nodes);
    const Status status = harness_->fabric().WaitForAll(absl::Seconds(20));
    ASSERT_TRUE(status.ok()) << status;
    channel_ = harness_->node().OpenChannel().value();
    poller_ = worker_.AddPoller([this] { return channel_->Poll(); });
  }

  void TearDown() override {
    channel_.reset();
    harness_.reset();
  }

  Fabric& fabric() { return harness_->fabric(); }
  Node& node() { return harness_->node(); }
  Channel& channel() { return *channel_; }
  // An address in the writable part of a node's heap. Its first kilobyte is reserved for kStall.
  GlobalAddress At(NodeId id, uint64_t offset) { return {id, node().writable_offset() + 1024 + offset}; }
  GlobalAddress StallWord(NodeId id) { return {id, node().writable_offset()}; }

  // The verbs, blocking.
  Status Read(GlobalAddress from, void* to, uint32_t size);
  Status Write(const void* from, GlobalAddress to, uint32_t size);
  StatusOr<uint64_t> Swap(GlobalAddress word, uint64_t expected, uint64_t desired);
  StatusOr<uint64_t> Add(GlobalAddress word, uint64_t addend);
  Status Post(std::span<Operation> operations);
  uint64_t ReadWord(GlobalAddress from);
  // A call with a response of up to `room` bytes. Infinite timeout: the harness's patience.
  StatusOr<std::vector<std::byte>> Call(NodeId to, MethodId method, std::span<const std::byte> request = {},
                                        size_t room = 1024, absl::Duration timeout = absl::InfiniteDuration());

  void StartJob(NodeId on, const Job& job);
  // True if every job on `peer` has finished. To be called in a loop.
  bool JobsDone(NodeId peer);
  uint64_t Violations(NodeId peer);

  std::unique_ptr<FabricHarness> harness_;
  std::unique_ptr<Channel> channel_;
  coro::Worker worker_;
  int poller_ = -1;
};

}  // namespace gannet::rdma::conformance
