// The client of the hash index: its READs, its location cache, and its reaction to malformed messages.
#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "index/change_wire.h"
#include "index/hash/location_cache.h"
#include "index/key_wire.h"
#include "rdma/rpc.h"
#include "tests/index/hash_fixture.h"

namespace gannet::index {
namespace hash_client_test {

using HashClientTest = HashTest;

TEST_F(HashClientTest, ALookupIsOneReadAndARememberedOneNone) {
  Start(1000);
  std::vector<rdma::GlobalAddress> records;
  for (uint64_t key = 0; key < 500; ++key) records.push_back(Insert(key));
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client, 1 << 16);
  ASSERT_TRUE(client.Await(remote->Find(uint64_t{0})).ok());
  const rdma::VerbCounters before = client.channel()->counters();
  for (uint64_t key = 1; key < 500; ++key) {
    const StatusOr<FindResult> found = client.Await(remote->Find(key));
    ASSERT_TRUE(found.ok() && found->record == records[key] && !found->from_cache);
    // The address is unverified, so there is a witness.
    ASSERT_FALSE(found->witness.word.is_null());
  }
  const rdma::VerbCounters cold = client.channel()->counters();
  EXPECT_EQ(cold.calls, before.calls);
  EXPECT_GE(cold.reads - before.reads, 499u);
  EXPECT_LE(cold.reads - before.reads, 520u);
  for (uint64_t key = 0; key < 500; ++key) {
    const StatusOr<FindResult> found = client.Await(remote->Find(key));
    ASSERT_TRUE(found.ok() && found->record == records[key] && found->from_cache);
  }
  EXPECT_EQ(client.channel()->counters().reads, cold.reads);
}

TEST_F(HashClientTest, FindManySharesADoorbell) {
  Start(1000);
  for (uint64_t key = 0; key < 1000; ++key) Insert(key);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  ASSERT_TRUE(client.Await(remote->Find(uint64_t{0})).ok());
  std::vector<Key> keys;
  for (uint64_t key = 0; key < 64; ++key) keys.emplace_back(key);
  std::vector<FindResult> results(keys.size());
  const rdma::VerbCounters before = client.channel()->counters();
  ASSERT_TRUE(client.Await(remote->FindMany(keys, results)).ok());
  const rdma::VerbCounters made = client.channel()->counters() - before;
  EXPECT_GE(made.reads, 64u);
  EXPECT_LE(made.round_trips, 3u);  // one for the heads, one or two for overflow
  EXPECT_EQ(made.calls, 0u);
}

// An estimate is what the lookups then take, but for keys that share tags or buckets, and it changes nothing.
TEST_F(HashClientTest, EstimatesKnowWhatIsRemembered) {
  Start(1000);
  for (uint64_t key = 0; key < 500; ++key) Insert(key);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client, 1 << 16);
  std::vector<Key> keys;
  for (uint64_t key = 0; key < 6; ++key) keys.emplace_back(key);
  const std::span<const Key> all(keys);
  ReadEstimate estimate = remote->Estimate(all.first(1));
  EXPECT_EQ(estimate.calls, 1);  // where the buckets are
  EXPECT_EQ(estimate.postings, 1);
  EXPECT_EQ(estimate.keys, 1);
  ASSERT_TRUE(client.Await(remote->Find(keys[0])).ok());

  const rdma::VerbCounters before = client.channel()->counters();
  estimate = remote->Estimate(all);
  EXPECT_EQ(estimate.calls, 0);
  EXPECT_EQ(estimate.postings, 1);
  EXPECT_NEAR(estimate.reads, 5, 1e-9);
  EXPECT_NEAR(estimate.bytes, 5 * kLineBytes, 1e-6);
  EXPECT_EQ(estimate.atomics, 0);
  EXPECT_EQ(estimate.keys, 6);
  EXPECT_EQ(remote->Estimate(all.first(1)).postings, 0);
  EXPECT_EQ(remote->Estimate(all.last(1)).postings, 1);
  const rdma::VerbCounters none = client.channel()->counters() - before;
  EXPECT_EQ(none.reads + none.calls, 0u);

