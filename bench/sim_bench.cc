// How much does a simulated event cost? The rack experiments need some 10 million of them per second.
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "base/coro/worker.h"
#include "base/thread.h"
#include "rdma/sim/event_queue.h"
#include "rdma/sim/sim_fabric.h"
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

// A resume event is posted and taken, with a switch: `range` threads run in turn.
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

// Two threads of the machine itself, each on a core of its own, hand a line to each other: Cost::kTakenLine.
void LineFromCoreToCore(benchmark::State& state) {
  alignas(kLineBytes) std::atomic<uint64_t> turn{0};
  constexpr uint64_t kOver = UINT64_MAX;
  Thread other("other", [&turn] {
    for (uint64_t seen = 0; seen != kOver; seen = turn.load()) {
      if (seen % 2 != 0) turn.compare_exchange_strong(seen, seen + 1);
    }
  });
  uint64_t next = 1;
  for (auto _ : state) {
    turn.store(next++);
    while (turn.load() != next) continue;
    ++next;
  }
  turn.store(kOver);
  other.join();
  state.SetItemsProcessed(2 * static_cast<int64_t>(state.iterations()));
}
BENCHMARK(LineFromCoreToCore)->UseRealTime();

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

// --- a rack: one server, 15 clients of 24 threads with `range` coroutines each, for a millisecond of virtual time ---

constexpr int kClients = 15;
constexpr int kThreads = 24;
constexpr uint64_t kWarmUp = 100'000;
constexpr MethodId kLookup = 60000;

struct Rack {
  Rack(int coroutines, uint64_t lead_nanos) : simulation(Options(lead_nanos)) {
    SimFabricOptions options;
    options.num_nodes = 1 + kClients;
    options.bytes_per_node = 64 << 20;
    options.nic = *FindNicProfile("2x-cx4-100g");
    fabric = SimFabric::Create(&simulation, options).value();
    for (int i = 0; i <= kClients; ++i) nodes.push_back(fabric->Attach(static_cast<NodeId>(i)).value());
    nodes[0]->Handle(kLookup, [](NodeId, std::span<const std::byte>, std::span<std::byte>) -> StatusOr<size_t> {
      for (int level = 0; level < 7; ++level) Charge(Cost::kIndexStep);
      return size_t{16};
    });
    (void)nodes[0]->Serve(kThreads);
    per_thread = coroutines;
  }

  static SimulationOptions Options(uint64_t lead_nanos) {
    SimulationOptions options;
    options.lead_nanos = lead_nanos;
    options.cores_per_node = kThreads;
    return options;
  }

  coro::Task<void> Loop(Channel* channel, uint64_t seed, bool calls) {
    Random random(seed);
    std::array<std::byte, 64> buffer;
    std::array<std::byte, 16> request{};
    while (!stop) {
      if (calls) {
        const StatusOr<size_t> size = co_await channel->Call(0, kLookup, request, buffer);
        done += size.ok();
        continue;
      }
      const GlobalAddress from(0, 4096 + 64 * random.Below(1 << 16));
      const Status status = co_await channel->Read(from, buffer.data(), 64);
      done += status.ok();
    }
  }

  void Start(bool calls) {
    for (int i = 0; i < kClients * kThreads; ++i) {
      const auto node = static_cast<NodeId>(1 + i % kClients);
      threads.push_back(simulation.StartOn(node, "client", [this, node, i, calls] {
        const std::unique_ptr<Channel> channel = nodes[node]->OpenChannel().value();
        coro::Worker worker;
        worker.AddPoller([&channel] { return channel->Poll(); });
        for (int c = 0; c < per_thread; ++c)
          worker.Spawn(Loop(channel.get(), static_cast<uint64_t>(i) * 100 + static_cast<uint64_t>(c), calls));
        worker.Run();
      }));
    }
    SleepForNanos(kWarmUp);
  }

  void Stop() {
    stop = true;
    for (Runtime::Thread* thread : threads) simulation.Join(thread);
  }

  Simulation simulation;
  std::unique_ptr<SimFabric> fabric;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Runtime::Thread*> threads;
  int per_thread = 0;
  bool stop = false;
  uint64_t done = 0;
};

void RunRack(benchmark::State& state, bool calls) {
  Rack rack(static_cast<int>(state.range(0)), static_cast<uint64_t>(state.range(1)));
  rack.Start(calls);
  const uint64_t done = rack.done, events = rack.simulation.statistics().events, start = rack.simulation.now();
  const uint64_t switches = rack.simulation.statistics().switches;
  for (auto _ : state) SleepForNanos(100'000);
  const auto operations = static_cast<double>(rack.done - done);
  state.SetItemsProcessed(static_cast<int64_t>(operations));
  state.counters["events_per_op"] = static_cast<double>(rack.simulation.statistics().events - events) / operations;
  state.counters["switches_per_op"] =
      static_cast<double>(rack.simulation.statistics().switches - switches) / operations;
  state.counters["virtual_Mops"] = operations * 1e3 / static_cast<double>(rack.simulation.now() - start);
  state.counters["events/s"] = benchmark::Counter(static_cast<double>(rack.simulation.statistics().events - events),
                                                  benchmark::Counter::kIsRate);
  rack.Stop();
}

void RackReads(benchmark::State& state) {
  RunRack(state, false);
}
BENCHMARK(RackReads)->ArgsProduct({{1, 8}, {0, 200, 1000}})->ArgNames({"coroutines", "lead"});
void RackCalls(benchmark::State& state) {
  RunRack(state, true);
}
BENCHMARK(RackCalls)->ArgsProduct({{1, 8}, {0, 200, 1000}})->ArgNames({"coroutines", "lead"});

}  // namespace
}  // namespace gannet::rdma::sim

BENCHMARK_MAIN();
