// Steps of an InsertBatch: by a client whose first operation it is, and whose process has the caches already that
// others filled, so that it knows where the leaf is before it knows how the index makes tags of byte keys; and by one
// that splits leaves.
#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "index/registry.h"
#include "tests/index/insert_together.h"
#include "tests/index/kinds.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace first_insert_test {

constexpr IndexId kId = 1;

class FirstInsertTest : public ::testing::TestWithParam<std::tuple<IndexKind, KeyKind>> {
 protected:
  static const IndexKindEntry& Entry() { return EntryOf(std::get<0>(GetParam())); }
  static KeyKind Kind() { return std::get<1>(GetParam()); }
  static OwnedKey KeyOf(uint64_t n) {
    if (Kind() == KeyKind::kInteger) return OwnedKey(Key(n));
    const std::string key = "key " + std::to_string(10'000 + n);
    return OwnedKey(Key(std::string_view(key)));
  }
  static std::unique_ptr<RemoteIndex> Connect(ClientThread* thread, const std::shared_ptr<SharedCache>& cache) {
    auto remote = Entry().connect(thread->channel(), 0, kId,
                                  {.key_kind = Kind(), .max_key_bytes = kShortKeyBytes, .shared_cache = cache});
    GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
    return *std::move(remote);
  }
};

TEST_P(FirstInsertTest, WithCachesThatOthersFilled) {
  constexpr uint64_t kKeys = 2000;  // even numbers
  IndexCluster cluster({});
  Entry().register_methods(cluster.owner().service.get());
  cluster.Serve();
  OwnerThread owner(&cluster);
  auto created =
      Entry().create(cluster.owner().service.get(), kId, {.key_kind = Kind(), .max_key_bytes = kShortKeyBytes});
  ASSERT_TRUE(created.ok()) << created.status();
  LocalIndex* const index = created->get();
  std::vector<OwnedKey> keys;
  for (uint64_t n = 0; n < 2 * kKeys; n += 2) keys.push_back(KeyOf(n));
  std::vector<LoadEntry> entries;
  for (const OwnedKey& key : keys) entries.push_back({key.view(), owner.NewRecord(key.view())});
  ASSERT_TRUE(index->BulkLoad(owner.context(), entries, 0.7).ok());
  const std::shared_ptr<SharedCache> cache = Entry().make_cache(0);
  ClientThread first(&cluster);
  const auto other = Connect(&first, cache);
  for (const OwnedKey& key : keys) ASSERT_TRUE(first.Await(other->Find(key.view())).ok());

  ClientThread thread(&cluster);
  const auto remote = Connect(&thread, cache);
  const OwnedKey key = KeyOf(1001);
  std::vector<Insertion> one(1);
  one[0].key = key.view();
  one[0].record = owner.NewRecord(key.view());
  ASSERT_TRUE(thread.Await(InsertTogether(thread.channel(), remote.get(), one)).ok());
  EXPECT_EQ(one[0].outcome, Insertion::Outcome::kDone);
  EXPECT_EQ(index->Find(key.view()).record, one[0].record);
  EXPECT_TRUE(index->CheckStructure().ok()) << index->CheckStructure();
}

// Keys for which two leaves have no room. All goes by the two postings of a batch: the leaves are split, others find
// the new ones, and the client itself knows them.
TEST_P(FirstInsertTest, SplitsAreMadeKnownToOthers) {
  if (Kind() == KeyKind::kBytes) GTEST_SKIP() << "leaves of byte keys are split by the owner";
  constexpr uint64_t kKeys = 100;  // even numbers
  IndexCluster cluster({});
  Entry().register_methods(cluster.owner().service.get());
  cluster.Serve();
  OwnerThread owner(&cluster);
  auto created = Entry().create(cluster.owner().service.get(), kId, {.key_kind = Kind()});
  ASSERT_TRUE(created.ok()) << created.status();
  LocalIndex* const index = created->get();
  std::vector<OwnedKey> keys;
  std::vector<LoadEntry> entries;
  for (uint64_t n = 0; n < 2 * kKeys; n += 2) keys.push_back(KeyOf(n));
  for (const OwnedKey& key : keys) entries.push_back({key.view(), owner.NewRecord(key.view())});
  ASSERT_TRUE(index->BulkLoad(owner.context(), entries, 0.7).ok());

  ClientThread thread(&cluster);
  const auto remote = Connect(&thread, Entry().make_cache(size_t{1} << 20));
  for (const OwnedKey& key : keys) ASSERT_TRUE(thread.Await(remote->Find(key.view())).ok());
  const uint64_t leaves = index->statistics().nodes;
  std::vector<OwnedKey> added;
  for (uint64_t n = 81; n < 121; n += 2) added.push_back(KeyOf(n));
  std::vector<Insertion> insertions;
  for (const OwnedKey& key : added) insertions.push_back({.key = key.view(), .record = owner.NewRecord(key.view())});
  std::vector<rdma::Operation> changes;
  ASSERT_TRUE(thread.Await(InsertTogether(thread.channel(), remote.get(), insertions, &changes)).ok());
  const uint64_t made = index->statistics().nodes - leaves;
  EXPECT_GE(made, 1u);
  EXPECT_TRUE(index->CheckStructure().ok()) << index->CheckStructure();
  for (const Insertion& one : insertions) {
    EXPECT_EQ(one.outcome, Insertion::Outcome::kDone);
    EXPECT_EQ(index->Find(one.key).record, one.record);
  }
  if (std::get<0>(GetParam()) != IndexKind::kRolex) {
    // If the separator were missing, each search would follow the right link: clients that only read do not mend that.
    // (Clients of dex may have the leaf, too.)
    const auto takes_one_each = [&added](ClientThread* client, RemoteIndex* by) {
      const uint64_t before = client->channel()->counters().round_trips;
      for (const OwnedKey& key : added) EXPECT_TRUE(client->Await(by->Find(key.view())).ok());
      EXPECT_LE(client->channel()->counters().round_trips - before, added.size());
    };
    takes_one_each(&thread, remote.get());
    ClientThread other(&cluster);
    const auto late = Connect(&other, Entry().make_cache(size_t{1} << 20));
    for (const OwnedKey& key : added) ASSERT_TRUE(other.Await(late->Find(key.view())).ok());
    takes_one_each(&other, late.get());
  } else {
    // A client that follows a right link knows the leaf from then on. So this looks into the synonym table.
    const auto is_synonym = [&](const rdma::Operation& operation) {
      if (operation.verb != rdma::Verb::kWrite || operation.size != 2 * sizeof(uint64_t)) return false;
      const uint64_t low = LoadWord(cluster.At(operation.remote));
      return low > 80 && low < 122 && LoadWord(cluster.At(operation.remote) + sizeof low) != 0;
    };
    EXPECT_EQ(static_cast<uint64_t>(std::ranges::count_if(changes, is_synonym)), made);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FirstInsertTest,
                         ::testing::Combine(::testing::ValuesIn(KindsThatClientsChange()),
                                            ::testing::Values(KeyKind::kInteger, KeyKind::kBytes)),
                         [](const auto& instance) {
                           return EntryOf(std::get<0>(instance.param)).name +
                                  (std::get<1>(instance.param) == KeyKind::kInteger ? "Integers" : "Bytes");
                         });

}  // namespace first_insert_test
}  // namespace gannet::index
