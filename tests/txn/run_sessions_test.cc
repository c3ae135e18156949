// Database::Run by many threads: the sessions that they share, and their limit.
#include "txn/run/run_sessions.h"

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/sim/sim_fabric.h"
#include "txn/database.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace run_sessions_test {

constexpr uint64_t kCounter = 1;

const TableOptions kTable{.name = "rows", .payload_bytes = sizeof(uint64_t), .expected_rows = 100};

class RunSessionsTest : public testing::Test {
 protected:
  void Open(const DatabaseOptions& options) {
    fabric_ = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{256} << 20}).value();
    database_ = Database::Open(fabric_.get(), 0, options).value();
    rows_ = database_->CreateTable(kTable).value();
    ASSERT_TRUE(database_->Start().ok());
    const Status made = database_->Run([&](BlockingTransaction& t) { return t.Insert(*rows_, kCounter, uint64_t{0}); });
    ASSERT_TRUE(made.ok()) << made;
  }

  Status Count(BlockingTransaction& t) {
    uint64_t n = 0;
    if (Status s = t.Get(*rows_, kCounter, &n); !s.ok()) return s;
    return t.Update(*rows_, kCounter, n + 1);
  }
  uint64_t counted() {
    uint64_t n = 0;
    EXPECT_TRUE(database_->Run([&](BlockingTransaction& t) { return t.Get(*rows_, kCounter, &n); }).ok());
    return n;
  }

  // `n` threads call Run at the same time; at least `together` of them are inside a body at one moment.
  void RunInThreads(int n, int together) {
    std::atomic<int> inside{0};
    std::vector<std::unique_ptr<Thread>> threads;
    for (int i = 0; i < n; ++i) {
      threads.push_back(std::make_unique<Thread>("run", [&] {
        bool first = true;
        const Status status = database_->Run([&](BlockingTransaction& t) {
          if (std::exchange(first, false)) ++inside;
          while (inside.load() < together) YieldThread();
          return Count(t);
        });
        EXPECT_TRUE(status.ok()) << status;
      }));
    }
    for (const auto& thread : threads) thread->join();
  }

  std::unique_ptr<rdma::Fabric> fabric_;
  std::unique_ptr<Database> database_;
  const Table* rows_ = nullptr;
};

TEST_F(RunSessionsTest, ManyThreadsShareAFew) {
  Open({.run_sessions = 3, .durable_within = absl::Minutes(10)});
  RunInThreads(200, 3);
  EXPECT_EQ(counted(), 200u);
  EXPECT_LE(database_->state().run_sessions->open(), 3u);
}

TEST_F(RunSessionsTest, ThreadsThatRunOneAfterTheOtherNeedOne) {
  Open({.durable_within = absl::Minutes(10)});
  for (int i = 0; i < 100; ++i) RunInThreads(1, 1);
  EXPECT_EQ(counted(), 100u);
  EXPECT_EQ(database_->state().run_sessions->open(), 1u);
}

TEST_F(RunSessionsTest, AThreadGetsItsSessionAgain) {
  Open({.durable_within = absl::Minutes(10)});
  RunSessions& pool = *database_->state().run_sessions;
  std::optional<RunSessions::Borrowed> first = pool.Borrow().value();
  std::optional<RunSessions::Borrowed> second = pool.Borrow().value();
  Session* const own = &first->session();  // that of Open, in its nest
  EXPECT_NE(&second->session(), own);
  first.reset();
  second.reset();  // finds the nest taken
  for (int i = 0; i < 3; ++i) EXPECT_EQ(&pool.Borrow().value().session(), own);
  EXPECT_EQ(pool.open(), 2u);
  // Another thread takes it in place of opening a third.
  Thread("other", [&] {
    std::vector<RunSessions::Borrowed> both;
    both.push_back(pool.Borrow().value());
    both.push_back(pool.Borrow().value());
    EXPECT_EQ(pool.open(), 2u);
  }).join();
}

// A session that is given back reaches a waiter, whichever of the two comes first.
TEST_F(RunSessionsTest, NoWaiterIsForgotten) {
  constexpr int kThreads = 6;
  constexpr int kRuns = 3000;
  Open({.run_sessions = 2, .durable_within = absl::Minutes(10)});
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(std::make_unique<Thread>("run", [&] {
      for (int run = 0; run < kRuns; ++run) {
        const Status status = database_->Run([&](BlockingTransaction& t) { return Count(t); });
        ASSERT_TRUE(status.ok()) << status;
      }
    }));
  }
  for (const auto& thread : threads) thread->join();
  EXPECT_EQ(counted(), uint64_t{kThreads} * kRuns);
  EXPECT_LE(database_->state().run_sessions->open(), 2u);
}

