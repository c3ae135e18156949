#include "rdma/epoch.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "rdma/relay.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma {
namespace epoch_test {

// The objects of one node.
struct Member {
  Member(Fabric* fabric, NodeId id) : node(fabric->Attach(id).value()), slab(node.get()) {
    epochs = EpochManager::Create(fabric, node.get(), &slab).value();
    channel = node->OpenChannel().value();
  }
  std::unique_ptr<EpochManager::Participant> Join() { return EpochManager::Participant::Join(epochs.get()).value(); }
  Status Advance(int times = 1) {
    Status status;
    for (int i = 0; i < times && status.ok(); ++i) status = epochs->Advance(channel.get());
    return status;
  }

  std::unique_ptr<Node> node;
  SlabAllocator slab;
  std::unique_ptr<EpochManager> epochs;
  std::unique_ptr<Channel> channel;
};

class EpochTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fabric_ = ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = 8 << 20}).value();
    first_ = std::make_unique<Member>(fabric_.get(), 0);
    second_ = std::make_unique<Member>(fabric_.get(), 1);
  }

  int freed_ = 0;  // outlives the managers, which run retired functions at the latest in their destructors
  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<Member> first_, second_;
};

TEST_F(EpochTest, WhatNobodyReadsIsFreeAfterAWhile) {
  auto participant = first_->Join();
  participant->RetireWith([this] { ++freed_; });
  EXPECT_EQ(participant->Collect(), 1u);
  ASSERT_TRUE(first_->Advance(2).ok());
  EXPECT_EQ(participant->Collect(), 0u);
  EXPECT_EQ(freed_, 1);
}

TEST_F(EpochTest, ABlockReturnsToItsCache) {
  auto participant = first_->Join();
  SlabCache cache(&first_->slab);
  std::byte* block = cache.Allocate(5000).value();
  participant->Retire(block, 5000, &cache);
  EXPECT_NE(cache.Allocate(5000).value(), block);
  ASSERT_TRUE(first_->Advance(2).ok());
  participant->Enter();
  participant->Leave();  // collects
  EXPECT_EQ(cache.Allocate(5000).value(), block);
}

// The reader entered before the retirement, so the block is not freed as long as the reader stays.
TEST_F(EpochTest, AReaderOfTheSameNodeIsWaitedFor) {
  auto reader = first_->Join();
  auto writer = first_->Join();
  ASSERT_TRUE(first_->Advance(3).ok());
  reader->Enter();
  writer->RetireWith([this] { ++freed_; });
  ASSERT_TRUE(first_->Advance(10).ok());
  EXPECT_EQ(writer->Collect(), 1u);
  reader->Leave();
  ASSERT_TRUE(first_->Advance().ok());
  EXPECT_EQ(writer->Collect(), 0u);
  EXPECT_EQ(freed_, 1);
}

