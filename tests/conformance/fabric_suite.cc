#include "tests/conformance/fabric_suite.h"

#include <algorithm>
#include <array>

namespace gannet::rdma::conformance {
namespace {

coro::Task<Status> ReadTask(Channel* channel, GlobalAddress from, void* to, uint32_t size) {
  co_return co_await channel->Read(from, to, size);
}

coro::Task<Status> WriteTask(Channel* channel, const void* from, GlobalAddress to, uint32_t size) {
  co_return co_await channel->Write(from, to, size);
}

coro::Task<StatusOr<uint64_t>> SwapTask(Channel* channel, GlobalAddress word, uint64_t expected, uint64_t desired) {
  co_return co_await channel->CompareAndSwap(word, expected, desired);
}

coro::Task<StatusOr<uint64_t>> AddTask(Channel* channel, GlobalAddress word, uint64_t addend) {
  co_return co_await channel->FetchAndAdd(word, addend);
}

coro::Task<Status> PostTask(Channel* channel, std::span<Operation> operations) {
  co_return co_await channel->Post(operations);
}

coro::Task<StatusOr<size_t>> CallTask(Channel* channel, NodeId to, MethodId method, std::span<const std::byte> request,
                                      std::span<std::byte> response, absl::Duration timeout) {
  co_return co_await channel->Call(to, method, request, response, timeout);
}

}  // namespace

Status FabricSuite::Read(GlobalAddress from, void* to, uint32_t size) {
  return worker_.BlockOn(ReadTask(channel_.get(), from, to, size));
}

Status FabricSuite::Write(const void* from, GlobalAddress to, uint32_t size) {
  return worker_.BlockOn(WriteTask(channel_.get(), from, to, size));
}

StatusOr<uint64_t> FabricSuite::Swap(GlobalAddress word, uint64_t expected, uint64_t desired) {
  return worker_.BlockOn(SwapTask(channel_.get(), word, expected, desired));
}

StatusOr<uint64_t> FabricSuite::Add(GlobalAddress word, uint64_t addend) {
  return worker_.BlockOn(AddTask(channel_.get(), word, addend));
}

Status FabricSuite::Post(std::span<Operation> operations) {
  return worker_.BlockOn(PostTask(channel_.get(), operations));
}

uint64_t FabricSuite::ReadWord(GlobalAddress from) {
  uint64_t word = 0;
  const Status status = Read(from, &word, sizeof word);
  EXPECT_TRUE(status.ok()) << status;
  return word;
}

StatusOr<std::vector<std::byte>> FabricSuite::Call(NodeId to, MethodId method, std::span<const std::byte> request,
                                                   size_t room, absl::Duration timeout) {
  std::vector<std::byte> response(room);
  timeout = std::min(timeout, harness_->patience());
  StatusOr<size_t> bytes = worker_.BlockOn(CallTask(channel_.get(), to, method, request, response, timeout));
  if (!bytes.ok()) return bytes.status();
  response.resize(*bytes);
  return response;
}

void FabricSuite::StartJob(NodeId on, const Job& job) {
  std::array<std::byte, 64> request;
  WireWriter writer(request);
  writer.PutU8(static_cast<uint8_t>(job.kind));
  writer.PutAddress(job.target);
  writer.PutU64(job.count);
  writer.PutU32(job.lines);
  const Status status = Call(on, kStartJob, writer.written()).status();
  ASSERT_TRUE(status.ok()) << status;
}

bool FabricSuite::JobsDone(NodeId peer) {
  const std::vector<std::byte> response = Call(peer, kJobs).value();
  return WireReader(response).GetU64() == 0;
}

uint64_t FabricSuite::Violations(NodeId peer) {
  const std::vector<std::byte> response = Call(peer, kJobs).value();
  WireReader reader(response);
  reader.GetU64();
  return reader.GetU64();
}

}  // namespace gannet::rdma::conformance