  std::vector<FindResult> results(keys.size());
  ASSERT_TRUE(client.Await(remote->FindMany(keys, results)).ok());
  estimate = remote->Estimate(all);
  EXPECT_EQ(estimate.postings, 0);
  EXPECT_EQ(estimate.reads, 0);
  // If there are many keys it looks at some of them, here of both halves.
  std::vector<Key> many;
  for (uint64_t key = 0; key < 200; ++key) many.emplace_back(key < 100 ? key % 6 : 300 + key);
  estimate = remote->Estimate(many);
  EXPECT_NEAR(estimate.reads, 100, 1e-9);
  EXPECT_EQ(estimate.postings, 2);
  EXPECT_EQ(remote->Estimate(std::span<const Key>()).postings, 0);
}

// What a call of another layer found out is remembered, too.
TEST_F(HashClientTest, ALocationThatItIsToldSavesTheRead) {
  Start(1000);
  const rdma::GlobalAddress record = Insert(7);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client, 1 << 16);
  const Key key(7);
  remote->Remember(key, record);  // it does not know yet how keys are hashed
  EXPECT_EQ(remote->Estimate(std::span(&key, 1)).postings, 1);
  ASSERT_TRUE(client.Await(remote->Find(Key(8))).ok());

  remote->Remember(key, {static_cast<rdma::NodeId>(record.node() + 1), record.offset()});  // not this owner's
  EXPECT_EQ(remote->Estimate(std::span(&key, 1)).postings, 1);
  EXPECT_EQ(remote->Estimate(std::span(&key, 1)).lasting_postings, 1);
  remote->Remember(key, record);
  EXPECT_EQ(remote->Estimate(std::span(&key, 1)).postings, 0);
  const rdma::VerbCounters before = client.channel()->counters();
  const StatusOr<FindResult> found = client.Await(remote->Find(key));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->record, record);
  EXPECT_TRUE(found->from_cache);
  EXPECT_EQ((client.channel()->counters() - before).reads, 0u);
}

TEST_F(HashClientTest, AStaleLocationIsForgottenAndFoundAgain) {
  Start(100);
  rdma::GlobalAddress record = Insert(1);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client, 1 << 16);
  ASSERT_EQ(client.Find(remote.get(), uint64_t{1})->record, record);
  ASSERT_TRUE(client.Await(remote->Find(uint64_t{1}))->from_cache);

  // The record's memory becomes another key's record.
  Remove(1, record);
  PassGracePeriod();
  rdma::GlobalAddress reused;
  uint64_t other = 1000;
  for (; reused != record; ++other) {
    ASSERT_LT(other, 20000u) << "the memory did not come back";
    reused = Insert(other);
  }
  StatusOr<FindResult> found = client.Find(remote.get(), uint64_t{1});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->record.is_null());
  EXPECT_TRUE(client.Valid(found->witness));
  EXPECT_EQ(client.Find(remote.get(), other - 1)->record, reused);

  // The key is inserted again with another record.
  record = Insert(1);
  found = client.Find(remote.get(), uint64_t{1});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->record, record);
}

TEST_F(HashClientTest, ForgetAndOwnRemovalDropTheLocation) {
  Start(100);
  const rdma::GlobalAddress record = Insert(1);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client, 1 << 16);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(client.Await(remote->Find(uint64_t{1})).ok());
  remote->Forget(uint64_t{1});
  EXPECT_FALSE(client.Await(remote->Find(uint64_t{1}))->from_cache);
  EXPECT_TRUE(client.Await(remote->Find(uint64_t{1}))->from_cache);
  ASSERT_TRUE(client.Await(remote->Remove(uint64_t{1}, record)).ok());
  EXPECT_TRUE(client.Await(remote->Find(uint64_t{1}))->record.is_null());
}

TEST_F(HashClientTest, TheCacheStaysWithinItsBytes) {
  Start(5000);
  for (uint64_t key = 0; key < 5000; ++key) Insert(key);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client, 16 << 10);  // 1024 entries
  for (int round = 0; round < 2; ++round) {
    for (uint64_t key = 0; key < 5000; ++key) ASSERT_TRUE(client.Await(remote->Find(key)).ok());
  }
  EXPECT_EQ(remote->statistics().cache_bytes, 16u << 10);
  int remembered = 0;
  for (uint64_t key = 0; key < 5000; ++key) remembered += client.Await(remote->Find(key))->from_cache;
  EXPECT_LE(remembered, 1024);
}