TEST_F(EpochTest, AReaderOfAnotherNodeIsWaitedFor) {
  auto reader = second_->Join();
  auto writer = first_->Join();
  reader->Enter();
  writer->RetireWith([this] { ++freed_; });
  ASSERT_TRUE(first_->Advance(10).ok());
  EXPECT_EQ(writer->Collect(), 1u);
  reader->Leave();
  ASSERT_TRUE(first_->Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
  EXPECT_EQ(freed_, 1);
}

// Node 1's copy of the epoch lags far behind; a retirement there must still wait for a reader that began on node 0 in a
// much later epoch.
TEST_F(EpochTest, ANodeWhoseEpochLagsWaitsForReadersOfLaterEpochs) {
  auto reader = first_->Join();
  auto writer = second_->Join();
  ASSERT_TRUE(first_->Advance(50).ok());
  ASSERT_LT(second_->epochs->current_epoch(), first_->epochs->current_epoch());
  reader->Enter();
  writer->RetireWith([this] { ++freed_; });
  ASSERT_TRUE(second_->Advance(10).ok());
  EXPECT_GE(second_->epochs->current_epoch(), first_->epochs->current_epoch());
  EXPECT_EQ(writer->Collect(), 1u);
  reader->Leave();
  ASSERT_TRUE(second_->Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
}

TEST_F(EpochTest, AReaderThatBeganAfterwardsIsNotWaitedFor) {
  auto reader = second_->Join();
  auto writer = first_->Join();
  writer->RetireWith([this] { ++freed_; });
  ASSERT_TRUE(first_->Advance(3).ok());
  ASSERT_TRUE(second_->Advance().ok());
  reader->Enter();
  writer->RetireWith([this] { ++freed_; });
  ASSERT_TRUE(first_->Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 1u);
  EXPECT_EQ(freed_, 1);
  reader->Leave();
}

TEST_F(EpochTest, OverlappingUsesOfOneSlotShowTheOldestThatIsStillIn) {
  auto reader = first_->Join();
  auto writer = first_->Join();
  const uint64_t older = reader->Enter();
  ASSERT_TRUE(first_->Advance().ok());
  const uint64_t younger = reader->Enter();
  ASSERT_NE(older, younger);
  writer->RetireWith([this] { ++freed_; });
  reader->Leave(older);  // the younger one entered before the retirement, too
  ASSERT_TRUE(first_->Advance(5).ok());
  EXPECT_EQ(writer->Collect(), 1u);
  const uint64_t youngest = reader->Enter();
  reader->Leave(younger);  // the slot advances without becoming idle
  ASSERT_TRUE(first_->Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
  reader->Leave(youngest);
}

TEST_F(EpochTest, WithoutATicketTheOldestStays) {
  auto reader = first_->Join();
  auto writer = first_->Join();
  reader->Enter();
  ASSERT_TRUE(first_->Advance().ok());
  reader->Enter();
  writer->RetireWith([this] { ++freed_; });
  reader->Leave();
  ASSERT_TRUE(first_->Advance(5).ok());
  EXPECT_EQ(writer->Collect(), 1u);
  reader->Leave();
  ASSERT_TRUE(first_->Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
}

TEST_F(EpochTest, ADeadReaderIsNotWaitedFor) {
  auto reader = second_->Join();
  auto writer = first_->Join();
  reader->Enter();
  writer->RetireWith([this] { ++freed_; });
  fabric_->Kill(1);
  ASSERT_TRUE(first_->Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
  reader->Leave();
}

TEST_F(EpochTest, WithoutNodeZeroTheNextMovesTheEpochOn) {
  auto reader = second_->Join();
  auto writer = second_->Join();
  fabric_->Kill(0);
  EXPECT_EQ(first_->Advance().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(first_->epochs->health().code(), absl::StatusCode::kUnavailable);
  writer->RetireWith([this] { ++freed_; });
  const uint64_t before = second_->epochs->current_epoch();
  ASSERT_TRUE(second_->Advance(2).ok());
  EXPECT_TRUE(second_->epochs->health().ok());
  EXPECT_GT(second_->epochs->current_epoch(), before);
  reader->Enter();  // it entered a later epoch, so it is not waited for
  ASSERT_TRUE(second_->Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
  reader->Leave();
}

// A restarted node knows nothing of the epoch, and another node's copy lags. Both must still wait for a reader that
// entered before.
TEST_F(EpochTest, ARestartedNodeDoesNotTurnTheEpochBack) {
  auto reader = second_->Join();
  ASSERT_TRUE(first_->Advance(50).ok());
  ASSERT_TRUE(second_->Advance().ok());
  reader->Enter();
  fabric_->Kill(0);
  first_.reset();
  Member again(fabric_.get(), 0);
  auto writer = again.Join();
  writer->RetireWith([this] { ++freed_; });
  ASSERT_TRUE(again.Advance(10).ok());
  EXPECT_GT(again.epochs->current_epoch(), 50u);
  EXPECT_EQ(writer->Collect(), 1u);
  reader->Leave();
  ASSERT_TRUE(again.Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
}

// READs find the line at byte `busy_at` of what they read busy, as if its first word had changed during the READ
// (fabric.h, 2). -1: none.
class BusyChannel final : public RelayChannel {
 public:
  BusyChannel(std::unique_ptr<Channel> inner, std::byte* memory, const Capabilities& capabilities, const int* busy_at)
      : RelayChannel(std::move(inner), memory, capabilities), busy_at_(busy_at) {}

 protected:
  bool Submit(std::span<Operation> operations, Completion* completion) override {
    return Complete(Relay(operations), completion);
  }
  bool SubmitCall(const CallRequest&, Completion*) override { GANNET_CHECK(false, "an epoch manager calls nobody"); }

 private:
  coro::Task<Status> Relay(std::span<Operation> operations) {
    Status status = co_await inner().Post(operations);
    for (const Operation& operation : operations) {
      if (*busy_at_ < 0) continue;
      std::memcpy(static_cast<std::byte*>(operation.local) + *busy_at_, &kLineBusy, sizeof kLineBusy);
    }
    co_return status;
  }

  const int* busy_at_;
};

// Node 0 is of a fabric whose READs may find a line busy.
class BusyEpochTest : public ::testing::Test {
 protected:
  BusyEpochTest()
      : inner_(ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = 8 << 20}).value()),
        fabric_(inner_.get(), inner_->capabilities(),
                [this](std::unique_ptr<Channel> channel, std::byte* memory) {
                  return std::make_unique<BusyChannel>(std::move(channel), memory, inner_->capabilities(), &busy_at_);
                }),
        first_(&fabric_, 0),
        second_(inner_.get(), 1) {}

  int busy_at_ = -1;
  int freed_ = 0;
  std::unique_ptr<ShmFabric> inner_;
  RelayFabric fabric_;
  Member first_, second_;
};

// A head that was changed during the READ is no epoch: the round does not tell what is free, and later rounds do.
TEST_F(BusyEpochTest, AHeadThatChangesDuringTheReadIsUnknown) {
  auto reader = second_.Join();
  auto writer = first_.Join();
  ASSERT_TRUE(first_.Advance(3).ok());
  reader->Enter();
  writer->RetireWith([this] { ++freed_; });
  busy_at_ = 0;
  const uint64_t before = first_.epochs->current_epoch();
  ASSERT_TRUE(first_.Advance(3).ok());
  EXPECT_EQ(first_.epochs->current_epoch(), before + 3);
  busy_at_ = -1;
  ASSERT_TRUE(first_.Advance(10).ok());
  EXPECT_EQ(writer->Collect(), 1u);
  reader->Leave();
  ASSERT_TRUE(first_.Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
  EXPECT_EQ(freed_, 1);
}

// A slot that was changed during the READ may show a reader: it had another reader's older epoch before, for example.
TEST_F(BusyEpochTest, ASlotThatChangesDuringTheReadIsNotIdle) {
  auto reader = second_.Join();
  auto writer = first_.Join();
  ASSERT_TRUE(first_.Advance(3).ok());
  reader->Enter();
  writer->RetireWith([this] { ++freed_; });
  busy_at_ = kLineBytes;  // the first slot
  ASSERT_TRUE(first_.Advance(10).ok());
  EXPECT_EQ(writer->Collect(), 1u);
  busy_at_ = -1;
  reader->Leave();
  ASSERT_TRUE(first_.Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
  EXPECT_EQ(freed_, 1);
}

TEST_F(EpochTest, WhatAParticipantLeavesBehindIsFreedByTheManager) {
  const uint64_t before = second_->slab.statistics().free_bytes;
  SlabCache cache(&second_->slab);
  std::byte* block = cache.Allocate(kMaxObjectBytes).value();  // blocks of its class are carved one by one
  {
    auto participant = second_->Join();
    participant->Retire(block, kMaxObjectBytes, &cache);
    participant->RetireWith([this] { ++freed_; });
  }
  ASSERT_TRUE(second_->Advance(2).ok());
  EXPECT_EQ(freed_, 1);
  EXPECT_EQ(second_->slab.statistics().free_bytes, before + kMaxObjectBytes);
}

// What waits of one participant is at most what it retires within a grace period, however much it retires at a time.
TEST_F(EpochTest, WhatWaitsIsBoundedByWhatAGracePeriodRetires) {
  constexpr int kTransactions = 400, kPerGracePeriod = 4;
  constexpr size_t kBlocks = 300, kFunctions = 100;
  SlabCache cache(&first_->slab);
  auto participant = first_->Join();
  for (int i = 0; i < kTransactions; ++i) {
    participant->Enter();
    for (size_t n = 0; n < kBlocks; ++n) {
      const StatusOr<std::byte*> block = cache.Allocate(200);
      ASSERT_TRUE(block.ok()) << "transaction " << i << ": " << block.status();
      participant->Retire(*block, 200, &cache);
    }
    for (size_t n = 0; n < kFunctions; ++n) participant->RetireWith([this] { ++freed_; });
    participant->Leave();
    if (i % kPerGracePeriod == 0) {
      ASSERT_TRUE(first_->Advance(3).ok());
    }
  }
  // The blocks of two grace periods, and those that the cache has reserved.
  EXPECT_LT(first_->slab.statistics().carved_bytes, 2 * kPerGracePeriod * kBlocks * 256 + (256 << 10));
  EXPECT_GE(freed_, static_cast<int>((kTransactions - 2 * kPerGracePeriod) * kFunctions));
}

// A few large blocks after many small ones must not accumulate behind them.
TEST_F(EpochTest, BytesThatWaitAreBoundedToo) {
  SlabCache cache(&first_->slab);
  auto participant = first_->Join();
  participant->Enter();
  for (int i = 0; i < 10'000; ++i) participant->Retire(cache.Allocate(64).value(), 64, &cache);
  participant->Leave();
  ASSERT_TRUE(first_->Advance(3).ok());
  for (int i = 0; i < 200; ++i) {
    participant->Enter();
    const StatusOr<std::byte*> block = cache.Allocate(64 << 10);
    ASSERT_TRUE(block.ok()) << i << ": " << block.status();
    participant->Retire(*block, 64 << 10, &cache);
    participant->Leave();
    ASSERT_TRUE(first_->Advance(2).ok());
  }
  EXPECT_LT(first_->slab.statistics().carved_bytes, 2u << 20);
}

TEST_F(EpochTest, WhatAnIdleParticipantRetiredIsFreedByTheThreadThatAdvances) {
  constexpr int kBlocks = 1000;
  constexpr size_t kBytes = 1024;
  SlabCache cache(&first_->slab);
  auto idle = first_->Join();
  auto inside = first_->Join();
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 2 * kBlocks; ++i) blocks.push_back(cache.Allocate(kBytes).value());
  const uint64_t free_before = first_->slab.statistics().free_bytes;
  for (int i = 0; i < kBlocks; ++i) {
    idle->Retire(blocks[i], kBytes, &cache);
    inside->Retire(blocks[kBlocks + i], kBytes, &cache);
  }
  idle->RetireWith([this] { ++freed_; });
  ASSERT_TRUE(first_->Advance(2).ok());
  inside->Enter();  // and does not leave
  ASSERT_TRUE(first_->Advance(8).ok());
  EXPECT_EQ(freed_, 1);
  EXPECT_EQ(first_->slab.statistics().free_bytes, free_before + 2 * kBlocks * (kBytes));
  EXPECT_EQ(idle->Collect() + inside->Collect(), 0u);
  inside->Leave();
}

TEST_F(EpochTest, AFullHeapFindsWhatOthersRetired) {
  SlabCache cache(&first_->slab), other_cache(&first_->slab);
  auto idle = first_->Join();
  while (true) {
    const StatusOr<std::byte*> block = other_cache.Allocate(kMaxObjectBytes);
    if (!block.ok()) break;
    idle->Retire(*block, kMaxObjectBytes, &other_cache);
  }
  EXPECT_EQ(cache.Allocate(kMaxObjectBytes).status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(first_->Advance(2).ok());
  EXPECT_TRUE(cache.Allocate(kMaxObjectBytes).ok());
}

// The thread of each participant and the advancing thread constantly take from the same backlogs.
TEST_F(EpochTest, ParticipantsAndTheManagerFreeEachBlockOnce) {
  constexpr int kThreads = 3, kTransactions = 3000;
  std::atomic<int> freed = 0;
  std::atomic<int> retired = 0;
  std::atomic<bool> stop = false;
  const uint64_t before = first_->slab.statistics().carved_bytes;
  {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        SlabCache cache(&first_->slab);
        auto participant = first_->Join();
        Random random(t);
        for (int i = 0; i < kTransactions; ++i) {
          participant->Enter();
          for (uint64_t n = random.Below(20); n > 0; --n) {
            participant->Retire(cache.Allocate(64).value(), 64, &cache);
            participant->RetireWith([&freed] { ++freed; });
            ++retired;
          }
          participant->Leave();
          if (random.OneIn(16)) std::this_thread::yield();
        }
        while (participant->Collect() > 0 && !stop) std::this_thread::yield();
      });
    }
    std::thread advancing([&] {
      while (!stop) EXPECT_TRUE(first_->Advance().ok());
    });
    for (std::thread& thread : threads) thread.join();
    stop = true;
    advancing.join();
  }
  EXPECT_EQ(freed, retired);
  const SlabStatistics now = first_->slab.statistics();
  EXPECT_EQ(now.free_bytes, now.carved_bytes - before);
}

TEST_F(EpochTest, ChoresRunAfterEachRoundUntilTheyAreRemoved) {
  const uint64_t chore = first_->epochs->AddChore([this] { ++freed_; });
  ASSERT_TRUE(first_->Advance(3).ok());
  EXPECT_EQ(freed_, 3);
  first_->epochs->RemoveChore(chore);
  ASSERT_TRUE(first_->Advance().ok());
  EXPECT_EQ(freed_, 3);
}

TEST_F(EpochTest, FunctionsRunAtTheLatestWhenTheManagerGoes) {
  second_->Join()->RetireWith([this] { ++freed_; });
  second_.reset();
  EXPECT_EQ(freed_, 1);
}

TEST_F(EpochTest, SlotsAreBoundedAndReused) {
  std::vector<std::unique_ptr<EpochManager::Participant>> all;
  for (int i = 0; i < EpochManager::kMaxParticipants; ++i) all.push_back(first_->Join());
  EXPECT_EQ(EpochManager::Participant::Join(first_->epochs.get()).status().code(),
            absl::StatusCode::kResourceExhausted);
  all.pop_back();
  EXPECT_TRUE(EpochManager::Participant::Join(first_->epochs.get()).ok());
}

TEST_F(EpochTest, TheManagerMustBeTheFirstToAllocate) {
  EXPECT_EQ(EpochManager::Create(fabric_.get(), first_->node.get(), &first_->slab).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Readers on both nodes follow one published pointer into blocks; the writer replaces the block and retires the old
// one. A block that is reused too early contains a poisoned word.
TEST_F(EpochTest, NoReaderEverSeesAReusedBlock) {
  constexpr uint64_t kGood = 1, kPoison = 2;
  constexpr int kReplacements = 20'000;
  ASSERT_TRUE(first_->epochs->Start().ok());
  ASSERT_TRUE(second_->epochs->Start().ok());
  SlabCache cache(&first_->slab);
  auto writer = first_->Join();
  std::byte* block = cache.Allocate(64).value();
  StoreWord(block, kGood);
  std::atomic<std::byte*> published = block;
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> poisoned = 0;
  std::mutex mutex;
  std::vector<std::byte*> poisoned_blocks;
  std::vector<std::thread> readers;
  for (Member* member : {first_.get(), second_.get()}) {
    readers.emplace_back([&, member] {
      auto reader = member->Join();
      Random random(7);
      while (!stop) {
        reader->Enter();
        std::byte* seen = published;
        if (random.OneIn(64)) std::this_thread::yield();
        if (LoadWord(seen) != kGood) ++poisoned;
        reader->Leave();
      }
    });
  }
  for (int i = 0; i < kReplacements; ++i) {
    {
      std::lock_guard lock(mutex);
      for (std::byte* reusable : poisoned_blocks) cache.Free(reusable, 64);
      poisoned_blocks.clear();
    }
    std::byte* fresh = cache.Allocate(64).value();
    StoreWord(fresh, kGood);
    std::byte* old = published.exchange(fresh);
    writer->RetireWith([old, &poisoned_blocks, &mutex] {
      StoreWord(old, kPoison);
      std::lock_guard lock(mutex);
      poisoned_blocks.push_back(old);
    });
    writer->Enter();
    writer->Leave();
    if (i % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // let grace periods pass
  }
  stop = true;
  for (std::thread& thread : readers) thread.join();
  EXPECT_EQ(poisoned, 0u);
  first_->epochs->Stop();
  second_->epochs->Stop();
  ASSERT_TRUE(first_->Advance(2).ok());
  EXPECT_EQ(writer->Collect(), 0u);
}

}  // namespace epoch_test
}  // namespace gannet::rdma
