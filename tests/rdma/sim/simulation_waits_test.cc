// Threads, mutexes, condition variables, latches and futexes on fibers.
#include <atomic>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/coro/worker.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "rdma/sim/simulation.h"

namespace gannet::rdma::sim {
namespace simulation_waits_test {

constexpr uint64_t kMicro = 1000;
constexpr uint64_t kMilli = 1'000'000;

TEST(SimulationWaits, AThreadRunsAndIsJoined) {
  Simulation simulation({});
  int ran = 0;
  Thread thread("a", [&] { ++ran; });
  EXPECT_EQ(ran, 0);  // no thread runs before this one waits
  thread.join();
  EXPECT_EQ(ran, 1);
}

TEST(SimulationWaits, ThreadsStartThreads) {
  Simulation simulation({});
  std::vector<int> order;
  Thread outer("outer", [&] {
    order.push_back(1);
    Thread inner("inner", [&] { order.push_back(2); });
    inner.join();
    order.push_back(3);
  });
  outer.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(SimulationWaits, SleepersWakeInTheOrderOfTheirDeadlines) {
  Simulation simulation({});
  std::vector<uint64_t> order;
  const uint64_t start = NowNanos();
  std::vector<Thread> threads;
  for (const uint64_t sleep : {3 * kMilli, kMilli, 2 * kMilli}) {
    threads.emplace_back("sleeper", [&order, sleep, start] {
      SleepUntilNanos(start + sleep);
      order.push_back(NowNanos() - start);
    });
  }
  for (Thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<uint64_t>{kMilli, 2 * kMilli, 3 * kMilli}));
  EXPECT_EQ(simulation.now(), 3 * kMilli);
}

TEST(SimulationWaits, AMutexKeepsOthersOutWhileItsHolderSleeps) {
  Simulation simulation({});
  Mutex mutex;
  int inside = 0, most = 0, entries = 0;
  std::vector<Thread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back("contender", [&] {
      for (int round = 0; round < 10; ++round) {
        const std::lock_guard lock(mutex);
        most = std::max(most, ++inside);
        SleepForNanos(10 * kMicro);
        --inside;
        ++entries;
      }
    });
  }
  for (Thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(entries, 50);
  EXPECT_EQ(simulation.now(), 500 * kMicro);
}

TEST(SimulationWaits, AnUncontendedMutexSwitchesNothing) {
  Simulation simulation({});
  Mutex mutex;
  const uint64_t before = simulation.statistics().switches;
  for (int i = 0; i < 100; ++i) const std::lock_guard lock(mutex);
  EXPECT_EQ(simulation.statistics().switches, before);
  EXPECT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
}

TEST(SimulationWaits, ReadersShareAndWritersDoNot) {
  Simulation simulation({});
  SharedMutex mutex;
  int readers = 0, most = 0;
  bool writing = false;
  std::vector<Thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back("reader", [&] {
      const std::shared_lock lock(mutex);
      most = std::max(most, ++readers);
      EXPECT_FALSE(writing);
      SleepForNanos(kMicro);
      --readers;
    });
  }
  threads.emplace_back("writer", [&] {
    const std::unique_lock lock(mutex);
    writing = true;
    EXPECT_EQ(readers, 0);
    SleepForNanos(kMicro);
    writing = false;
  });
  for (Thread& thread : threads) thread.join();
  EXPECT_EQ(most, 3);
  EXPECT_EQ(simulation.now(), 2 * kMicro);
}

TEST(SimulationWaits, ACondVarIsNotifiedOrTimesOut) {
  Simulation simulation({});
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  Thread setter("setter", [&] {
    SleepForNanos(kMilli);
    const std::lock_guard lock(mutex);
    ready = true;
    changed.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    EXPECT_FALSE(changed.wait_for(lock, absl::Microseconds(10), [&] { return ready; }));
    EXPECT_EQ(simulation.now(), 10 * kMicro);
    EXPECT_TRUE(changed.wait_for(lock, absl::Seconds(10), [&] { return ready; }));
    EXPECT_EQ(simulation.now(), kMilli);
  }
  setter.join();
}

TEST(SimulationWaits, EverybodyLeavesALatchTogether) {
  Simulation simulation({});
  Latch latch(4);
  std::vector<uint64_t> left;
  std::vector<Thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back("arrives", [&, i] {
      SleepForNanos(i * kMicro);
      latch.arrive_and_wait();
      left.push_back(simulation.now());
    });
  }
  for (Thread& thread : threads) thread.join();
  EXPECT_EQ(left, std::vector<uint64_t>(4, 3 * kMicro));
}

TEST(SimulationWaits, AFutexWakesOrTimesOutOrDoesNotSleepAtAll) {
  Simulation simulation({});
  std::atomic<uint32_t> word = 0;
  FutexWait(word, 1, kMilli);
  EXPECT_EQ(simulation.now(), 0u);
  FutexWait(word, 0, kMilli);
  EXPECT_EQ(simulation.now(), kMilli);
  Thread waker("waker", [&] {
    SleepForNanos(kMicro);
    word = 1;
    FutexWakeAll(word);
  });
  FutexWait(word, 0, 100 * kMilli);
  EXPECT_EQ(simulation.now(), kMilli + kMicro);
  waker.join();
}

TEST(SimulationWaits, WhoComesFirstIsWokenFirst) {
  Simulation simulation({});
  int key = 0;
  std::vector<int> order;
  std::vector<Thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back("waits", [&, i] {
      EXPECT_TRUE(simulation.Park(&key, UINT64_MAX));
      order.push_back(i);
    });
  }
  SleepForNanos(1);
  simulation.Unpark(&key, 2);
  EXPECT_TRUE(order.empty());  // waking does not switch
  SleepForNanos(1);
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
  simulation.Unpark(&key, 2);
  for (Thread& thread : threads) thread.join();
}