TEST(LocationCacheTest, KeepsWhatIsUsedAndReplacesTheRest) {
  hash::LocationCache cache(64);  // one set of four
  const auto hash = [](uint64_t n) { return hash::KeyHash{n << 40}; };
  for (uint64_t n = 1; n <= 4; ++n) cache.Put(hash(n), 64 * n);
  for (uint64_t n = 1; n <= 4; ++n) EXPECT_EQ(cache.Get(hash(n)), 64 * n);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cache.Get(hash(1)), 64u);
  for (uint64_t n = 5; n < 50; ++n) {
    cache.Put(hash(n), 64 * n);
    EXPECT_EQ(cache.Get(hash(n)), 64 * n);
    EXPECT_EQ(cache.Get(hash(1)), 64u) << "the one in use was replaced by " << n;
  }
  cache.Put(hash(1), 6400);
  EXPECT_EQ(cache.Get(hash(1)), 6400u);
  cache.Forget(hash(1));
  EXPECT_EQ(cache.Get(hash(1)), 0u);
  EXPECT_FALSE(hash::LocationCache(0).enabled());
  hash::LocationCache none(63);
  none.Put(hash(1), 64);
  EXPECT_EQ(none.Get(hash(1)), 0u);
}

// A bucket that stays locked (its holder does not run) does not stop a client: it asks the owner, which waits.
TEST_F(HashClientTest, ALockedBucketLeadsToTheOwner) {
  Start(1);
  const rdma::GlobalAddress record = Insert(1);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  ASSERT_TRUE(client.Await(remote->Find(uint64_t{2})).ok());
  std::byte* head = cluster_->At(index_->Find(uint64_t{2}).witness.word);
  const uint64_t version = LoadWord(head);
  StoreWord(head, version | rdma::kLockBit);
  // The owner knows that a key is present even while the bucket is locked.
  StatusOr<FindResult> found = client.Await(remote->Find(uint64_t{1}));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->record, record);
  EXPECT_TRUE(found->witness.word.is_null());
  EXPECT_EQ(remote->statistics().fallbacks, 1u);
  EXPECT_GT(client.channel()->counters().retries, 0u);
  std::vector<FindResult> results(1);
  ASSERT_TRUE(client.Await(remote->FindMany({{Key(uint64_t{1})}}, results)).ok());
  EXPECT_EQ(results[0].record, record);
  // It knows that a key is absent only when the lock is released.
  std::thread unlocker([&] { StoreWord(head, version); });
  found = client.Await(remote->Find(uint64_t{2}));
  unlocker.join();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->record.is_null());
}

// Requests of a broken or hostile peer: each gets an error, and the index does not change.
TEST_F(HashClientTest, GarbageRequestsAreRefused) {
  Start(100);
  const rdma::GlobalAddress record = Insert(1);
  ClientThread client(cluster_.get());
  std::array<std::byte, 256> response;
  const auto call = [&](rdma::MethodId method, std::span<const std::byte> request) {
    return client.Await([](rdma::Channel* channel, rdma::MethodId m, std::span<const std::byte> in,
                           std::span<std::byte> out) -> coro::Task<StatusOr<size_t>> {
      co_return co_await channel->Call(0, m, in, out);
    }(client.channel(), method, request, response));
  };
  Random random(3);
  for (const rdma::MethodId method : {hash::kDescribe, hash::kFind, hash::kInsert, hash::kRemove}) {
    EXPECT_FALSE(call(method, {}).ok());
    for (int i = 0; i < 300; ++i) {
      std::array<std::byte, 90> bytes;
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      if (random.OneIn(2)) bytes[0] = std::byte{kId}, bytes[1] = std::byte{0};
      if (random.OneIn(2)) bytes[2] = std::byte{0};  // an integer key
      (void)call(method, std::span(bytes).first(random.Below(bytes.size()))).ok();
    }
  }
  // Well-formed requests for impossible changes: of records that do not exist or hold another key.
  const uint64_t end = cluster_->owner().node->memory().size();
  for (const rdma::GlobalAddress bad :
       {rdma::GlobalAddress(), rdma::GlobalAddress(0, 64), rdma::GlobalAddress(0, end - 8), rdma::GlobalAddress(0, end),
        rdma::GlobalAddress(1, record.offset()), record.WithMark(true), record + 8, record}) {
    for (const rdma::MethodId method : {hash::kInsert, hash::kRemove}) {
      std::array<std::byte, 64> request;
      rdma::WireWriter writer(request);
      writer.PutU16(kId);
      PutKey(writer, Key(uint64_t{2}));
      writer.PutAddress(bad);
      EXPECT_FALSE(call(method, writer.written()).ok()) << bad.ToString();
    }
  }
  std::array<std::byte, 64> request;
  rdma::WireWriter writer(request);
  writer.PutU16(kId);
  PutKey(writer, Key(std::string_view("bytes")));
  EXPECT_TRUE(absl::IsInvalidArgument(call(hash::kFind, writer.written()).status()));
  ExpectSound();
  EXPECT_EQ(index_->statistics().keys, 1u);
  EXPECT_EQ(index_->Find(uint64_t{1}).record, record);
}

