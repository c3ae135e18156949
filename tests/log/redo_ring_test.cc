// The parts of the log writer in isolation.
#include "log/commit/redo_ring.h"

#include <thread>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/commit/durable_waiters.h"
#include "log/commit/epoch_slot.h"
#include "log/commit/large_redo.h"
#include "log/commit/writer_set.h"
#include "log/format/transaction_format.h"
#include "log/segment/batch_buffer.h"

namespace gannet::log {
namespace redo_ring_test {

using testing::ElementsAre;

// Writes a record of `bytes`: the first word is the size, each other word is `number`.
void WriteRecord(std::byte* at, size_t bytes, uint64_t number) {
  StoreWord(at, bytes);
  for (size_t i = 8; i < bytes; i += 8) StoreWord(at + i, number);
}

// Takes everything out of the ring; checks that the records are whole and in order.
void Consume(RedoRing* ring, uint64_t* next) {
  std::vector<std::byte> taken;
  const uint64_t head = ring->published();
  ring->VisitUpTo(head,
                  [&](std::span<const std::byte> piece) { taken.insert(taken.end(), piece.begin(), piece.end()); });
  ring->ReleaseUpTo(head);
  for (size_t at = 0; at < taken.size(); ++*next) {
    const uint64_t bytes = LoadWord(&taken[at]);
    ASSERT_LE(at + bytes, taken.size());
    for (size_t i = 8; i < bytes; i += 8) ASSERT_EQ(LoadWord(&taken[at + i]), *next);
    at += bytes;
  }
}

TEST(RedoRingTest, RecordsComeOutAsTheyWentInAcrossTheWrap) {
  RedoRing ring(4096);
  Random random(3);
  uint64_t written = 0;
  uint64_t read = 0;
  for (int round = 0; round < 20000; ++round) {
    const size_t bytes = 16 + 8 * random.Below(random.OneIn(10) ? ring.largest() / 8 - 1 : 20);
    if (ring.HasRoom(bytes)) {
      WriteRecord(ring.Room(bytes), bytes, written++);
      ring.Publish(bytes);
    }
    if (random.OneIn(5)) {
      ASSERT_NO_FATAL_FAILURE(Consume(&ring, &read));
    }
  }
  ASSERT_NO_FATAL_FAILURE(Consume(&ring, &read));
  EXPECT_EQ(read, written);
  EXPECT_GT(written, 5000u);
}

TEST(RedoRingTest, WhatFitsTogetherFitsInAnyOrder) {
  RedoRing ring(4096);
  Random random(5);
  for (int round = 0; round < 20000; ++round) {
    std::vector<size_t> promised;
    size_t total = 0;
    for (int i = 0; i < 4; ++i) {
      const size_t bytes = 8 + 8 * random.Below(ring.largest() / 8);
      if (!ring.HasRoom(total + bytes)) continue;
      promised.push_back(bytes);
      total += bytes;
    }
    while (!promised.empty()) {
      const size_t i = random.Below(promised.size());
      ring.Room(promised[i]);
      ring.Publish(promised[i] - 8 * random.Below(promised[i] / 8));
      promised.erase(promised.begin() + static_cast<ptrdiff_t>(i));
      ASSERT_LE(ring.published() - ring.tail(), ring.capacity());
    }
    if (random.OneIn(2)) ring.ReleaseUpTo(ring.published());
  }
}

TEST(RedoRingTest, TheLargestFitsWheneverTheRingIsEmpty) {
  RedoRing ring(4096);
  for (size_t i = 0; i < 2000; ++i) {
    ASSERT_TRUE(ring.HasRoom(ring.largest()));
    ring.Room(8 * (1 + i % 50));
    ring.Publish(8 * (1 + i % 50));
    ring.ReleaseUpTo(ring.published());
  }
}

TEST(RedoRingTest, OneThreadWritesAnotherReads) {
  RedoRing ring(4096);
  constexpr uint64_t kRecords = 20000;
  std::thread producer([&] {
    Random random(9);
    for (uint64_t i = 0; i < kRecords; ++i) {
      const size_t bytes = 16 + 8 * random.Below(60);
      while (!ring.HasRoom(bytes)) std::this_thread::yield();
      WriteRecord(ring.Room(bytes), bytes, i);
      ring.Publish(bytes);
    }
  });
  uint64_t read = 0;
  while (read < kRecords && !testing::Test::HasFatalFailure()) {
    Consume(&ring, &read);
    std::this_thread::yield();
  }
  producer.join();
  EXPECT_EQ(read, kRecords);
}

TEST(EpochSlotTest, ShowsTheOldestCommitInFlight) {
  SlotWord word;
  std::atomic<uint64_t> current{5};
  EpochSlot slot(&word, &current);
  EXPECT_EQ(slot.Enter(), 5u);
  EXPECT_EQ(slot.Enter(), 5u);
  current = 6;
  EXPECT_EQ(slot.Enter(), 6u);
  EXPECT_EQ(word.epoch, 5u);
  slot.Leave(5);
  EXPECT_EQ(word.epoch, 5u);
  slot.Leave(6);
  EXPECT_EQ(word.epoch, 5u);
  current = 8;
  EXPECT_EQ(slot.Enter(), 8u);
  slot.Leave(5);
  EXPECT_EQ(word.epoch, 8u);
  slot.Leave(8);
  EXPECT_EQ(word.epoch, SlotWord::kIdle);
}

TEST(EpochSlotDeathTest, ALeaveWithoutEnterAndAForeignEpochStopTheProgram) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  SlotWord word;
  std::atomic<uint64_t> current{5};
  EpochSlot slot(&word, &current);
  slot.Enter();
  current = 6;
  slot.Enter();
  slot.Leave(6);
  EXPECT_DEATH(slot.Leave(6), "no commit of epoch 6 is in flight");
  EXPECT_DEATH(slot.Leave(4), "no commit of epoch 4 is in flight");
  word.epoch = 7;
  EXPECT_DEATH(slot.Leave(5), "the slot shows epoch 7; the oldest commit is of 5");
}

TEST(RedoRingDeathTest, WhatIsNotReadYetIsNotOverwritten) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  RedoRing ring(4096);
  ring.Room(4000);
  ring.Publish(4000);
  EXPECT_DEATH(ring.Room(200), "200 bytes at 4096 of a ring of 4096, whose tail is 0");
  EXPECT_DEATH(ring.ReleaseUpTo(4096), "the tail goes from 0 to 4096; 4000 is published");
}