// A thread borrows from its nest all the time, while others take sessions out of it, and wait, and one closes sessions.
TEST_F(RunSessionsTest, ASessionIsBorrowedOnceAtATime) {
  constexpr int kBorrows = 30'000;
  struct Load {
    size_t threads;
    int sessions;
  };
  for (const Load& load : {Load{2, 1}, Load{5, 3}, Load{5, 8}}) {
    Open({.run_sessions = load.sessions, .durable_within = absl::Minutes(10)});
    RunSessions& pool = *database_->state().run_sessions;
    std::array<std::atomic<Session*>, 5> held{};
    std::atomic<uint64_t> twice{0};
    const auto borrow = [&](size_t self) {
      StatusOr<RunSessions::Borrowed> borrowed = pool.Borrow();
      ASSERT_TRUE(borrowed.ok()) << borrowed.status();
      held[self].store(&borrowed->session());
      for (size_t other = 0; other < held.size(); ++other) {
        if (other != self && held[other].load() == &borrowed->session()) ++twice;
      }
      held[self].store(nullptr);
    };
    std::atomic<size_t> others{load.threads - 1};
    std::vector<std::unique_ptr<Thread>> threads;
    threads.push_back(std::make_unique<Thread>("run", [&] {
      while (others.load(std::memory_order_relaxed) > 0) borrow(0);
    }));
    for (size_t i = 1; i < load.threads; ++i) {
      threads.push_back(std::make_unique<Thread>("run", [&, i] {
        Random random(i);
        for (int n = 0; n < kBorrows; ++n) {
          borrow(i);
          for (uint64_t turns = random.Below(50); turns > 0; --turns) CpuRelax();
        }
        --others;
      }));
    }
    while (others.load() > 0) {
      pool.CloseIdle();
      SleepForNanos(100'000);
    }
    for (const auto& thread : threads) thread->join();
    EXPECT_EQ(twice.load(), 0u);
    EXPECT_LE(pool.open(), static_cast<size_t>(load.sessions));
    pool.Clear();
    EXPECT_EQ(pool.open(), 0u);
    database_ = nullptr;
  }
}

// Those that find all numbers of threads taken have no nest.
TEST_F(RunSessionsTest, MoreThreadsThanNests) {
  constexpr int kThreads = 80;
  constexpr int kRuns = 100;
  static_assert(kThreads > RunSessions::kNests);
  Open({.run_sessions = 70, .durable_within = absl::Minutes(10)});
  Latch all_ran(kThreads);
  std::vector<std::unique_ptr<Thread>> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.push_back(std::make_unique<Thread>("run", [&] {
      for (int run = 0; run < kRuns; ++run) {
        if (run == 1) all_ran.arrive_and_wait();  // each has its number, if there is one for it
        const Status status = database_->Run([&](BlockingTransaction& t) { return Count(t); });
        EXPECT_TRUE(status.ok()) << status;
      }
    }));
  }
  for (const auto& thread : threads) thread->join();
  EXPECT_EQ(counted(), uint64_t{kThreads} * kRuns);
  EXPECT_LE(database_->state().run_sessions->open(), 70u);
}

TEST_F(RunSessionsTest, AThreadInheritsTheNestOfOneThatHasEnded) {
  Open({.durable_within = absl::Minutes(10)});
  RunSessions& pool = *database_->state().run_sessions;
  pool.Clear();  // the session of this thread
  for (size_t i = 0; i < 2 * RunSessions::kNests; ++i) {
    Thread("run", [&] {
      EXPECT_EQ(pool.BorrowOwn().has_session(), i > 0) << i;
      EXPECT_TRUE(pool.Borrow().ok());
      EXPECT_TRUE(pool.BorrowOwn().has_session());
    }).join();
  }
  EXPECT_EQ(pool.open(), 1u);
}

TEST_F(RunSessionsTest, AnotherThreadTakesWhatIsNotBorrowed) {
  Open({.durable_within = absl::Minutes(10)});
  RunSessions& pool = *database_->state().run_sessions;
  Session* const session = &pool.BorrowOwn().session();
  Thread("other", [&] { EXPECT_EQ(&pool.Borrow().value().session(), session); }).join();
  EXPECT_FALSE(pool.BorrowOwn().has_session());
  EXPECT_EQ(&pool.Borrow().value().session(), session);
  EXPECT_TRUE(pool.BorrowOwn().has_session());
  EXPECT_EQ(pool.open(), 1u);
  const RunSessions::Borrowed borrowed = pool.BorrowOwn();
  EXPECT_FALSE(pool.CloseIdle());
  EXPECT_EQ(pool.open(), 1u);
}

