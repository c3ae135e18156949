// Loads of constant live size, turned over a thousand times: the memory that they take stays below a bound that does
// not depend on how long they run. In real time and in the simulation.
//
// The amount of memory that waits for a grace period depends on the speed of the machine. So each load lets grace
// periods pass after a number of transactions, and the bound follows from that number.
#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/sometimes.h"
#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/sim/sim_fabric.h"
#include "tests/txn/cluster.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace constant_memory_test {

constexpr uint64_t kHeapBytes = uint64_t{96} << 20;
constexpr int kTurns = 1000;
constexpr size_t kMostBytes = 8000;
constexpr size_t kFifoMostBytes = 60'100;

std::vector<TableOptions> Tables() {
  return {{.name = "blobs", .payload_bytes = kMostBytes, .variable_length = true, .expected_rows = 1000},
          {.name = "queue",
           .index = IndexKind::kXStore,
           .payload_bytes = kMostBytes,
           .variable_length = true,
           .expected_rows = 1000},
          {.name = "fifo", .payload_bytes = kFifoMostBytes, .variable_length = true, .expected_rows = 1000}};
}

// The environment in which a load runs.
class Machine {
 public:
  virtual ~Machine() = default;
  // Runs `work` on a thread of the node.
  virtual void Run(const std::function<void()>& work) = 0;
  Cluster& cluster() { return *cluster_; }

 protected:
  std::unique_ptr<Cluster> cluster_;
};

class RealMachine : public Machine {
 public:
  RealMachine() : fabric_(rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = kHeapBytes}).value()) {
    cluster_ = std::make_unique<Cluster>(fabric_.get(), DatabaseOptions{}, Tables());
  }
  ~RealMachine() override { cluster_.reset(); }
  void Run(const std::function<void()>& work) override { work(); }

 private:
  std::unique_ptr<rdma::ShmFabric> fabric_;
};

class SimulatedMachine : public Machine {
 public:
  SimulatedMachine() : simulation_({.seed = 1}) {
    rdma::sim::SimFabricOptions options;
    options.bytes_per_node = kHeapBytes;
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    cluster_ = std::make_unique<Cluster>(fabric_.get(), DatabaseOptions{}, Tables());
  }
  ~SimulatedMachine() override { cluster_.reset(); }
  void Run(const std::function<void()>& work) override {
    simulation_.Join(simulation_.StartOn(0, "load", [&work] { work(); }));
  }

 private:
  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
};

class ConstantMemoryTest : public testing::TestWithParam<bool> {
 protected:
  ConstantMemoryTest() {
    if (GetParam()) {
      machine_ = std::make_unique<SimulatedMachine>();
    } else {
      machine_ = std::make_unique<RealMachine>();
    }
  }

  // Runs `load` on a thread of the node, with a session. Afterwards the memory that it has taken must be below `bound`.
  void Expect(uint64_t bound, const std::function<void(Session&)>& load) {
    machine_->Run([&] {
      const uint64_t before = Taken();
      load(machine_->cluster().NewSession(0));
      EXPECT_LT(Taken() - before, bound);
      RecordProperty("taken", std::to_string(Taken() - before));
      machine_->cluster().sessions.clear();
    });
  }

  DatabaseState& state() { return machine_->cluster().databases[0]->state(); }
  uint64_t Taken() { return state().slab->statistics().carved_bytes; }
  Session& NewSession() { return machine_->cluster().NewSession(0); }
  const Table& table(const std::string& name) { return machine_->cluster().table(0, name); }

  // Waits until all blocks retired before are free, and have been freed if their session idles.
  void LetGracePeriodsPass(uint64_t rounds = 4) {
    for (const uint64_t until = state().epochs->current_epoch() + rounds; state().epochs->current_epoch() < until;) {
      SleepForNanos(1'000'000);
    }
  }
  void LetThemPassNowAndThen(int step, int every) {
    if (step % every == every - 1) LetGracePeriodsPass();
  }

  void Insert(Session& session, const std::string& where, uint64_t key, size_t bytes) {
    payload_.assign(bytes, std::byte{1});
    const Status status =
        RunBlockingBody(session, [&](BlockingTransaction& t) { return t.Insert(table(where), key, payload_); });
    ASSERT_TRUE(status.ok()) << status;
  }
  void Remove(Session& session, const std::string& where, uint64_t key) {
    const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) { return t.Remove(table(where), key); });
    ASSERT_TRUE(status.ok()) << status;
  }
  void Resize(Session& session, uint64_t key, size_t bytes) {
    payload_.assign(bytes, std::byte{2});
    const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      StatusOr<RecordHandle> handle = session.worker().BlockOn(HandleOf(t.transaction(), table("blobs"), key));
      if (!handle.ok()) return handle.status();
      return t.transaction().Update(*handle, payload_);
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  static coro::Task<StatusOr<RecordHandle>> HandleOf(Transaction& t, const Table& table, uint64_t key) {
    co_return co_await t.GetForUpdate(table, key, std::span<std::byte>(), 0);
  }

  std::unique_ptr<Machine> machine_;
  std::vector<std::byte> payload_;
};

