// Chains and tags in one crowded bucket.
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "index/hash/locked_chain.h"
#include "tests/index/hash_fixture.h"

namespace gannet::index {
namespace hash_chain_test {

using HashChainTest = HashTest;

// Buckets of their own, not of an index.
class LockedChainDeathTest : public testing::Test {
 protected:
  std::byte* Bucket(int i) { return reinterpret_cast<std::byte*>(&buckets_[static_cast<size_t>(i)]); }

  struct alignas(kLineBytes) Line {
    uint64_t words[kLineBytes / kWordBytes];
  };
  std::vector<Line> buckets_{3};
};

TEST_F(LockedChainDeathTest, AFullChainAndALostLockStopTheProgram) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  hash::LockedChain chain(Bucket(0), Bucket(1));
  for (uint64_t tag = 1; tag <= hash::kSlots; ++tag) chain.Append(tag << 48 | kLineBytes);
  EXPECT_DEATH(chain.Append(uint64_t{9} << 48), "is added to 6 slots in 1 buckets");
  EXPECT_DEATH(chain.Erase(6), "slot 6 of 6 is erased");
  EXPECT_DEATH(chain.Replace(0, uint64_t{9} << 48), "with another tag");
  EXPECT_DEATH(
      {
        StoreWord(Bucket(1), 5);
        chain.Publish();
      },
      "the head of a chain has 5, not 0 with the lock");
  chain.Publish();
}

TEST_F(HashChainTest, KeysOfOneTagAreToldApart) {
  Start(1);  // one bucket at first
  const std::vector<uint64_t> keys = KeysOfOneTag(5);
  std::vector<rdma::GlobalAddress> records;
  for (size_t i = 0; i + 1 < keys.size(); ++i) records.push_back(Insert(keys[i]));
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  for (size_t i = 0; i < keys.size(); ++i) {
    const rdma::GlobalAddress expected = i < records.size() ? records[i] : rdma::GlobalAddress();
    EXPECT_EQ(index_->Find(keys[i]).record, expected);
    std::vector<FindResult> results(1);
    index_->FindMany({{Key(keys[i])}}, results);
    EXPECT_EQ(results[0].record, expected);
    // The client must have read the records, because the tag is the same.
    const StatusOr<FindResult> found = client.Await(remote->Find(keys[i]));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->record, expected);
    EXPECT_EQ(found->witness.word.is_null(), !expected.is_null());
  }
  ExpectSound();
  // Removes all but one key of the tag: again a single candidate, unverified, with a witness.
  for (size_t i = 1; i < records.size(); ++i) Remove(keys[i], records[i]);
  ExpectSound();
  const StatusOr<FindResult> found = client.Await(remote->Find(keys[0]));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->record, records[0]);
  EXPECT_FALSE(found->witness.word.is_null());
}

TEST_F(HashChainTest, AGuessIsTheFirstRecordOfTheTag) {
  Start(1);
  const std::vector<uint64_t> keys = KeysOfOneTag(2);
  EXPECT_TRUE(index_->GuessRecord(keys[0]).is_null());
  const rdma::GlobalAddress first = Insert(keys[0]);
  EXPECT_EQ(index_->GuessRecord(keys[0]), first);
  Insert(keys[1]);
  EXPECT_EQ(index_->GuessRecord(keys[1]), first);
  Remove(keys[0], first);
  EXPECT_EQ(index_->GuessRecord(keys[1]), index_->Find(keys[1]).record);
}

TEST_F(HashChainTest, ALonelyCandidateOfAnotherKeyMeansAbsent) {
  Start(1);
  const std::vector<uint64_t> keys = KeysOfOneTag(2);
  const rdma::GlobalAddress record = Insert(keys[0]);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client, 4096);
  for (int round = 0; round < 3; ++round) {
    const StatusOr<FindResult> found = client.Find(remote.get(), keys[1]);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->record.is_null());
    EXPECT_TRUE(client.Valid(found->witness));
  }
  EXPECT_EQ(client.Find(remote.get(), keys[0])->record, record);
}