TEST_F(RunSessionsTest, AnotherThreadMayGiveBack) {
  Open({.run_sessions = 2, .durable_within = absl::Minutes(10)});
  RunSessions& pool = *database_->state().run_sessions;
  std::optional<RunSessions::Borrowed> borrowed(pool.BorrowOwn());
  Session* const session = &borrowed->session();
  EXPECT_FALSE(pool.BorrowOwn().has_session());
  EXPECT_NE(&pool.Borrow().value().session(), session);
  Thread("other", [&] { const RunSessions::Borrowed taken = *std::move(borrowed); }).join();
  EXPECT_EQ(&pool.BorrowOwn().session(), session);
  // The session goes to a thread that waits, too.
  borrowed.emplace(pool.BorrowOwn());
  std::optional<RunSessions::Borrowed> second(pool.Borrow().value());
  Thread waiter("waiter", [&] { EXPECT_EQ(&pool.Borrow().value().session(), session); });
  Thread("other", [&] {
    SleepForNanos(20'000'000);
    const RunSessions::Borrowed taken = *std::move(borrowed);
  }).join();
  waiter.join();
  EXPECT_EQ(pool.open(), 2u);
}

TEST_F(RunSessionsTest, ACallThatGetsNoSessionSaysSo) {
  Open({.run_sessions = 1, .durable_within = absl::Milliseconds(10)});
  Status inner;
  const Status outer = database_->Run([&](BlockingTransaction& t) {
    inner = database_->Run([&](BlockingTransaction& within) { return Count(within); });
    return Count(t);
  });
  EXPECT_TRUE(absl::IsResourceExhausted(inner)) << inner;
  EXPECT_TRUE(outer.ok()) << outer;
  EXPECT_EQ(counted(), 1u);
}

TEST_F(RunSessionsTest, IdleSessionsMakeRoomForOthers) {
  Open({.durable_within = absl::Minutes(10)});
  RunInThreads(100, 64);
  EXPECT_EQ(database_->state().run_sessions->open(), 64u);
  // All channels except those of the database itself.
  std::vector<std::unique_ptr<Session>> sessions;
  StatusOr<std::unique_ptr<Session>> opened = database_->OpenSession();
  for (; opened.ok(); opened = database_->OpenSession()) sessions.push_back(*std::move(opened));
  EXPECT_TRUE(absl::IsResourceExhausted(opened.status())) << opened.status();
  EXPECT_NE(opened.status().message().find("destroy those that are not needed"), std::string::npos) << opened.status();
  EXPECT_GE(sessions.size(), 120u);
  EXPECT_EQ(database_->state().run_sessions->open(), 0u);
  for (const std::unique_ptr<Session>& session : sessions) {
    const auto body = [&](Transaction& t) -> coro::Task<Status> {
      uint64_t n = 0;
      co_return co_await t.Get(*rows_, kCounter, &n);
    };
    EXPECT_TRUE(session->RunBlocking(body).ok());
  }
  // Now Run has no session and cannot open one. It says so, and works again when there is room.
  EXPECT_TRUE(absl::IsResourceExhausted(database_->Run([&](BlockingTransaction& t) { return Count(t); })));
  sessions.pop_back();
  EXPECT_TRUE(database_->Run([&](BlockingTransaction& t) { return Count(t); }).ok());
  EXPECT_EQ(counted(), 101u);
}

TEST(RunSessionsInSimulationTest, WhatNobodyBorrowsIsClosed) {
  rdma::sim::Simulation simulation({.seed = 1});
  rdma::sim::SimFabricOptions options;
  options.num_nodes = 1;
  options.bytes_per_node = uint64_t{64} << 20;
  options.nic = *rdma::sim::FindNicProfile("cx4-100g");
  const std::unique_ptr<rdma::sim::SimFabric> fabric = *rdma::sim::SimFabric::Create(&simulation, options);
  simulation.Join(simulation.StartOn(0, "test", [&] {
    auto database = Database::Open(fabric.get(), 0, {}).value();
    const Table* rows = database->CreateTable(kTable).value();
    ASSERT_TRUE(database->Start().ok());
    RunSessions& pool = *database->state().run_sessions;
    {
      std::vector<RunSessions::Borrowed> all;
      for (int i = 0; i < 5; ++i) all.push_back(pool.Borrow().value());
      EXPECT_EQ(pool.open(), 5u);
    }
    EXPECT_EQ(pool.open(), 5u);
    const auto run = [&] {
      uint64_t n = 0;
      EXPECT_TRUE(absl::IsNotFound(database->Run([&](BlockingTransaction& t) { return t.Get(*rows, 7, &n); })));
    };
    run();
    EXPECT_EQ(pool.open(), 5u);
    // A sweep finds what has not been used since the one before.
    for (int sweeps = 0; sweeps < 2; ++sweeps) {
      SleepForNanos(RunSessions::kIdleNanos);
      for (uint32_t i = 0; i < RunSessions::kGiveBacksPerSweep; ++i) run();
    }
    EXPECT_EQ(pool.open(), 1u);
  }));
}

}  // namespace run_sessions_test
}  // namespace gannet::txn
