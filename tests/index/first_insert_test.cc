// A client whose first operation is an insert by verbs, and whose process has the caches already that others filled: it
// knows where the leaf is before it knows how the index makes tags of byte keys.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "index/registry.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

constexpr IndexId kId = 1;

coro::Task<Status> Post(rdma::Channel* channel, std::span<rdma::Operation> operations) {
  if (operations.empty()) co_return absl::OkStatus();
  const Status status = co_await channel->Post(operations);
  co_return status;
}

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
                                  {.key_kind = Kind(), .max_key_bytes = kMaxKeyBytes, .shared_cache = cache});
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
      Entry().create(cluster.owner().service.get(), kId, {.key_kind = Kind(), .max_key_bytes = kMaxKeyBytes});
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
  const auto batch = remote->NewInsertBatch();
  const OwnedKey key = KeyOf(1001);
  std::vector<Insertion> one(1);
  one[0].key = key.view();
  one[0].record = owner.NewRecord(key.view());
  std::vector<rdma::Operation> operations;
  const auto post = [&] { return thread.Await(Post(thread.channel(), operations)); };
  batch->Begin(one, 0, &operations);
  ASSERT_TRUE(post().ok());
  ASSERT_TRUE(thread.Await(batch->Find()).ok());
  ASSERT_EQ(batch->pending(), 1u);
  operations.clear();
  batch->AppendLocks(&operations);
  const Status locked = post();
  ASSERT_TRUE(thread.Await(batch->TakeLocks(locked, operations)).ok());
  operations.clear();
  batch->AppendChanges(&operations);
  const Status changed = post();
  ASSERT_TRUE(thread.Await(batch->TakeChanges(changed)).ok());
  EXPECT_EQ(one[0].outcome, Insertion::Outcome::kDone);
  EXPECT_EQ(index->Find(key.view()).record, one[0].record);
  EXPECT_TRUE(index->CheckStructure().ok()) << index->CheckStructure();
}

INSTANTIATE_TEST_SUITE_P(Kinds, FirstInsertTest,
                         ::testing::Combine(::testing::Values(IndexKind::kBlink, IndexKind::kRolex),
                                            ::testing::Values(KeyKind::kInteger, KeyKind::kBytes)),
                         [](const auto& instance) {
                           return EntryOf(std::get<0>(instance.param)).name +
                                  (std::get<1>(instance.param) == KeyKind::kInteger ? "Integers" : "Bytes");
                         });

}  // namespace
}  // namespace gannet::index