TEST_F(HashChainTest, LongChainsAreWalkedAndShrinkAgain) {
  Start(1);
  const std::vector<uint64_t> keys = InseparableKeys(40);
  std::vector<rdma::GlobalAddress> records;
  for (const uint64_t key : keys) records.push_back(Insert(key));
  ExpectSound();
  EXPECT_EQ(index_->statistics().height, 7);
  const uint64_t overflow_at_most = index_->statistics().nodes;
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(index_->Find(keys[i]).record, records[i]);
    const StatusOr<FindResult> found = client.Find(remote.get(), keys[i]);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->record, records[i]);
  }
  std::vector<Key> asked(keys.begin(), keys.end());
  std::vector<FindResult> results(keys.size());
  ASSERT_TRUE(client.Await(remote->FindMany(asked, results)).ok());
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(results[i].record, records[i]);
  EXPECT_EQ(remote->statistics().fallbacks, 0u);

  for (size_t i = 0; i < keys.size(); i += 2) Remove(keys[i], records[i]);
  ExpectSound();
  EXPECT_EQ(index_->statistics().height, 4);
  EXPECT_LT(index_->statistics().nodes, overflow_at_most);
  for (size_t i = 0; i < keys.size(); ++i) {
    const StatusOr<FindResult> found = client.Find(remote.get(), keys[i]);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->record, i % 2 == 0 ? rdma::GlobalAddress() : records[i]);
  }
}

TEST_F(HashChainTest, EveryChangeOfAChainMovesItsWitnessAndStamps) {
  Start(1);
  const std::vector<uint64_t> keys = InseparableKeys(20);
  std::vector<rdma::GlobalAddress> records;
  for (size_t i = 0; i + 1 < keys.size(); ++i) records.push_back(Insert(keys[i]));
  EpochGuard guard(owner_->epoch());
  const Witness miss = index_->Find(keys.back()).witness;
  ASSERT_TRUE(cluster_->Valid(miss));
  // A change in the head only: the chain's other buckets get the new stamp, too (CheckStructure).
  Remove(keys[0], records[0]);
  EXPECT_FALSE(cluster_->Valid(miss));
  ExpectSound();
  const Witness again = index_->Find(keys.back()).witness;
  EXPECT_EQ(again.word, miss.word);
  Insert(keys[0]);
  EXPECT_FALSE(cluster_->Valid(again));
  ExpectSound();
}

// A client walks a chain with several READs while it changes: it finds the keys that stay, and not those that never
// existed.
TEST_F(HashChainTest, ClientsRaceWithChangesOfALongChain) {
  for (const bool adversarial : {false, true}) {
    TearDown();
    Start(1, {.adversarial = adversarial});
    cluster_->StartEpochs();
    const std::vector<uint64_t> keys = InseparableKeys(60);
    std::vector<rdma::GlobalAddress> records;
    for (size_t i = 0; i < 40; ++i) records.push_back(Insert(keys[i]));
    // Even keys of the first 40 stay, odd ones come and go, and the keys after them are never inserted.
    std::atomic<bool> stop = false;
    std::atomic<int> changes = 0;
    std::atomic<int> rounds = 0;
    std::thread writer([&] {
      Random random(1);
      while (!stop.load(std::memory_order_relaxed)) {
        // Removed memory is not free again before a reader, which may have no CPU for long, leaves its epoch.
        if (changes > 5000 + 20 * rounds) {
          YieldThread();
          continue;
        }
        const size_t i = 2 * random.Below(20) + 1;
        if (records[i].is_null()) {
          records[i] = Insert(keys[i]);
        } else {
          Remove(keys[i], std::exchange(records[i], rdma::GlobalAddress()));
        }
        ++changes;
      }
    });
    ClientThread client(cluster_.get());
    const auto remote = Connect(&client);
    Random random(2);
    for (int round = 0; (round < 3000 || changes < 3000) && !HasFailure(); ++round) {
      rounds = round;
      EpochGuard guard(client.epoch());
      const size_t i = 2 * random.Below(20);
      const StatusOr<FindResult> found = client.Find(remote.get(), keys[i]);
      EXPECT_TRUE(found.ok() && found->record == records[i]) << found.status();
      const StatusOr<FindResult> never = client.Find(remote.get(), keys[40 + random.Below(20)]);
      EXPECT_TRUE(never.ok() && never->record.is_null()) << never.status();
    }
    stop.store(true);
    writer.join();
    ExpectSound();
  }
}