INSTANTIATE_TEST_SUITE_P(Times, ConstantMemoryTest, testing::Bool(),
                         [](const auto& each) { return std::string(each.param ? "Simulated" : "Real"); });

// 40 rows of 0 to 8,000 bytes: 160 kB.
TEST_P(ConstantMemoryTest, RowsOfVaryingSizes) {
  constexpr int kRows = 40;
  Expect(12 << 20, [&](Session& session) {
    Random random(1);
    for (uint64_t key = 0; key < kRows; ++key) Insert(session, "blobs", key, random.Below(kMostBytes));
    for (int i = 0; i < kTurns * kRows && !HasFatalFailure(); ++i) {
      const auto key = static_cast<uint64_t>(i);
      Remove(session, "blobs", key);
      Insert(session, "blobs", key + kRows, random.Below(kMostBytes));
      LetThemPassNowAndThen(i, 1000);
    }
  });
}

TEST_P(ConstantMemoryTest, UpdatesThatResize) {
  constexpr int kRows = 40;
  Expect(12 << 20, [&](Session& session) {
    Random random(2);
    for (uint64_t key = 0; key < kRows; ++key) Insert(session, "blobs", key, random.Below(kMostBytes));
    for (int i = 0; i < kTurns * kRows && !HasFatalFailure(); ++i) {
      Resize(session, random.Below(kRows), random.Below(kMostBytes));
      LetThemPassNowAndThen(i, 1000);
    }
  });
}

// Rows are inserted at one end and removed at the other. The leaves that become empty must be freed, too.
TEST_P(ConstantMemoryTest, AQueue) {
  constexpr uint64_t kRows = 60;
  Expect(3 << 20, [&](Session& session) {
    for (uint64_t key = 0; key < kRows; ++key) Insert(session, "queue", key, 100);
    for (uint64_t key = 0; key < kTurns * kRows && !HasFatalFailure(); ++key) {
      Insert(session, "queue", key + kRows, 100);
      Remove(session, "queue", key);
      LetThemPassNowAndThen(static_cast<int>(key), 2000);
    }
    EXPECT_LT(table("queue").local_index().statistics().nodes, 200u);
  });
}

// 300 rows are removed and inserted by each transaction: more than any fixed number that a transaction frees.
TEST_P(ConstantMemoryTest, TransactionsWithHundredsOfRemovals) {
  constexpr uint64_t kRows = 300;
  Expect(3 << 20, [&](Session& session) {
    payload_.assign(200, std::byte{3});
    for (uint64_t key = 0; key < kRows; ++key) Insert(session, "queue", key, 200);
    for (uint64_t turn = 0; turn < kTurns / 4 && !HasFatalFailure(); ++turn) {
      const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        for (uint64_t key = turn * kRows; key < (turn + 1) * kRows; ++key) {
          GANNET_RETURN_IF_ERROR(t.Insert(table("queue"), key + kRows, payload_));
          GANNET_RETURN_IF_ERROR(t.Remove(table("queue"), key));
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status;
      LetThemPassNowAndThen(static_cast<int>(turn), 5);
    }
    EXPECT_LT(table("queue").local_index().statistics().nodes, 500u);
  });
}

// Each session fills 1 MB, empties it, and then idles.
TEST_P(ConstantMemoryTest, SessionsThatRetireMuchAndIdle) {
  constexpr int kSessions = 20;
  constexpr uint64_t kRows = 500;
  Expect(6 << 20, [&](Session&) {
    for (int i = 0; i < kSessions && !HasFatalFailure(); ++i) {
      Session& session = NewSession();
      for (uint64_t key = 0; key < kRows; ++key) Insert(session, "queue", key, 2000);
      const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        for (uint64_t key = 0; key < kRows; ++key) GANNET_RETURN_IF_ERROR(t.Remove(table("queue"), key));
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status;
      LetGracePeriodsPass(20);
    }
    EXPECT_LT(table("queue").local_index().statistics().nodes, 10u);
  });
}

// 16 MiB of records whose sizes grow slowly and start again; the oldest is removed. Freed blocks never have the wanted
// size. In the simulation no thread waits for a grace period, so the epochs must keep up.
TEST_P(ConstantMemoryTest, AFifoOfRecordsOfAllSizes) {
  constexpr size_t kLive = 16 << 20;
  constexpr int kEvery = 200;
  Expect(2 * kLive + kEvery * kFifoMostBytes, [&](Session& session) {
    std::deque<size_t> sizes;
    uint64_t first = 0;
    size_t live = 0;
    size_t bytes = 100;
    for (int i = 0; i < 20'000 && !HasFatalFailure(); ++i) {
      Insert(session, "fifo", first + sizes.size(), bytes);
      sizes.push_back(bytes);
      live += bytes;
      bytes = bytes + 7 > kFifoMostBytes ? 100 : bytes + 7;
      for (; live > kLive; sizes.pop_front()) {
        Remove(session, "fifo", first++);
        live -= sizes.front();
      }
      if (!GetParam()) LetThemPassNowAndThen(i, kEvery);
    }
  });
}

// The heap is full, and all of it waits for a grace period. A thread that needs memory waits for that.
TEST_P(ConstantMemoryTest, WhatWasJustRemovedMakesRoom) {
  Expect(kHeapBytes, [&](Session& session) {
    payload_.assign(kMostBytes, std::byte{5});
    uint64_t rows = 0;
    Status status;
    while (true) {
      status =
          RunBlockingBody(session, [&](BlockingTransaction& t) { return t.Insert(table("blobs"), rows, payload_); });
      if (!status.ok()) break;
      ++rows;
    }
    ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
    status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < rows; ++key) GANNET_RETURN_IF_ERROR(t.Remove(table("blobs"), key));
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    if (!GetParam()) LetGracePeriodsPass();  // a thread's patience is real time
    for (uint64_t key = 0; key < 100 && !HasFatalFailure(); ++key) Insert(session, "fifo", key, kFifoMostBytes);
    if (GetParam()) {
      EXPECT_GT(Mark::Reached("epoch: a thread that finds the memory full waits for a grace period"), 0u);
    }
  });
}