TEST(LargeRedoDeathTest, NoMoreIsTakenThanTheDiskHasRoomFor) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  LargeRedo large;
  large.SetLimit(100);
  large.Grant(80);
  bool granted = false;
  ASSERT_TRUE(large.Take(60, &granted).ok());
  ASSERT_TRUE(granted);
  EXPECT_DEATH(large.Grant(50), "have taken 60 bytes of 50 granted, limit 100");
  EXPECT_DEATH(large.Grant(101), "have taken 60 bytes of 101 granted, limit 100");
  EXPECT_DEATH(large.GiveBack(61), "61 bytes of large transactions are given back, 60 were taken");
}

// Recovery takes a closed epoch for complete.
TEST(WriterSetDeathTest, ACommitOfAClosedEpochStopsTheProgram) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  WriterSet writers(4096, 0, 0);
  const std::shared_ptr<WriterChannel> channel = writers.Open().value();
  TransactionEncoder encoder(channel->ring.Room(200));
  encoder.Add(ChangeKind::kRemove, 1, 2, uint64_t{3}, 0);
  channel->ring.Publish(encoder.Finish(7));
  BatchBuffer batch;
  EXPECT_DEATH(writers.MoveAllInto(&batch, 7), "a commit of epoch 7 comes after epoch 7 was closed");
  EXPECT_EQ(writers.MoveAllInto(&batch, 6), 0u);
  EXPECT_EQ(batch.content().transactions, 1u);
  EXPECT_DEATH(writers.MoveAllInto(&batch, 6), "is collected again");
  EXPECT_DEATH(batch.Seal({.transactions = 2}), "1 transactions is sealed as one of 2");
  EXPECT_DEATH(encoder.Add(ChangeKind::kRemove, 1, 2, uint64_t{3}, 8), "a removal from table 1 with 8 bytes");
}

class WaitersTest : public testing::Test {
 protected:
  // Handles are only passed on, so any address is fine.
  static std::coroutine_handle<> Handle(uintptr_t name) {
    return std::coroutine_handle<>::from_address(reinterpret_cast<void*>(name * 16));
  }
  auto Take() {
    return [this](std::coroutine_handle<> handle) {
      resumed_.push_back(reinterpret_cast<uintptr_t>(handle.address()) / 16);
    };
  }

  DurableWaiters waiters_;
  std::vector<uintptr_t> resumed_;
};

TEST_F(WaitersTest, ComeOutByEpochAndThenInTurn) {
  waiters_.Add({5, 100, Handle(1)});
  waiters_.Add({9, 100, Handle(2)});
  waiters_.Add({5, 100, Handle(3)});
  waiters_.Add({6, 100, Handle(4)});
  EXPECT_EQ(waiters_.TakeDurable(4, Take()), 0u);
  EXPECT_EQ(waiters_.TakeDurable(6, Take()), 3u);
  EXPECT_THAT(resumed_, ElementsAre(1, 3, 4));
  EXPECT_EQ(waiters_.least_epoch(), 9u);
}

TEST_F(WaitersTest, LateOnesComeOutWhateverTheirEpoch) {
  waiters_.Add({5, 300, Handle(1)});
  waiters_.Add({6, 100, Handle(2)});
  waiters_.Add({7, 200, Handle(3)});
  EXPECT_EQ(waiters_.TakeLate(99, Take()), 0u);
  EXPECT_EQ(waiters_.TakeLate(200, Take()), 2u);
  EXPECT_THAT(resumed_, ElementsAre(2, 3));
  EXPECT_EQ(waiters_.earliest_deadline(), 300u);
  EXPECT_EQ(waiters_.TakeDurable(5, Take()), 1u);
  EXPECT_TRUE(waiters_.empty());
}

}  // namespace redo_ring_test
}  // namespace gannet::log
