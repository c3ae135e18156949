// Virtual time, cores, deaths, pauses, and the determinism of runs.
#include "rdma/sim/simulation.h"

#include <string>
#include <vector>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/thread.h"
#include "gtest/gtest.h"

namespace gannet::rdma::sim {
namespace simulation_test {

constexpr uint64_t kMicro = 1000;
constexpr uint64_t kMilli = 1'000'000;

SimulationOptions NanoPerStep() {
  SimulationOptions options;
  options.costs.picoseconds_per_unit[static_cast<size_t>(Cost::kIndexStep)] = 1000;
  return options;
}

void Work(uint64_t nanos) {
  Charge(Cost::kIndexStep, nanos);
}

TEST(Simulation, WorkTakesTimeAndNothingElseDoes) {
  Simulation simulation(NanoPerStep());
  EXPECT_EQ(simulation.now(), 0u);
  Work(123);
  EXPECT_EQ(simulation.now(), 123u);
  const uint64_t wall = WallNanos();
  Work(1000);
  EXPECT_EQ(WallNanos() - wall, 1000u);
}

TEST(Simulation, FractionsOfNanosecondsAddUp) {
  SimulationOptions options = NanoPerStep();
  options.costs.picoseconds_per_unit[static_cast<size_t>(Cost::kLogByte)] = 125;
  Simulation simulation(options);
  for (int i = 0; i < 80; ++i) Charge(Cost::kLogByte);
  EXPECT_EQ(simulation.now(), 10u);
}

TEST(Simulation, ALineThatThreadsChangeGoesFromOneToTheNext) {
  SimulationOptions options = NanoPerStep();
  options.costs.picoseconds_per_unit[static_cast<size_t>(Cost::kTakenLine)] = 100'000;
  Simulation simulation(options);
  const uint64_t line = 0;
  std::vector<uint64_t> taken;
  std::vector<Runtime::Thread*> threads;
  for (int i = 0; i < 3; ++i) {
    threads.push_back(simulation.StartOn(0, "takes", [&] {
      TakeLine(&line);
      taken.push_back(simulation.now());
    }));
  }
  for (Runtime::Thread* thread : threads) simulation.Join(thread);
  const uint64_t first = taken.at(0);
  EXPECT_EQ(taken, (std::vector<uint64_t>{first, first + 100, first + 200}));
  TakeLine(&line);
  const uint64_t own = simulation.now();
  TakeLine(&line);
  EXPECT_EQ(simulation.now(), own) << "who has it last pays nothing";
}

TEST(Simulation, ActionsHappenInTheOrderOfTimeAndThenOfPosting) {
  Simulation simulation(NanoPerStep());
  std::vector<int> order;
  simulation.At(20, [&] { order.push_back(3); });
  simulation.At(10, [&] { order.push_back(1); });
  simulation.At(10, [&] { order.push_back(2); });
  Work(15);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  Work(5);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

// Two threads on two cores: each sees the other's steps in the order of virtual time.
TEST(Simulation, ThreadsInterleaveByVirtualTime) {
  Simulation simulation(NanoPerStep());
  std::vector<std::pair<char, uint64_t>> steps;
  const auto walk = [&](char name, uint64_t stride) {
    for (int i = 0; i < 4; ++i) {
      Work(stride);
      steps.emplace_back(name, simulation.now());
    }
  };
  auto* a = simulation.StartOn(0, "a", [&] { walk('a', 30); });
  auto* b = simulation.StartOn(0, "b", [&] { walk('b', 50); });
  simulation.Join(a);
  simulation.Join(b);
  const std::vector<std::pair<char, uint64_t>> expected{{'a', 30},  {'b', 50},  {'a', 60},  {'a', 90},
                                                        {'b', 100}, {'a', 120}, {'b', 150}, {'b', 200}};
  EXPECT_EQ(steps, expected);
}

TEST(Simulation, MoreThreadsThanCoresTakeTurns) {
  SimulationOptions options = NanoPerStep();
  options.cores_per_node = 2;
  options.quantum_nanos = 100 * kMicro;
  Simulation simulation(options);
  std::vector<Runtime::Thread*> threads;
  std::vector<uint64_t> ends;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(simulation.StartOn(0, "works", [&] {
      for (int step = 0; step < 1000; ++step) Work(kMicro);
      ends.push_back(simulation.now());
    }));
  }
  for (Runtime::Thread* thread : threads) simulation.Join(thread);
  EXPECT_EQ(simulation.now(), 2 * kMilli);  // a millisecond of work for each of four threads, on two cores
  EXPECT_GE(ends[0], 2 * kMilli - 200 * kMicro);
  EXPECT_EQ(simulation.busy_nanos(0), 4 * kMilli);
  EXPECT_GE(simulation.statistics().preemptions, 10u);
}

TEST(Simulation, NodesDoNotShareCores) {
  SimulationOptions options = NanoPerStep();
  options.cores_per_node = 1;
  Simulation simulation(options);
  auto* a = simulation.StartOn(0, "a", [&] { Work(kMilli); });
  auto* b = simulation.StartOn(1, "b", [&] { Work(kMilli); });
  simulation.Join(a);
  simulation.Join(b);
  EXPECT_EQ(simulation.now(), kMilli);
}

TEST(Simulation, AThreadThatSleepsLeavesItsCoreToOthers) {
  SimulationOptions options = NanoPerStep();
  options.cores_per_node = 1;
  Simulation simulation(options);
  auto* sleeper = simulation.StartOn(0, "sleeper", [&] { SleepForNanos(kMilli); });
  auto* worker = simulation.StartOn(0, "worker", [&] { Work(kMilli); });
  simulation.Join(sleeper);
  simulation.Join(worker);
  EXPECT_EQ(simulation.now(), kMilli);
}

TEST(Simulation, ASpinningThreadIsOvertakenByTime) {
  Simulation simulation(NanoPerStep());
  bool go = false;
  auto* spins = simulation.StartOn(0, "spins", [&] {
    while (!go) CpuRelax();
  });
  simulation.At(kMilli, [&] { go = true; });
  simulation.Join(spins);
  EXPECT_GE(simulation.now(), kMilli);
  EXPECT_LE(simulation.now(), kMilli + kMicro);
}

TEST(Simulation, ThreadsThatYieldToEachOtherAreOvertakenByTime) {
  SimulationOptions options = NanoPerStep();
  options.cores_per_node = 1;
  Simulation simulation(options);
  bool go = false;
  const auto wait = [&] {
    while (!go && simulation.now() < 2 * kMilli) YieldThread();
  };
  auto* sleeper = simulation.StartOn(0, "sleeper", [&] {
    SleepForNanos(kMilli);
    go = true;
  });
  auto* first = simulation.StartOn(0, "first", wait);
  auto* second = simulation.StartOn(0, "second", wait);
  for (auto* thread : {sleeper, first, second}) simulation.Join(thread);
  EXPECT_GE(simulation.now(), kMilli);
  EXPECT_LE(simulation.now(), kMilli + 2 * kMicro);
}

TEST(Simulation, AKilledNodesThreadsNeverGoOnAndCanBeJoined) {
  Simulation simulation(NanoPerStep());
  Mutex mutex;
  int steps = 0;
  std::vector<Runtime::Thread*> threads{simulation.StartOn(0, "works",
                                                           [&] {
                                                             for (;;) {
                                                               Work(kMicro);
                                                               ++steps;
                                                             }
                                                           }),
                                        simulation.StartOn(0, "parks", [&] { simulation.Park(&mutex, UINT64_MAX); }),
                                        simulation.StartOn(0, "sleeps", [&] { SleepForNanos(kMilli); }),
                                        simulation.StartOn(0, "idles", [&] { simulation.Idle(UINT64_MAX); })};
  auto* other = simulation.StartOn(1, "other", [&] { SleepForNanos(kMilli); });
  SleepForNanos(10 * kMicro + 1);
  simulation.KillFibersOf(0);
  EXPECT_EQ(steps, 10);
  for (Runtime::Thread* thread : threads) simulation.Join(thread);
  simulation.Unpark(&mutex, 1);  // no thread is parked there
  simulation.Join(other);
  EXPECT_EQ(simulation.now(), kMilli);
  EXPECT_EQ(steps, 10);
  // The node's place can be used again.
  auto* next = simulation.StartOn(0, "next", [&] { ++steps; });
  simulation.Join(next);
  EXPECT_EQ(steps, 11);
}

TEST(Simulation, AThreadMayKillItsOwnNode) {
  Simulation simulation(NanoPerStep());
  bool survived = false;
  auto* thread = simulation.StartOn(0, "suicide", [&] {
    simulation.KillFibersOf(0);
    survived = true;
  });
  simulation.Join(thread);
  EXPECT_FALSE(survived);
}

TEST(Simulation, KillPointsNameTheirNode) {
  Simulation simulation(NanoPerStep());
  std::vector<std::pair<NodeId, int>> passed;
  simulation.OnKillPoint([&](NodeId node, int point) {
    passed.emplace_back(node, point);
    if (point == 2) simulation.KillFibersOf(node);
  });
  auto* thread = simulation.StartOn(3, "passes", [&] {
    for (int point = 1; point <= 3; ++point) simulation.Passed(point);
  });
  simulation.Join(thread);
  EXPECT_EQ(passed, (std::vector<std::pair<NodeId, int>>{{3, 1}, {3, 2}}));
}

TEST(Simulation, APausedNodeStandsStill) {
  Simulation simulation(NanoPerStep());
  uint64_t longest = 0;
  auto* thread = simulation.StartOn(0, "works", [&] {
    while (simulation.now() < 3 * kMilli) {
      const uint64_t before = simulation.now();
      Work(kMicro);
      longest = std::max(longest, simulation.now() - before);
    }
  });
  simulation.At(kMilli, [&] { simulation.PauseFibersOf(0, 2 * kMilli); });
  simulation.Join(thread);
  EXPECT_GE(longest, kMilli);
  EXPECT_LE(longest, kMilli + kMicro);
  EXPECT_GE(simulation.busy_nanos(0), 2 * kMilli - kMicro);
  EXPECT_LE(simulation.busy_nanos(0), 2 * kMilli + kMicro);
}

TEST(Simulation, ClocksOfNodesDifferAndSleepsEndByThem) {
  SimulationOptions options = NanoPerStep();
  options.faults.clock_skew_nanos = 50 * kMilli;
  options.faults.clock_drift = 0.01;
  Simulation simulation(options);
  std::vector<uint64_t> clocks;
  for (NodeId node = 0; node < 3; ++node) {
    auto* thread = simulation.StartOn(node, "clock", [&] {
      const uint64_t start = NowNanos();
      SleepUntilNanos(start + 10 * kMilli);
      EXPECT_GE(NowNanos(), start + 10 * kMilli);
      EXPECT_LE(NowNanos(), start + 10 * kMilli + 10);
      clocks.push_back(NowNanos() - simulation.now());
    });
    simulation.Join(thread);
  }
  EXPECT_NE(clocks[0], clocks[1]);
  EXPECT_NE(clocks[1], clocks[2]);
}

struct Outcome {
  uint64_t digest;
  std::string trace;
  uint64_t outcome;
};

// Threads that compete for a mutex, sleep at random, and are paused.
Outcome RunSeed(uint64_t seed) {
  Outcome run{};
  SimulationOptions options = NanoPerStep();
  options.seed = seed;
  options.cores_per_node = 2;
  options.quantum_nanos = 20 * kMicro;
  options.faults.preempt = 0.1;
  options.faults.pause_every = 200 * kMicro;
  options.faults.pause_nanos = 100 * kMicro;
  options.trace = [&run](std::string_view line) { run.trace.append(line).append("\n"); };
  Simulation simulation(options);
  Mutex mutex;
  std::vector<Runtime::Thread*> threads;
  for (int i = 0; i < 6; ++i) {
    threads.push_back(simulation.StartOn(static_cast<NodeId>(i % 2), "t" + std::to_string(i), [&run, &mutex, i] {
      Random random(i);
      for (int round = 0; round < 50; ++round) {
        Work(random.Below(3000));
        PreemptionPoint();
        const std::lock_guard lock(mutex);
        run.outcome = run.outcome * 31 + static_cast<uint64_t>(i);
        if (random.OneIn(4)) SleepForNanos(random.Below(5000));
      }
    }));
  }
  for (Runtime::Thread* thread : threads) simulation.Join(thread);
  run.digest = simulation.digest();
  return run;
}

TEST(Simulation, EqualSeedsGiveEqualRuns) {
  const Outcome first = RunSeed(7);
  const std::vector<int> shift_the_heap(12345);
  const Outcome again = RunSeed(7);
  EXPECT_EQ(first.digest, again.digest);
  EXPECT_EQ(first.trace, again.trace);
  EXPECT_EQ(first.outcome, again.outcome);
  EXPECT_NE(first.trace.find("preempted"), std::string::npos);
  EXPECT_NE(first.trace.find("pauses"), std::string::npos);
}

TEST(Simulation, OtherSeedsGiveOtherRuns) {
  std::vector<uint64_t> digests, outcomes;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Outcome run = RunSeed(seed);
    digests.push_back(run.digest);
    outcomes.push_back(run.outcome);
  }
  for (size_t i = 1; i < digests.size(); ++i) {
    EXPECT_NE(digests[i], digests[0]);
    EXPECT_NE(outcomes[i], outcomes[0]);
  }
}

}  // namespace simulation_test
}  // namespace gannet::rdma::sim
