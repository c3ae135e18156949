// What does a coroutine cost? Making and awaiting a task, awaiting a ready value, a round of the worker, entering and
// leaving an epoch.
#include <memory>

#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/coro/worker.h"
#include "benchmark/benchmark.h"
#include "rdma/epoch.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/slab.h"

namespace gannet::coro {
namespace {

Task<int> Answer(int value) {
  co_return value;
}

Task<void> AwaitTasks(benchmark::State* state) {
  int value = 0;
  for (auto _ : *state) {
    value += co_await Answer(1);
    benchmark::DoNotOptimize(value);
  }
}
void BM_TaskCreateAndAwait(benchmark::State& state) {
  Worker().BlockOn(AwaitTasks(&state));
}
BENCHMARK(BM_TaskCreateAndAwait);

[[gnu::noinline]] Async<int> ReadyAnswer(int value) {
  return value;
}
[[gnu::noinline]] Async<int> TaskAnswer(int value) {
  return Answer(value);
}

template <Async<int> (*kFunction)(int)>
Task<void> AwaitAsyncs(benchmark::State* state) {
  int value = 0;
  for (auto _ : *state) {
    value += co_await kFunction(1);
    benchmark::DoNotOptimize(value);
  }
}
void BM_AsyncReady(benchmark::State& state) {
  Worker().BlockOn(AwaitAsyncs<ReadyAnswer>(&state));
}
BENCHMARK(BM_AsyncReady);
void BM_AsyncTask(benchmark::State& state) {
  Worker().BlockOn(AwaitAsyncs<TaskAnswer>(&state));
}
BENCHMARK(BM_AsyncTask);

Task<void> YieldLoop(benchmark::State* state, Worker* worker) {
  for (auto _ : *state) co_await worker->Yield();
}
void BM_WorkerYield(benchmark::State& state) {
  Worker worker;
  worker.BlockOn(YieldLoop(&state, &worker));
}
BENCHMARK(BM_WorkerYield);

void BM_EpochEnterLeave(benchmark::State& state) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = 4 << 20}).value();
  auto node = fabric->Attach(0).value();
  rdma::SlabAllocator slab(node.get());
  auto epochs = rdma::EpochManager::Create(fabric.get(), node.get(), &slab).value();
  auto participant = rdma::EpochManager::Participant::Join(epochs.get()).value();
  for (auto _ : state) {
    participant->Enter();
    participant->Leave();
  }
}
BENCHMARK(BM_EpochEnterLeave);

void BM_SlabAllocateFree(benchmark::State& state) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = 4 << 20}).value();
  auto node = fabric->Attach(0).value();
  rdma::SlabAllocator slab(node.get());
  rdma::SlabCache cache(&slab);
  for (auto _ : state) {
    std::byte* block = cache.Allocate(192).value();
    benchmark::DoNotOptimize(block);
    cache.Free(block, 192);
  }
}
BENCHMARK(BM_SlabAllocateFree);

}  // namespace
}  // namespace gannet::coro

BENCHMARK_MAIN();