// Several records in a bucket have the tag: their keys decide, of any length.
TEST_F(HashClientTest, KeysOfOneTagAndManyLengthsAreToldApart) {
  StartWith({.key_kind = KeyKind::kBytes,
             .max_key_bytes = kMaxKeyBytes,
             .expected_keys = 1,
             .seed = KeyedHash::Seed{1, 2, 3, 4}});
  constexpr std::array<size_t, 5> kLengths = {20, kShortKeyBytes, kShortKeyBytes + 1, 500, kMaxKeyBytes};
  std::vector<std::string> keys;
  for (uint64_t n = 0; keys.size() <= kLengths.size(); ++n) {
    std::string key = std::to_string(n);
    key.resize(kLengths[keys.size() % kLengths.size()], 'k');
    if (index_->HashOf(Key(key)).tag() == 0x1234) keys.push_back(std::move(key));
  }
  std::vector<rdma::GlobalAddress> records;
  for (size_t i = 0; i < kLengths.size(); ++i) {
    EpochGuard guard(owner_->epoch());
    records.push_back(owner_->NewRecord(Key(keys[i])));
    ASSERT_TRUE(index_->Insert(owner_->context(), Key(keys[i]), records[i], nullptr).ok());
  }
  ExpectSound();
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  ASSERT_TRUE(client.Await(remote->Find(Key(std::string_view("some")))).ok());
  const rdma::VerbCounters before = client.channel()->counters();
  for (size_t i = 0; i < keys.size(); ++i) {
    const StatusOr<FindResult> found = client.Await(remote->Find(Key(keys[i])));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->record, i < records.size() ? records[i] : rdma::GlobalAddress()) << keys[i].size();
  }
  const rdma::VerbCounters made = client.channel()->counters() - before;
  EXPECT_EQ(made.calls, 0u);
  EXPECT_GE(made.reads, keys.size() * (1 + records.size())) << "fewer than a bucket and all candidates of each";
}

TEST_F(HashClientTest, RequestsWithKeysThatAreTooLongAreRefused) {
  constexpr size_t kMost = 100;
  StartWith({.key_kind = KeyKind::kBytes, .max_key_bytes = kMost, .expected_keys = 10});
  ClientThread client(cluster_.get());
  std::array<std::byte, 4096> request;
  std::array<std::byte, 256> response;
  const auto call = [&](rdma::MethodId method, const Key& key, rdma::GlobalAddress record) {
    rdma::WireWriter writer(request);
    writer.PutU16(kId);
    PutKey(writer, key);
    if (method != hash::kFind) writer.PutAddress(record);
    return client.Await([](rdma::Channel* channel, rdma::MethodId m, std::span<const std::byte> in,
                           std::span<std::byte> out) -> coro::Task<StatusOr<size_t>> {
      co_return co_await channel->Call(0, m, in, out);
    }(client.channel(), method, writer.written(), response));
  };
  const uint64_t end = cluster_->owner().node->memory().size();
  for (const size_t size : {kMost, kMost + 1, kMaxKeyBytes, kMaxKeyBytes + 1, size_t{4000}}) {
    const std::string bytes(size, 'x');
    for (const rdma::MethodId method : {hash::kFind, hash::kInsert, hash::kRemove}) {
      // The last line of the memory, where no header of such a key fits.
      const StatusOr<size_t> answer = call(method, Key(bytes), rdma::GlobalAddress(0, end - kLineBytes));
      if (size <= kMost && method == hash::kFind) {
        EXPECT_TRUE(answer.ok()) << answer.status();
      } else {
        EXPECT_TRUE(absl::IsInvalidArgument(answer.status())) << size << ": " << answer.status();
      }
    }
  }
  ExpectSound();
  EXPECT_EQ(index_->statistics().keys, 0u);
  // A client of this program does not send what no index takes.
  const auto remote = Connect(&client);
  const std::string longest(kMaxKeyBytes + 1, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(client.Await(remote->Insert(Key(longest), {0, 640})).status()));
}