// The only memory that is left is that of a row which was removed just now. The next transaction begins before it is
// free, and so keeps it from becoming free: its body runs again.
TEST_P(ConstantMemoryTest, ARowTakesThePlaceOfOneThatWasJustRemoved) {
  Expect(kHeapBytes, [&](Session& session) {
    payload_.assign(kMostBytes, std::byte{5});
    const auto insert = [&](uint64_t key) {
      const auto body = [&](Transaction& t) -> coro::Task<Status> {
        co_return t.Insert(table("blobs"), key, payload_);
      };
      return session.RunBlocking(body);
    };
    uint64_t rows = 0;
    Status status;
    while (status = insert(rows), status.ok()) ++rows;
    ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
    for (uint64_t key = 0; key < 5; ++key) {
      Remove(session, "blobs", key);
      status = insert(rows + key);
      ASSERT_TRUE(status.ok()) << status;
    }
    if (GetParam()) {
      EXPECT_GT(Mark::Reached("commit: an attempt that found the memory full is run again after a grace period"), 0u);
    }
  });
}

// A table of 2 MB is emptied and filled with rows of another size, repeatedly.
TEST_P(ConstantMemoryTest, AMixOfSizesThatShifts) {
  constexpr size_t kLive = 2 << 20;
  constexpr int kPhases = 50;
  Expect(10 << 20, [&](Session& session) {
    Random random(3);
    uint64_t first = 0, next = 0;
    for (int phase = 0; phase < kPhases && !HasFatalFailure(); ++phase) {
      const size_t bytes = 200 + random.Below(kMostBytes - 200);
      const uint64_t rows = kLive / bytes;
      while (first < next) Remove(session, "blobs", first++);
      LetGracePeriodsPass();
      for (uint64_t i = 0; i < rows; ++i) Insert(session, "blobs", next++, bytes);
    }
  });
}

// The whole heap, given to rows of one size, serves rows of any other.
TEST_P(ConstantMemoryTest, AnEmptiedDatabaseTakesRowsOfAnotherSize) {
  Expect(kHeapBytes, [&](Session& session) {
    for (const size_t bytes : {3000, 100, 8000, 700}) {
      payload_.assign(bytes, std::byte{4});
      uint64_t rows = 0;
      const uint64_t wanted = (uint64_t{40} << 20) / std::max<size_t>(bytes, 700);
      for (; rows < wanted; ++rows) {
        const Status status =
            RunBlockingBody(session, [&](BlockingTransaction& t) { return t.Insert(table("blobs"), rows, payload_); });
        ASSERT_TRUE(status.ok()) << bytes << " bytes, row " << rows << ": " << status;
      }
      for (uint64_t key = 0; key < rows; ++key) Remove(session, "blobs", key);
      LetGracePeriodsPass(12);
    }
  });
}

}  // namespace constant_memory_test
}  // namespace gannet::txn
