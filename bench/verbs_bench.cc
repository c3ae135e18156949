// What does a verb cost on the shm fabric? READ, WRITE, CAS, FAA and batches at random addresses of another node's
// memory, which is far larger than the caches; and CALL, answered by a server thread or by the caller itself.
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/coro/worker.h"
#include "base/random.h"
#include "benchmark/benchmark.h"
#include "rdma/fabric.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma {
namespace {

constexpr uint64_t kBytes = uint64_t{1} << 30;  // of accessed memory
constexpr MethodId kEcho = 60000;

// One cluster for all benchmarks: node 0 measures, node 1 has the memory.
struct Cluster {
  std::unique_ptr<ShmFabric> fabric =
      ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = kBytes + kBytes / 64, .read_only_percent = 1}).value();
  std::unique_ptr<Node> client = fabric->Attach(0).value();
  std::unique_ptr<Node> server = fabric->Attach(1).value();
  std::unique_ptr<Channel> channel = client->OpenChannel().value();
  coro::Worker worker;
  Random random{1};

  Cluster() {
    for (Node* node : {client.get(), server.get()}) {
      node->Handle(kEcho, [](NodeId, std::span<const std::byte> request, std::span<std::byte> response) {
        std::memcpy(response.data(), request.data(), request.size());
        return StatusOr<size_t>(request.size());
      });
    }
    const std::span<std::byte> memory = server->memory();
    for (uint64_t at = server->writable_offset(); at < memory.size(); at += 4096) memory[at] = std::byte{0};
    worker.AddPoller([this] { return channel->Poll(); });
  }

  GlobalAddress RandomLine(uint64_t room) {
    return {1, server->writable_offset() + random.Below((kBytes - room) / 64) * 64};
  }
};

Cluster& TheCluster() {
  static Cluster cluster;
  return cluster;
}

coro::Task<void> ReadLoop(benchmark::State* state, Cluster* cluster, uint32_t size) {
  std::vector<std::byte> buffer(size);
  for (auto _ : *state) {
    const Status status = co_await cluster->channel->Read(cluster->RandomLine(size), buffer.data(), size);
    GANNET_CHECK(status.ok(), "%s", status.ToString());
    benchmark::DoNotOptimize(buffer.data());
  }
}
void BM_Read(benchmark::State& state) {
  Cluster& cluster = TheCluster();
  cluster.worker.BlockOn(ReadLoop(&state, &cluster, static_cast<uint32_t>(state.range(0))));
}
BENCHMARK(BM_Read)->Arg(64)->Arg(320)->Arg(1024);

// READs the same line each time, which shows the cost of the verb itself.
coro::Task<void> ReadHotLoop(benchmark::State* state, Cluster* cluster) {
  std::array<std::byte, 64> buffer;
  const GlobalAddress line = cluster->RandomLine(64);
  for (auto _ : *state) {
    const Status status = co_await cluster->channel->Read(line, buffer.data(), 64);
    GANNET_CHECK(status.ok(), "%s", status.ToString());
    benchmark::DoNotOptimize(buffer.data());
  }
}
void BM_ReadHot(benchmark::State& state) {
  TheCluster().worker.BlockOn(ReadHotLoop(&state, &TheCluster()));
}
BENCHMARK(BM_ReadHot);

coro::Task<void> ReadBatchLoop(benchmark::State* state, Cluster* cluster, size_t count) {
  std::vector<std::array<std::byte, 64>> buffers(count);
  std::vector<Operation> batch(count);
  for (auto _ : *state) {
    for (size_t i = 0; i < count; ++i) batch[i] = Operation::Read(cluster->RandomLine(64), buffers[i].data(), 64);
    const Status status = co_await cluster->channel->Post(batch);
    GANNET_CHECK(status.ok(), "%s", status.ToString());
    benchmark::DoNotOptimize(buffers.data());
  }
  state->SetItemsProcessed(static_cast<int64_t>(state->iterations() * count));
}
void BM_ReadBatch(benchmark::State& state) {
  Cluster& cluster = TheCluster();
  cluster.worker.BlockOn(ReadBatchLoop(&state, &cluster, static_cast<size_t>(state.range(0))));
}
BENCHMARK(BM_ReadBatch)->Arg(4)->Arg(16);

coro::Task<void> WriteLoop(benchmark::State* state, Cluster* cluster, uint32_t size) {
  const std::vector<std::byte> buffer(size);
  for (auto _ : *state) {
    const Status status = co_await cluster->channel->Write(buffer.data(), cluster->RandomLine(size), size);
    GANNET_CHECK(status.ok(), "%s", status.ToString());
  }
}
void BM_Write(benchmark::State& state) {
  Cluster& cluster = TheCluster();
  cluster.worker.BlockOn(WriteLoop(&state, &cluster, static_cast<uint32_t>(state.range(0))));
}
BENCHMARK(BM_Write)->Arg(8)->Arg(64)->Arg(320)->Arg(1024);

coro::Task<void> CompareAndSwapLoop(benchmark::State* state, Cluster* cluster) {
  for (auto _ : *state) {
    const StatusOr<uint64_t> found = co_await cluster->channel->CompareAndSwap(cluster->RandomLine(8), 1, 2);
    benchmark::DoNotOptimize(found.ok());
  }
}
void BM_CompareAndSwap(benchmark::State& state) {
  TheCluster().worker.BlockOn(CompareAndSwapLoop(&state, &TheCluster()));
}
BENCHMARK(BM_CompareAndSwap);

coro::Task<void> FetchAndAddLoop(benchmark::State* state, Cluster* cluster) {
  for (auto _ : *state) {
    const StatusOr<uint64_t> found = co_await cluster->channel->FetchAndAdd(cluster->RandomLine(8), 1);
    benchmark::DoNotOptimize(found.ok());
  }
}
void BM_FetchAndAdd(benchmark::State& state) {
  TheCluster().worker.BlockOn(FetchAndAddLoop(&state, &TheCluster()));
}
BENCHMARK(BM_FetchAndAdd);

coro::Task<void> CallLoop(benchmark::State* state, Cluster* cluster, NodeId to, size_t size) {
  const std::vector<std::byte> request(size);
  std::vector<std::byte> response(size);
  for (auto _ : *state) {
    const StatusOr<size_t> answered = co_await cluster->channel->Call(to, kEcho, request, response);
    GANNET_CHECK(answered.ok(), "%s", answered.status().ToString());
  }
}

// A call to the caller's own node: both halves of the work in one thread.
void BM_CallServedByCaller(benchmark::State& state) {
  Cluster& cluster = TheCluster();
  const int poller = cluster.worker.AddPoller([&cluster] { return cluster.client->ServePending(8); });
  cluster.worker.BlockOn(CallLoop(&state, &cluster, 0, static_cast<size_t>(state.range(0))));
  cluster.worker.RemovePoller(poller);
}
BENCHMARK(BM_CallServedByCaller)->Arg(32)->Arg(4096);

// A call to a server thread on another core.
void BM_CallServedByThread(benchmark::State& state) {
  Cluster& cluster = TheCluster();
  static const Status serving = cluster.server->Serve(1);
  GANNET_CHECK(serving.ok(), "%s", serving.ToString());
  cluster.worker.BlockOn(CallLoop(&state, &cluster, 1, static_cast<size_t>(state.range(0))));
}
BENCHMARK(BM_CallServedByThread)->Arg(32)->Arg(4096)->UseRealTime();

}  // namespace
}  // namespace gannet::rdma

BENCHMARK_MAIN();
