// How much does a simulated event cost? The rack experiments make some 10 million of them a second.
#include <benchmark/benchmark.h>

#include <vector>

#include "rdma/base/thread.h"
#include "rdma/sim/event_queue.h"
#include "rdma/sim/simulation.h"

namespace gannet::rdma::sim {
namespace {

void QueuePushPop(benchmark::State& state) {
  EventQueue queue;
  Random random(1);
  for (int64_t i = 0; i < state.range(0); ++i) queue.Push(random.Below(4000), 0);
  for (auto _ : state) queue.Push(queue.Pop().time + random.Below(4000), 0);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(QueuePushPop)->Arg(16)->Arg(400)->Arg(4000);

// A resume event, taken, and a switch: `range` threads take turns.
void SwitchBetweenThreads(benchmark::State& state) {
  SimulationOptions options;
  options.cores_per_node = 1000;
  Simulation simulation(options);
  bool stop = false;
  std::vector<Runtime::Thread*> threads;
  for (int64_t i = 0; i < state.range(0); ++i) {
    threads.push_back(simulation.StartOn(0, "spins", [&stop] {
      while (!stop) Charge(Cost::kIndexStep);
    }));
  }
  SleepForNanos(1);
  const uint64_t before = simulation.statistics().switches;
  for (auto _ : state) SleepForNanos(100'000);
  state.SetItemsProcessed(static_cast<int64_t>(simulation.statistics().switches - before));
  stop = true;
  for (Runtime::Thread* thread : threads) simulation.Join(thread);
}
BENCHMARK(SwitchBetweenThreads)->Arg(2)->Arg(24)->Arg(384);

struct Ticker final : Happening {
  explicit Ticker(Simulation* owner) : simulation(owner) {}
  void Happen() override { simulation->Post(simulation->now() + 1000, this); }
  Simulation* simulation;
};

void EventsWithoutThreads(benchmark::State& state) {
  Simulation simulation({});
  std::vector<Ticker> tickers(static_cast<size_t>(state.range(0)), Ticker(&simulation));
  for (size_t i = 0; i < tickers.size(); ++i) simulation.Post(i, &tickers[i]);
  const uint64_t before = simulation.statistics().events;
  for (auto _ : state) SleepForNanos(10'000);
  state.SetItemsProcessed(static_cast<int64_t>(simulation.statistics().events - before));
}
BENCHMARK(EventsWithoutThreads)->Arg(16)->Arg(4000);

void ChargeWithoutSwitch(benchmark::State& state) {
  Simulation simulation({});
  for (auto _ : state) Charge(Cost::kIndexStep);
}
BENCHMARK(ChargeWithoutSwitch);

}  // namespace
}  // namespace gannet::rdma::sim

BENCHMARK_MAIN();
