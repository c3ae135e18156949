// Inserts and updates of several clients of a process in the same leaves of Dolphin: what they cost, and what is there
// afterwards.
#include "ycsb/write_combiner.h"

#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "base/random.h"
#include "tests/ycsb/dolphin_leaves.h"

namespace gannet::ycsb {
namespace write_combiner_test {

using index::Key;
using index::OwnerThread;
using Outcome = index::dolphin::LeafChanger<WriteCombiner::Keys>::Outcome;

class WriteCombinerTest : public DolphinLeavesTest {};

TEST_F(WriteCombinerTest, OneStayForTheWritesOfALeaf) {
  Client client(this);
  client.Update(10, 7);
  client.worker.Run();
  const size_t reads = client.channel.reads();
  const size_t reserving = client.channel.locks();
  const size_t others = client.channel.changes();
  client.Update(20, 1);
  client.Update(20, 2);
  client.Update(30, 3);
  client.Update(20, 4);
  for (uint64_t key = 31; key < 35; ++key) client.Insert(key, key);
  client.worker.Run();
  EXPECT_TRUE(client.errors.empty()) << client.errors[0];
  EXPECT_EQ(client.alone, 1) << "the first one, to which the cache did not lead";
  EXPECT_EQ(client.channel.reads(), reads);
  EXPECT_EQ(client.channel.locks(), reserving + 1) << "the CASes of all inserts";
  EXPECT_EQ(client.channel.changes(), others + 2) << "into the leaf, and out of it with all changes";
  std::map<uint64_t, uint64_t> contents = Contents();
  EXPECT_EQ(contents.size(), 104u);
  EXPECT_EQ(contents[10], 7u);
  EXPECT_EQ(contents[20], 4u) << "the last one";
  EXPECT_EQ(contents[30], 3u);
  EXPECT_EQ(contents[33], 33u);
}

TEST_F(WriteCombinerTest, WhatItDoesNotDecideIsMadeAlone) {
  Client client(this);
  client.Update(10, 7);
  client.worker.Run();
  client.alone = 0;
  client.Insert(11, 1);
  client.Insert(11, 2);  // the same key
  client.Insert(20, 3);  // it is there
  client.Update(12, 4);  // it is not
  client.worker.Run();
  EXPECT_EQ(client.alone, 3);
  ASSERT_EQ(client.errors.size(), 3u);
  size_t exist = 0;
  for (const Status& error : client.errors) exist += absl::IsAlreadyExists(error) ? 1 : 0;
  EXPECT_EQ(exist, 2u);
  std::map<uint64_t, uint64_t> contents = Contents();
  EXPECT_EQ(contents.size(), 101u);
  EXPECT_EQ(contents[11], 1u);
  EXPECT_EQ(contents[20], 20u);
}

// More inserts than a leaf has room for: it is split by those that come back alone.
TEST_F(WriteCombinerTest, AFullLeafIsSplit) {
  Client client(this);
  client.Update(10, 10);
  client.worker.Run();
  for (uint64_t key = 1; key < 100; ++key) {
    if (key % 10 != 0) client.Insert(key, key);
  }
  client.worker.Run();
  EXPECT_TRUE(client.errors.empty()) << client.errors[0];
  EXPECT_GE(client.combined, 10) << "as many as there were free slots, but one";
  const std::map<uint64_t, uint64_t> contents = Contents();
  EXPECT_EQ(contents.size(), 190u);
  for (const auto& [key, value] : contents) EXPECT_EQ(value, key);
}

// A node has entered a leaf for inserts of two keys. The owner inserts the second one meanwhile, into the slot that the
// first one of the two would have taken. So the second one, whose CAS takes the next slot, must not stay.
TEST_F(WriteCombinerTest, AnInsertIsVoidIfAnEarlierOneHasMetItsKey) {
  Client client(this);
  client.Update(10, 10);
  client.worker.Run();
  auto& remote = dynamic_cast<WriteCombiner::Index&>(*client.remote);
  std::array<index::dolphin::LeafChanger<WriteCombiner::Keys>::Together, 3> writes = {{
      {.key = 11, .word = Value(1).bits()},
      {.key = 12, .word = Value(2).bits()},
      {.key = 13, .word = Value(3).bits()},
  }};
  const auto write = [&](OwnerThread* owner) -> coro::Task<Status> {
    index::dolphin::TernaryLock<WriteCombiner::Keys>::Stay stay;
    const auto look = co_await remote.editor().lock().Enter(remote.ExpectLeaf(11), index::dolphin::Part::kKeys, &stay);
    if (!look.ok()) co_return look.status();
    const StatusOr<index::Change> inserted = index_->Insert(owner->context(), Key(uint64_t{12}), Value(12), nullptr);
    if (!inserted.ok()) co_return inserted.status();
    co_return co_await remote.editor().changer().ChangeTogether(stay, writes);
  };
  const Status written = client.worker.BlockOn(write(owner_.get()));
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(writes[0].result.outcome, Outcome::kBusy) << "its slot has another key";
  EXPECT_EQ(writes[1].result.outcome, Outcome::kBusy);
  EXPECT_EQ(writes[2].result.outcome, Outcome::kDone);
  std::map<uint64_t, uint64_t> contents = Contents();
  EXPECT_EQ(contents.size(), 102u);
  EXPECT_EQ(contents[12], 12u) << "of the owner";
  EXPECT_EQ(contents[13], 3u);
  client.Insert(11, 1);
  client.worker.Run();
  EXPECT_TRUE(client.errors.empty()) << client.errors[0];
  EXPECT_EQ(Contents().size(), 103u);
}

// An insert of several that meets a reserved slot of its key takes none, and the next one the lowest free slot: no
// insert of another node may find a free slot before it.
TEST_F(WriteCombinerTest, AnInsertThatIsMadeAloneTakesNoSlot) {
  Client client(this);
  client.Update(10, 10);
  client.worker.Run();
  auto& remote = dynamic_cast<WriteCombiner::Index&>(*client.remote);
  const rdma::GlobalAddress leaf = remote.ExpectLeaf(12);
  std::array<index::dolphin::LeafChanger<WriteCombiner::Keys>::Together, 2> writes = {{
      {.key = 12, .word = Value(2).bits()},
      {.key = 13, .word = Value(3).bits()},
  }};
  int lowest = -1;
  const auto write = [&]() -> coro::Task<Status> {
    index::dolphin::TernaryLock<WriteCombiner::Keys>::Stay stay;
    auto look = co_await remote.editor().lock().Enter(leaf, index::dolphin::Part::kKeys, &stay);
    if (!look.ok()) co_return look.status();
    // A client that was inside has given up.
    const int reserved = stay.image.FreeSlot();
    const uint64_t word = stay.image.WordOf(12) | index::dolphin::kReservedBit;
    StoreWord(cluster_.At(leaf) + stay.image.key_offset(reserved), word);
    stay.image.set_key_word(reserved, word);
    lowest = stay.image.FreeSlot();
    co_return co_await remote.editor().changer().ChangeTogether(stay, writes);
  };
  const Status written = client.worker.BlockOn(write());
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(writes[0].result.outcome, Outcome::kFull);
  EXPECT_EQ(writes[1].result.outcome, Outcome::kDone);
  index::dolphin::LeafImage image;
  ASSERT_EQ(ReadOwnLeaf(cluster_.At(leaf), &image, index::dolphin::kDefaultKeyLines, /*locked_too=*/false),
            index::dolphin::LeafLook::kWhole);
  EXPECT_EQ(image.SlotOf(image.WordOf(13)), lowest);
  client.Insert(12, 12);
  client.worker.Run();
  EXPECT_TRUE(client.errors.empty()) << client.errors[0];
  EXPECT_EQ(Contents().size(), 102u);
}

// Threads of a node and the owner write the same keys. Each key is inserted once, and has a value that was written.
TEST_F(WriteCombinerTest, ThreadsAndTheOwnerWriteTheSameLeaves) {
  constexpr uint64_t kKeys = 2000;
  constexpr int kThreads = 3;
  constexpr uint64_t kWrites = 2000;
  std::atomic<uint64_t> inserted{100};
  std::atomic<int> combined{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Client client(this);
      Random random(static_cast<uint64_t>(t) + 1);
      for (uint64_t done = 0; done < kWrites; done += 10) {
        uint64_t inserts = 0;
        const uint64_t base = random.Below(kKeys - 20);
        for (int i = 0; i < 10; ++i) {
          const uint64_t key = base + random.Below(20);
          if (random.OneIn(2)) {
            client.Insert(key, 1000 * key + random.Below(1000));
            ++inserts;
          } else {
            client.Update(key, 1000 * key + random.Below(1000));
          }
        }
        client.worker.Run();
        for (const Status& error : client.errors) {
          ASSERT_TRUE(absl::IsAlreadyExists(error) || absl::IsNotFound(error)) << error;
          inserts -= absl::IsAlreadyExists(error) ? 1 : 0;
        }
        client.errors.clear();
        inserted += inserts;
      }
      combined += client.combined;
    });
  }
  Random random(9);
  for (uint64_t done = 0; done < kWrites; ++done) {
    const uint64_t key = random.Below(kKeys);
    const auto change = index_->Insert(owner_->context(), Key(key), Value(1000 * key), nullptr);
    ASSERT_TRUE(change.ok() || absl::IsAlreadyExists(change.status())) << change.status();
    inserted += change.ok() ? 1 : 0;
  }
  for (std::thread& thread : threads) thread.join();
  const std::map<uint64_t, uint64_t> contents = Contents();
  EXPECT_EQ(contents.size(), inserted.load());
  EXPECT_GT(combined.load(), 1000);
  for (const auto& [key, value] : contents) {
    EXPECT_TRUE(value / 1000 == key || value == key) << "key " << key << " has the value " << value;
  }
}

}  // namespace write_combiner_test
}  // namespace gannet::ycsb
