#include "tests/conformance/fabric_peer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/coro/worker.h"
#include "base/random.h"
#include "rdma/rpc.h"
#include "rdma/versioned.h"

namespace gannet::rdma::conformance {
namespace {

constexpr uint64_t kLongestStallNs = 20'000'000'000;  // bounds a broken test

void Fill(std::vector<std::byte>* lines, size_t line, uint64_t word) {
  for (size_t i = 0; i < kLineBytes; i += kWordBytes) {
    std::memcpy(lines->data() + line * kLineBytes + i, &word, kWordBytes);
  }
}

// State shared by the jobs. Each job ends early when the peer stops or a verb fails (as a killed node's verbs do).
struct JobRun {
  Channel* channel;
  Job job;
  const std::atomic<bool>* stop;
  uint64_t violations = 0;
  Random random{1};

  // Pauses now and then, so that readers see the object both unchanged and in change.
  bool stopping() {
    for (uint64_t i = random.OneIn(2) ? random.Below(100) : 0; i > 0; --i) CpuRelax();
    return stop->load(std::memory_order_relaxed);
  }
};

coro::Task<void> WriteWord(JobRun* run) {
  for (uint64_t i = 0; i < run->job.count && !run->stopping(); ++i) {
    const uint64_t word = (i & 0xff) * 0x0101010101010101ull;
    const Status status = co_await run->channel->Write(&word, run->job.target, sizeof word);
    if (!status.ok()) co_return;
  }
}

coro::Task<void> WriteLines(JobRun* run) {
  std::vector<std::byte> image(run->job.lines * kLineBytes);
  for (uint64_t i = 1; i <= run->job.count && !run->stopping(); ++i) {
    for (size_t line = 0; line < run->job.lines; ++line) Fill(&image, line, i);
    const Status status =
        co_await run->channel->Write(image.data(), run->job.target, static_cast<uint32_t>(image.size()));
    if (!status.ok()) co_return;
  }
}

coro::Task<void> WriteVersioned(JobRun* run) {
  std::vector<std::byte> image(run->job.lines * kLineBytes);
  std::vector<std::byte> data(run->job.lines * kLineDataBytes);
  for (uint64_t version = 1; version <= run->job.count && !run->stopping();) {
    const StatusOr<uint64_t> found =
        co_await run->channel->CompareAndSwap(run->job.target, version - 1, (version - 1) | kLockBit);
    if (!found.ok()) co_return;
    std::fill(data.begin(), data.end(), VersionedByte(version));
    CopyIn(image.data(), 0, data);
    StampImage(image.data(), run->job.lines, version | kLockBit, version);
    std::array<Operation, 2> install{
        Operation::Write(image.data(), run->job.target, static_cast<uint32_t>(image.size())),
        Operation::Write(&version, run->job.target, sizeof version)};
    const Status status = co_await run->channel->Post(install);
    if (!status.ok()) co_return;
    ++version;
  }
}

coro::Task<void> InstallLine(JobRun* run) {
  std::array<std::byte, kLineBytes> image;
  std::array<std::byte, kLineDataBytes> data;
  for (uint64_t version = 1; version <= run->job.count && !run->stopping(); ++version) {
    const StatusOr<uint64_t> found =
        co_await run->channel->CompareAndSwap(run->job.target, version - 1, (version - 1) | kLockBit);
    if (!found.ok()) co_return;
    data.fill(VersionedByte(version));
    CopyIn(image.data(), 0, data);
    StampImage(image.data(), 1, version, version);
    const Status status = co_await run->channel->Write(image.data(), run->job.target, kLineBytes);
    if (!status.ok()) co_return;
  }
}

coro::Task<void> AddByFetchAndAdd(JobRun* run) {
  for (uint64_t i = 0; i < run->job.count && !run->stopping(); ++i) {
    const StatusOr<uint64_t> found = co_await run->channel->FetchAndAdd(run->job.target, 1);
    if (!found.ok()) co_return;
  }
}

coro::Task<void> AddByCompareAndSwap(JobRun* run) {
  uint64_t expected = 0;
  for (uint64_t i = 0; i < run->job.count && !run->stopping();) {
    const StatusOr<uint64_t> found = co_await run->channel->CompareAndSwap(run->job.target, expected, expected + 1);
    if (!found.ok()) co_return;
    if (*found == expected) ++i;
    expected = *found == expected ? expected + 1 : *found;
  }
}

void WriteVersionedByCpu(JobRun* run) {
  std::byte* object = run->channel->Local(run->job.target);
  std::vector<std::byte> data(run->job.lines * kLineDataBytes);
  for (uint64_t version = 1; version <= run->job.count && !run->stopping(); ++version) {
    const uint64_t found = CompareAndSwapWord(object, version - 1, (version - 1) | kLockBit);
    GANNET_CHECK(found == version - 1, "found 0x%x in the state word", found);
    std::fill(data.begin(), data.end(), VersionedByte(version));
    BeginWrite(object, run->job.lines);
    CopyIn(object, 0, data);
    EndWrite(object, run->job.lines, version);
  }
}

void AddByCpu(JobRun* run) {
  std::byte* word = run->channel->Local(run->job.target);
  for (uint64_t i = 0; i < run->job.count && !run->stopping(); ++i) FetchAndAddWord(word, 1);
}

void CheckOrder(JobRun* run) {
  std::byte* word = run->channel->Local(run->job.target);
  for (uint64_t last = 0; last < run->job.count && !run->stopping();) {
    last = LoadWord(word);
    if (LoadWord(word + kLineBytes) < last) ++run->violations;
  }
}

void RunJob(JobRun* run) {
  coro::Worker worker;
  worker.AddPoller([run] { return run->channel->Poll(); });
  switch (run->job.kind) {
    case JobKind::kWriteWord:
      return worker.BlockOn(WriteWord(run));
    case JobKind::kWriteLines:
      return worker.BlockOn(WriteLines(run));
    case JobKind::kWriteVersioned:
      return worker.BlockOn(WriteVersioned(run));
    case JobKind::kInstallLine:
      return worker.BlockOn(InstallLine(run));
    case JobKind::kFetchAndAdd:
      return worker.BlockOn(AddByFetchAndAdd(run));
    case JobKind::kCompareAndSwap:
      return worker.BlockOn(AddByCompareAndSwap(run));
    case JobKind::kWriteVersionedByCpu:
      return WriteVersionedByCpu(run);
    case JobKind::kFetchAndAddByCpu:
      return AddByCpu(run);
    case JobKind::kCheckOrder:
      return CheckOrder(run);
  }
}

StatusOr<size_t> Echo(std::span<const std::byte> request, std::span<std::byte> response) {
  WireWriter writer(response);
  const std::span<std::byte> out = writer.Reserve(request.size());
  if (!out.empty()) std::memcpy(out.data(), request.data(), request.size());
  return writer.Finish();
}

StatusOr<size_t> Fail(std::span<const std::byte> request) {
  WireReader reader(request);
  const auto code = static_cast<absl::StatusCode>(reader.GetU32());
  const std::string message(reader.GetString());
  GANNET_RETURN_IF_ERROR(reader.Finish());
  return Status(code, message);
}

StatusOr<size_t> Pattern(std::span<const std::byte> request, std::span<std::byte> response) {
  WireReader reader(request);
  const size_t bytes = reader.GetU32();
  const auto first = static_cast<size_t>(reader.GetU8());
  GANNET_RETURN_IF_ERROR(reader.Finish());
  WireWriter writer(response);
  const std::span<std::byte> out = writer.Reserve(bytes);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(first + i);
  return writer.Finish();
}

StatusOr<size_t> Sum(std::span<const std::byte> request, std::span<std::byte> response) {
  uint64_t sum = 0;
  for (const std::byte byte : request) sum += static_cast<uint64_t>(byte);
  WireWriter writer(response);
  writer.PutU64(sum);
  return writer.Finish();
}

StatusOr<size_t> Stall(Node* node, const std::atomic<bool>& stop, std::span<const std::byte> request) {
  WireReader reader(request);
  const uint64_t offset = reader.GetU64();
  GANNET_RETURN_IF_ERROR(reader.Finish());
  const uint64_t deadline = NowNanos() + kLongestStallNs;
  while (LoadWord(node->memory().data() + offset) == 0 && !stop && NowNanos() < deadline) YieldThread();
  return size_t{0};
}

}  // namespace

FabricPeer::FabricPeer(Fabric* fabric, NodeId id) : fabric_(fabric), id_(id) {
  StatusOr<std::unique_ptr<Node>> node = fabric_->Attach(id_);
  GANNET_CHECK(node.ok(), "%s", node.status().ToString());
  node_ = *std::move(node);
  Register();
  const Status status = node_->Serve(2);
  GANNET_CHECK(status.ok(), "%s", status.ToString());
}

FabricPeer::~FabricPeer() {
  stop_ = true;
  node_->Shutdown();
  for (Thread& job : jobs_) job.join();
}

void FabricPeer::Register() {
  using Request = std::span<const std::byte>;
  using Response = std::span<std::byte>;
  node_->Handle(kEcho, [](NodeId, Request request, Response response) { return Echo(request, response); });
  node_->Handle(kFail, [](NodeId, Request request, Response) { return Fail(request); });
  node_->Handle(kPattern, [](NodeId, Request request, Response response) { return Pattern(request, response); });
  node_->Handle(kSum, [](NodeId, Request request, Response response) { return Sum(request, response); });
  node_->Handle(kStall, [this](NodeId, Request request, Response) { return Stall(node_.get(), stop_, request); });
  node_->Handle(kCaller, [](NodeId caller, Request, Response response) {
    WireWriter writer(response);
    writer.PutU16(caller);
    return writer.Finish();
  });
  node_->Handle(kStartJob, [this](NodeId, Request request, Response) -> StatusOr<size_t> {
    WireReader reader(request);
    Job job;
    job.kind = static_cast<JobKind>(reader.GetU8());
    job.target = reader.GetAddress();
    job.count = reader.GetU64();
    job.lines = reader.GetU32();
    GANNET_RETURN_IF_ERROR(reader.Finish());
    Start(job);
    return size_t{0};
  });
  node_->Handle(kJobs, [this](NodeId, Request, Response response) {
    WireWriter writer(response);
    writer.PutU64(running_);
    writer.PutU64(violations_);
    return writer.Finish();
  });
}

// The suite starts jobs one at a time, so only one server thread is here.
void FabricPeer::Start(const Job& job) {
  ++running_;
  jobs_.emplace_back("job", [this, job] {
    StatusOr<std::unique_ptr<Channel>> channel = node_->OpenChannel();
    GANNET_CHECK(channel.ok(), "%s", channel.status().ToString());
    JobRun run{.channel = channel->get(), .job = job, .stop = &stop_};
    RunJob(&run);
    violations_ += run.violations;
    --running_;
  });
}

}  // namespace gannet::rdma::conformance