TEST(HashMessagesTest, GarbageResponsesAreDataLoss) {
  Random random(4);
  for (int i = 0; i < 2000; ++i) {
    std::array<std::byte, 200> bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const auto message = std::span<const std::byte>(bytes).first(random.Below(bytes.size()));
    // A random message of the right length could look like a change; its node ids show that it is none.
    EXPECT_FALSE(hash::GetDescription(message).ok());
    EXPECT_FALSE(hash::GetFindResult(message, 0).ok());
    EXPECT_FALSE(hash::GetChange(message, 0).ok());
  }
}

TEST(HashMessagesTest, MessagesComeBackAsTheyWere) {
  std::array<std::byte, hash::kMaxResponseBytes> buffer;
  {
    hash::Description description{
        .geometry = {.initial = 5, .size = {13, 1}}, .key_kind = KeyKind::kBytes, .max_key_bytes = 20};
    description.geometry.segments = {64, 128, 192};
    description.seed = {7, 8, 9, 10};
    rdma::WireWriter writer(buffer);
    hash::PutDescription(&writer, description);
    const auto read = hash::GetDescription(writer.written());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->geometry.initial, 5u);
    EXPECT_EQ(read->geometry.size.word(), description.geometry.size.word());
    EXPECT_EQ(read->geometry.segments, description.geometry.segments);
    EXPECT_EQ(read->seed, description.seed);
    EXPECT_EQ(read->key_kind, KeyKind::kBytes);
    EXPECT_EQ(read->max_key_bytes, 20u);
    // Each of these makes the description invalid.
    for (const auto& spoil : std::vector<std::function<void(hash::Description*)>>{
             [](auto* d) { d->geometry.initial = 0; },
             [](auto* d) {
               d->geometry.size = {20, 1};
             },
             [](auto* d) {
               d->geometry.size = {13, 17};
             },
             [](auto* d) { d->geometry.segments[2] = 0; }, [](auto* d) { d->geometry.segments[1] = 8; },
             [](auto* d) { d->max_key_bytes = kMaxKeyBytes + 1; },
             [](auto* d) { d->key_kind = static_cast<KeyKind>(2); }}) {
      hash::Description spoiled = description;
      spoil(&spoiled);
      rdma::WireWriter again(buffer);
      hash::PutDescription(&again, spoiled);
      EXPECT_TRUE(absl::IsDataLoss(hash::GetDescription(again.written()).status()));
    }
  }
  Change change(rdma::GlobalAddress(3, 640), 7, 8);
  change.AddCreated({rdma::GlobalAddress(3, 1280), 9});
  rdma::WireWriter writer(buffer);
  PutChange(writer, change);
  const auto read = hash::GetChange(writer.written(), 3);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->words().size(), 2u);
  EXPECT_EQ(read->words()[0].word, change.words()[0].word);
  EXPECT_EQ(read->words()[0].before, 7u);
  EXPECT_EQ(read->words()[0].after, 8u);
  EXPECT_EQ(read->words()[1].word, change.words()[1].word);
  EXPECT_TRUE(read->words()[1].created());
  EXPECT_EQ(read->words()[1].after, 9u);
  EXPECT_TRUE(absl::IsDataLoss(hash::GetChange(writer.written(), 2).status()));
}

}  // namespace hash_client_test
}  // namespace gannet::index