// A chain has no limit: an insert fails only for lack of memory.
TEST_F(HashChainTest, AChainOfAnyLengthTakesAnotherKey) {
  Start(1);
  const std::vector<uint64_t> keys = InseparableKeys(301);
  std::vector<rdma::GlobalAddress> records;
  for (size_t i = 0; i + 1 < keys.size(); ++i) records.push_back(Insert(keys[i]));
  ExpectSound();
  EXPECT_EQ(index_->statistics().height, 50);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  std::vector<Key> asked(keys.begin(), keys.end());
  std::vector<FindResult> results(keys.size());
  ASSERT_TRUE(client.Await(remote->FindMany(asked, results)).ok());
  for (size_t i = 0; i < keys.size(); ++i) {
    const rdma::GlobalAddress expected = i < records.size() ? records[i] : rdma::GlobalAddress();
    EXPECT_EQ(index_->Find(keys[i]).record, expected);
    EXPECT_EQ(results[i].record, expected);
    const StatusOr<FindResult> found = client.Find(remote.get(), keys[i]);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->record, expected);
  }
  // For records far along the chain the client asks the owner.
  EXPECT_GT(remote->statistics().fallbacks, 0u);
  size_t walked = 0;
  {
    EpochGuard guard(owner_->epoch());
    WalkPosition position;
    std::vector<rdma::GlobalAddress> met;
    while (index_->Walk(&position, &met)) {
    }
    walked = met.size();
  }
  EXPECT_EQ(walked, records.size());
  for (size_t i = 0; i < records.size(); i += 2) Remove(keys[i], records[i]);
  ExpectSound();
  EXPECT_EQ(index_->statistics().height, 25);
}

// The inverse of Mix64.
uint64_t Unmix64(uint64_t x) {
  const auto unshift = [](uint64_t y, int shift) { return y ^ y >> shift ^ y >> 2 * shift; };
  const auto inverse = [](uint64_t odd) {  // modulo 2^64, by Newton's iteration
    uint64_t result = odd;
    for (int i = 0; i < 5; ++i) result *= 2 - odd * result;
    return result;
  };
  x = unshift(x, 31) * inverse(0x94d049bb133111ebull);
  x = unshift(x, 27) * inverse(0xbf58476d1ce4e5b9ull);
  return unshift(x, 30);
}

// Without a seed, the hash of an integer key would be Mix64(key + kFormerIncrement). These keys would all have place 0
// and path 7, and so share a bucket of a table of any size.
constexpr uint64_t kFormerIncrement = 0x9e3779b97f4a7c15ull;
std::vector<uint64_t> KeysThatCollidedWithoutSeed(size_t count) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 1; i <= count; ++i) keys.push_back(Unmix64(i << 16 | 7) - kFormerIncrement);
  return keys;
}

TEST_F(HashChainTest, KeysChosenToCollideDoNot) {
  StartWith({});
  const std::vector<uint64_t> keys = KeysThatCollidedWithoutSeed(2000);
  for (uint64_t i = 0; i < keys.size(); ++i) ASSERT_EQ(Mix64(keys[i] + kFormerIncrement), (i + 1) << 16 | 7);
  for (const uint64_t key : keys) Insert(key);
  ExpectSound();
  EXPECT_LE(index_->statistics().height, 4);
}

TEST_F(HashChainTest, EveryTableHasASeedOfItsOwn) {
  StartWith({});
  const auto other = HashIndex::Create(cluster_->owner().service.get(), kId + 1, {});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(index_->seed(), (*other)->seed());
  uint64_t equal = 0;
  for (uint64_t key = 0; key < 1000; ++key) equal += index_->HashOf(key).path() == (*other)->HashOf(key).path();
  EXPECT_LT(equal, 10u);
}

}  // namespace hash_chain_test
}  // namespace gannet::index