TEST(SimulationWaits, AnIdleWorkerSleepsUntilItsCoroutinesTimeHasCome) {
  Simulation simulation({});
  coro::Worker worker;
  worker.BlockOn(worker.Sleep(NowNanos() + 7 * kMilli));
  EXPECT_GE(simulation.now(), 7 * kMilli);
  EXPECT_LE(simulation.now(), 7 * kMilli + kMicro);
  EXPECT_LE(simulation.statistics().events, 200u);
}

TEST(SimulationWaits, WhatAnIdleThreadWasWokenForWhileItWasBusyIsNotLost) {
  Simulation simulation({});
  const uint64_t start = NowNanos();
  const uint64_t self = simulation.current_fiber();
  simulation.WakeIdleFiber(self, 50);
  simulation.Idle(start + kMilli);
  EXPECT_EQ(simulation.now(), 50u);
  simulation.Charge(Cost::kWorkerRound, 1);  // its pollers poll
  const uint64_t looked = simulation.now();
  simulation.Idle(start + kMilli);
  EXPECT_EQ(simulation.now(), kMilli);
  EXPECT_LT(looked, 1000u);
}

TEST(SimulationWaits, LocalsBelongToTheirThread) {
  Simulation simulation({});
  const auto value = std::make_shared<int>(1);
  Thread thread("local", [&] {
    EXPECT_EQ(simulation.Local(0), nullptr);
    simulation.Local(0) = value;
    SleepForNanos(10);
    EXPECT_EQ(simulation.Local(0), value);
  });
  SleepForNanos(5);
  EXPECT_EQ(simulation.Local(0), nullptr);
  EXPECT_EQ(value.use_count(), 2);
  thread.join();
  EXPECT_EQ(value.use_count(), 1);
}

TEST(SimulationWaitsDeathTest, WhenEverybodyWaitsForEverTheSimulationSaysWho) {
  EXPECT_DEATH(
      {
        Simulation simulation({});
        int key = 0;
        Thread thread("stuck", [&] { simulation.Park(&key, UINT64_MAX); });
        thread.join();
      },
      "stuck");
}

}  // namespace simulation_waits_test
}  // namespace gannet::rdma::sim
