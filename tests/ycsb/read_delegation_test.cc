// Lookups of several clients of a process in the same leaves of Dolphin: what they cost, and what they may find.
#include "ycsb/read_delegation.h"

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "base/random.h"
#include "tests/ycsb/dolphin_leaves.h"

namespace gannet::ycsb {
namespace read_delegation_test {

class ReadDelegationTest : public DolphinLeavesTest {
 protected:
  static constexpr size_t kMostReads = ReadDelegation::kMostReads;

  // Its cache knows the way.
  struct WarmClient : Client {
    explicit WarmClient(DolphinLeavesTest* test) : Client(test) {
      std::optional<uint64_t> found;
      Find(10, &found);
      worker.Run();
      EXPECT_TRUE(found.has_value());
    }
  };

  static coro::Task<void> Yields(Client* client) {
    for (int i = 0; i < 10; ++i) co_await client->worker.Yield();
  }
  // Begins as many lookups of a key as may have READs in flight. Afterwards the READs have taken effect, but have not
  // completed.
  using Lookups = std::array<std::optional<uint64_t>, kMostReads>;
  static void FindAndHold(Client* client, uint64_t key, Lookups* found) {
    client->channel.Hold();
    const size_t reads = client->channel.reads();
    for (std::optional<uint64_t>& one : *found) client->Find(key, &one);
    client->worker.BlockOn(Yields(client));
    ASSERT_EQ(client->channel.reads(), reads + kMostReads);
  }
};

TEST_F(ReadDelegationTest, AFewReadsForTheLookupsOfALeaf) {
  WarmClient client(this);
  const size_t reads = client.channel.reads();
  std::array<std::optional<uint64_t>, 30> found;
  for (uint64_t i = 0; i < found.size(); ++i) client.Find(i % 3 * 10, &found[i]);
  client.worker.Run();
  EXPECT_TRUE(client.errors.empty()) << client.errors[0];
  for (uint64_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i % 3 * 10);
  EXPECT_EQ(client.channel.reads(), reads + kMostReads + 1) << "those of the first, and one for all who wait";
}

TEST_F(ReadDelegationTest, KeysOfALeafShareARead) {
  WarmClient client(this);
  const std::array<index::Key, 4> keys = {index::Key(uint64_t{0}), index::Key(uint64_t{10}), index::Key(uint64_t{20}),
                                          index::Key(uint64_t{10})};
  std::array<index::FindResult, 4> found;
  const uint64_t reads = client.thread.channel()->counters().reads;
  const auto find = [&]() -> coro::Task<Status> { co_return co_await client.remote->FindMany(keys, found); };
  const Status status = client.worker.BlockOn(find());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(client.thread.channel()->counters().reads, reads + 1);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(NumberOf(found[i].record), keys[i].integer());
}

TEST_F(ReadDelegationTest, LeavesDoNotWaitForEachOther) {
  WarmClient client(this);
  std::array<std::optional<uint64_t>, 10> found;
  size_t reads = 0;
  for (int round = 0; round < 2; ++round) {  // the first one fills the cache
    reads = client.channel.reads();
    for (uint64_t i = 0; i < found.size(); ++i) client.Find(i * 100, &found[i]);
    client.worker.Run();
  }
  for (uint64_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i * 100);
  EXPECT_EQ(client.channel.reads(), reads + found.size());
}

TEST_F(ReadDelegationTest, AnAbsentKeyIsNotFound) {
  WarmClient client(this);
  std::array<std::optional<uint64_t>, 3> found;
  for (uint64_t i = 0; i < found.size(); ++i) client.Find(10 + i, &found[i]);
  client.worker.Run();
  EXPECT_TRUE(client.errors.empty()) << client.errors[0];
  EXPECT_EQ(found[0], 10u);
  EXPECT_EQ(found[1], std::nullopt);
  EXPECT_EQ(found[2], std::nullopt);
}

// READs have taken effect, and are on their way back, when the value changes. A lookup that begins after that must not
// be answered by them.
TEST_F(ReadDelegationTest, ALookupSeesWhatWasWrittenBeforeIt) {
  WarmClient client(this);
  Lookups before;
  std::optional<uint64_t> after;
  FindAndHold(&client, 20, &before);
  ASSERT_TRUE(index_->Replace(index::Key(uint64_t{20}), Value(20), Value(7)).ok());
  client.Find(20, &after);
  client.channel.Release();
  client.worker.Run();
  for (const std::optional<uint64_t>& value : before) EXPECT_EQ(value, 20u);
  EXPECT_EQ(after, 7u);
}

// The client that leads goes away while its READs are in flight; those that wait for it look up again.
TEST_F(ReadDelegationTest, TheOthersGoOnWithoutTheirLeader) {
  WarmClient other(this);
  std::optional<uint64_t> found;
  {
    WarmClient leader(this);
    Lookups lost;
    FindAndHold(&leader, 20, &lost);
    other.Find(20, &found);
    other.worker.BlockOn(Yields(&other));
    EXPECT_EQ(found, std::nullopt) << "it waits";
  }
  other.worker.Run();
  EXPECT_TRUE(other.errors.empty()) << other.errors[0];
  EXPECT_EQ(found, 20u);
}

// One thread raises the values of a few keys, the others look them up: never less than what was acknowledged before the
// lookup began.
TEST_F(ReadDelegationTest, LookupsAreLinearizable) {
  constexpr uint64_t kKeys = 4;
  constexpr uint64_t kWrites = 3000;
  std::array<std::atomic<uint64_t>, kKeys> written{};  // 0: not yet
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> lookups{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      WarmClient client(this);
      while (!ends.load()) {
        std::array<std::optional<uint64_t>, 8 * kKeys> found;
        std::array<uint64_t, 8 * kKeys> least;
        for (size_t i = 0; i < found.size(); ++i) {
          least[i] = written[i % kKeys].load();
          client.Find(10 + 10 * (i % kKeys), &found[i]);
        }
        client.worker.Run();
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_TRUE(found[i].has_value());
          ASSERT_GE(*found[i], least[i]);
        }
        lookups += found.size();
      }
    });
  }
  {
    WarmClient client(this);
    for (uint64_t n = 1; n <= kWrites || lookups.load() < kWrites; ++n) {
      const uint64_t key = n % kKeys;
      client.Update(10 + 10 * key, n);
      client.worker.Run();
      ASSERT_TRUE(client.errors.empty()) << client.errors[0];
      written[key].store(n);
    }
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace read_delegation_test
}  // namespace gannet::ycsb
