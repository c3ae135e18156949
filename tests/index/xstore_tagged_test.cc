// Leaves that keep the keys in the records (index/xstore/tree/tagged_leaf.h): tags that several keys share, ascending
// inserts, what clients READ, and records whose keys a client has overwritten.
#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/rpc/messages.h"
#include "index/xstore/tree/tree.h"
#include "index/xstore/xstore.h"
#include "tests/index/record_helper.h"
#include "tests/index/training.h"

namespace gannet::index {
namespace xstore_tagged_test {

using xstore::EncodeBytes;
using xstore::Leaf;
using xstore::LeafLayout;
using xstore::TagOf;
using xstore::Tree;

// The n-th of keys that begin alike and take all bytes of a width.
template <int W>
std::string KeyOfWidth(uint64_t n) {
  std::string key = absl::StrCat(100'000'000 + n);
  key.insert(0, xstore::CapacityOf(W) - key.size(), 'k');
  return key;
}
// A key of 64 bytes.
std::string LongKey(uint64_t n) {
  return KeyOfWidth<9>(n);
}

template <int W>
uint64_t TagOfKey(const std::string& key) {
  return TagOf(EncodeBytes<W>(key));
}

// Some keys that have one tag, the smallest such set of numbers.
template <int W = 9>
std::vector<std::string> KeysOfOneTag(size_t size) {
  std::unordered_map<uint64_t, std::vector<std::string>> by_tag;
  for (uint64_t n = 0;; ++n) {
    std::vector<std::string>& keys = by_tag[TagOfKey<W>(KeyOfWidth<W>(n))];
    keys.push_back(KeyOfWidth<W>(n));
    if (keys.size() == size) return keys;
  }
}

template <int W>
void ExpectTagsToDiffer() {
  SCOPED_TRACE(W);
  for (size_t at = 0; at < xstore::CapacityOf(W); ++at) {
    std::vector<uint64_t> tags;
    std::string key(xstore::CapacityOf(W), 'a');
    for (int byte = 0; byte < 256; ++byte) {
      key[at] = static_cast<char>(byte);
      tags.push_back(TagOfKey<W>(key));
    }
    std::sort(tags.begin(), tags.end());
    tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
    EXPECT_GT(tags.size(), 250u) << at;
  }
}

TEST(XStoreTag, DiffersForKeysThatDifferInOneByteOnly) {
  ExpectTagsToDiffer<9>();
  ExpectTagsToDiffer<33>();
  ExpectTagsToDiffer<129>();
}

template <class Width>
class XStoreTaggedTreeTest : public testing::Test {
 protected:
  static constexpr int kWords = Width::value;
  static constexpr int kSlots = LeafLayout<kWords>::kSlots;
  static_assert(Leaf<kWords>::kKeysInRecords);

  XStoreTaggedTreeTest() {
    auto tree = Tree<kWords>::Create(cluster_.owner().service.get(), KeyKind::kBytes);
    EXPECT_TRUE(tree.ok()) << tree.status();
    tree_ = std::move(*tree);
    thread_ = std::make_unique<OwnerThread>(&cluster_);
  }
  Status Insert(const std::string& key) {
    EpochGuard guard(thread_->epoch());
    const rdma::GlobalAddress record = thread_->NewRecord(Key(std::string_view(key)));
    const auto change = tree_->Insert(thread_->context(), EncodeBytes<kWords>(key), record, nullptr);
    if (change.ok()) records_[key] = record;
    return change.status();
  }
  Status Remove(const std::string& key) {
    EpochGuard guard(thread_->epoch());
    return tree_->Remove(thread_->context(), EncodeBytes<kWords>(key), records_.at(key)).status();
  }
  void ExpectAll() {
    const Status structure = tree_->CheckStructure();
    ASSERT_TRUE(structure.ok()) << structure;
    EpochGuard guard(thread_->epoch());
    for (const auto& [key, record] : records_) ASSERT_EQ(tree_->Find(EncodeBytes<kWords>(key)).record, record) << key;
    ScanResult result;
    xstore::KeyWords<kWords> next;
    using Words = xstore::KeyWords<kWords>;
    tree_->ScanForward(Words::Lowest(), Words::Highest(), SIZE_MAX, SIZE_MAX, &result, &next);
    ASSERT_EQ(result.entries.size(), records_.size());
    auto at = records_.begin();
    for (const Entry& entry : result.entries) {
      ASSERT_EQ(entry.key.bytes(), at->first);
      ASSERT_EQ(entry.record, at->second);
      ++at;
    }
  }

  IndexCluster cluster_{{}};
  std::unique_ptr<OwnerThread> thread_;
  std::unique_ptr<Tree<kWords>> tree_;
  std::map<std::string, rdma::GlobalAddress> records_;
};

using TaggedWidths =
    testing::Types<std::integral_constant<int, 9>, std::integral_constant<int, 33>, std::integral_constant<int, 129>>;
TYPED_TEST_SUITE(XStoreTaggedTreeTest, TaggedWidths);

TYPED_TEST(XStoreTaggedTreeTest, KeysOfOneTagAreToldApartByTheirRecords) {
  const std::vector<std::string> keys = KeysOfOneTag<TypeParam::value>(3);
  ASSERT_TRUE(this->Insert(keys[1]).ok());
  ASSERT_TRUE(this->Insert(keys[0]).ok());
  this->ExpectAll();
  {
    EpochGuard guard(this->thread_->epoch());
    const FindResult absent = this->tree_->Find(EncodeBytes<TypeParam::value>(keys[2]));
    EXPECT_TRUE(absent.record.is_null());
    EXPECT_TRUE(this->cluster_.Valid(absent.witness));
  }
  ASSERT_TRUE(this->Insert(keys[2]).ok());
  EXPECT_EQ(this->Insert(keys[2]).code(), absl::StatusCode::kAlreadyExists);
  this->ExpectAll();
  ASSERT_TRUE(this->Remove(keys[0]).ok());
  this->records_.erase(keys[0]);
  this->ExpectAll();
}

TYPED_TEST(XStoreTaggedTreeTest, AscendingInsertsFillTheLeaves) {
  constexpr int kLeaves = 20;
  for (int i = 0; i < kLeaves * TestFixture::kSlots; ++i)
    ASSERT_TRUE(this->Insert(KeyOfWidth<TypeParam::value>(static_cast<uint64_t>(i))).ok());
  this->ExpectAll();
  EXPECT_EQ(this->tree_->statistics().nodes, uint64_t{kLeaves});
}

// Two streams, each of which appends its own keys: both fill their leaves, but for the first of the upper one.
TYPED_TEST(XStoreTaggedTreeTest, StreamsOfAscendingInsertsFillTheirLeaves) {
  constexpr int kLeaves = 20;
  for (int i = 0; i < kLeaves * TestFixture::kSlots; ++i) {
    ASSERT_TRUE(this->Insert(KeyOfWidth<TypeParam::value>(static_cast<uint64_t>(i))).ok());
    ASSERT_TRUE(this->Insert(KeyOfWidth<TypeParam::value>(1'000'000 + static_cast<uint64_t>(i))).ok());
  }
  this->ExpectAll();
  EXPECT_LE(this->tree_->statistics().nodes, uint64_t{2 * kLeaves + 3});
}

TYPED_TEST(XStoreTaggedTreeTest, RandomInsertsHalveTheLeaves) {
  Random random(1);
  while (this->records_.size() < 4000) {
    const std::string key = KeyOfWidth<TypeParam::value>(random.Below(1'000'000));
    if (this->records_.contains(key)) continue;
    ASSERT_TRUE(this->Insert(key).ok());
  }
  this->ExpectAll();
  const double fill = 4000.0 / static_cast<double>(this->tree_->statistics().nodes) / TestFixture::kSlots;
  EXPECT_GT(fill, 0.6);
  EXPECT_LT(fill, 0.8);
}

// A client that breaks the rules writes anything into records. The owner loses rows, but it goes on.
TYPED_TEST(XStoreTaggedTreeTest, OverwrittenKeysLoseRowsButNothingElse) {
  Random random(2);
  std::vector<std::string> keys;
  while (this->records_.size() < 2000) {
    const std::string key = KeyOfWidth<TypeParam::value>(random.Below(1'000'000));
    if (this->records_.contains(key)) continue;
    ASSERT_TRUE(this->Insert(key).ok());
    keys.push_back(key);
  }
  int refused = 0;
  int removals = 0;
  for (int round = 0; round < 4000; ++round) {
    std::byte* const record = this->cluster_.At(this->records_.at(keys[random.Below(keys.size())]));
    for (size_t word = 1; word < HeaderReadBytes(xstore::CapacityOf(TypeParam::value)) / kWordBytes; ++word) {
      if (word % 8 != 0 && random.OneIn(2)) StoreWord(record + word * kWordBytes, random());
    }
    const std::string key = KeyOfWidth<TypeParam::value>(random.Below(1'000'000));
    const Status inserted = this->Insert(key);
    refused += absl::IsDataLoss(inserted) ? 1 : 0;
    ASSERT_TRUE(inserted.ok() || absl::IsDataLoss(inserted) || absl::IsAlreadyExists(inserted)) << inserted;
    EpochGuard guard(this->thread_->epoch());
    const std::string other = keys[random.Below(keys.size())];
    this->tree_->Find(EncodeBytes<TypeParam::value>(other));
    const Status removed =
        this->tree_->Remove(this->thread_->context(), EncodeBytes<TypeParam::value>(other), this->records_.at(other))
            .status();
    ASSERT_TRUE(removed.ok() || absl::IsNotFound(removed)) << removed;
    removals += removed.ok() ? 1 : 0;
    ScanResult result;
    xstore::KeyWords<TypeParam::value> next;
    const auto from = EncodeBytes<TypeParam::value>(std::min(key, other));
    const auto to = EncodeBytes<TypeParam::value>(std::max(key, other));
    if (round % 2 == 0) {
      this->tree_->ScanForward(from, to, 100, SIZE_MAX, &result, &next);
    } else {
      this->tree_->ScanReverse(from, to, 100, SIZE_MAX, &result, &next);
    }
    for (const Entry& entry : result.entries) {
      EXPECT_FALSE(entry.key.view() < Key(std::string_view(std::min(key, other))));
      EXPECT_FALSE(Key(std::string_view(std::max(key, other))) < entry.key.view());
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(removals, 0);
}

class XStoreTaggedClientTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr IndexId kId = 5;
  static constexpr XStoreOptions kKeys = {.key_kind = KeyKind::kBytes, .max_key_bytes = kShortKeyBytes};

  XStoreTaggedClientTest() : cluster_({.adversarial = GetParam()}) {
    RegisterXStoreMethods(cluster_.owner().service.get());
    auto index = XStore::Create(cluster_.owner().service.get(), kId, kKeys);
    EXPECT_TRUE(index.ok()) << index.status();
    index_ = std::move(*index);
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    client_ = std::make_unique<ClientThread>(&cluster_);
  }
  ~XStoreTaggedClientTest() override { cluster_.owner().node->Shutdown(); }

  void Insert(const std::string& key) {
    EpochGuard guard(owner_->epoch());
    const rdma::GlobalAddress record = owner_->NewRecord(Key(std::string_view(key)));
    ASSERT_TRUE(index_->Insert(owner_->context(), Key(std::string_view(key)), record, nullptr).ok());
    records_[key] = record;
  }
  // Connects, and trains the model.
  void Connect() {
    auto remote = ConnectXStore(client_->channel(), 0, kId, kKeys, {});
    ASSERT_TRUE(remote.ok()) << remote.status();
    remote_ = std::move(*remote);
    EpochGuard guard(client_->epoch());
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(client_->Await(remote_->Find(Key(std::string_view(LongKey(0))))).ok());
      WaitForTraining(index_.get());
    }
  }
  FindResult Find(const std::string& key) {
    const StatusOr<FindResult> found = client_->Await(remote_->Find(Key(std::string_view(key))));
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(FindResult{});
  }

  IndexCluster cluster_;
  std::unique_ptr<XStore> index_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<ClientThread> client_;
  std::unique_ptr<RemoteIndex> remote_;
  std::map<std::string, rdma::GlobalAddress> records_;
};

TEST_P(XStoreTaggedClientTest, ATagAloneGivesTheRecordAndAWitness) {
  const std::vector<std::string> keys = KeysOfOneTag(3);
  Insert(keys[0]);
  Connect();
  EpochGuard guard(client_->epoch());
  const FindResult found = Find(keys[0]);
  EXPECT_EQ(found.record, records_.at(keys[0]));
  EXPECT_FALSE(found.from_cache);
  EXPECT_TRUE(cluster_.Valid(found.witness));
  // The key is absent and has the tag of a key that is there: the record tells, and the witness covers the key.
  const FindResult other = Find(keys[1]);
  EXPECT_EQ(other.record, records_.at(keys[0]));
  const StatusOr<FindResult> settled = client_->Settle(remote_.get(), Key(std::string_view(keys[1])), other);
  ASSERT_TRUE(settled.ok()) << settled.status();
  EXPECT_TRUE(settled->record.is_null());
  EXPECT_TRUE(cluster_.Valid(settled->witness));
  Insert(keys[1]);
  EXPECT_FALSE(cluster_.Valid(settled->witness));
  // Two have the tag now: a call tells them apart, and finds that the third is absent.
  const ClientStatistics before = remote_->statistics();
  EXPECT_EQ(Find(keys[0]).record, records_.at(keys[0]));
  EXPECT_EQ(Find(keys[1]).record, records_.at(keys[1]));
  const FindResult absent = Find(keys[2]);
  EXPECT_TRUE(absent.record.is_null());
  EXPECT_TRUE(cluster_.Valid(absent.witness));
  EXPECT_EQ(remote_->statistics().fallbacks - before.fallbacks, 3u);
}

// One posting for the leaves, and one for the keys of all of them.
TEST_P(XStoreTaggedClientTest, AScanTakesTwoPostings) {
  for (uint64_t n = 0; n < 2000; ++n) Insert(LongKey(n));
  Connect();
  EpochGuard guard(client_->epoch());
  const bool confirms = !client_->channel()->capabilities().line_consistent;
  for (const bool reverse : {false, true}) {
    const std::string from = LongKey(500);
    const std::string to = LongKey(599);
    const ScanRange range{.from = std::string_view(from), .to = std::string_view(to), .reverse = reverse};
    ScanResult result;
    ASSERT_TRUE(client_->Await(remote_->Scan(range, &result)).ok());  // fills the cache
    result.Clear();
    const rdma::VerbCounters counters = client_->channel()->counters();
    ASSERT_TRUE(client_->Await(remote_->Scan(range, &result)).ok());
    const rdma::VerbCounters spent = client_->channel()->counters() - counters;
    ASSERT_EQ(result.entries.size(), 100u);
    for (uint64_t i = 0; i < 100; ++i) {
      const std::string key = LongKey(reverse ? 599 - i : 500 + i);
      EXPECT_EQ(result.entries[i].key.bytes(), key);
      EXPECT_EQ(result.entries[i].record, records_.at(key));
    }
    EXPECT_EQ(spent.calls, 0u);
    EXPECT_EQ(spent.round_trips, confirms ? 3u : 2u);
  }
}

TEST_P(XStoreTaggedClientTest, ARecordOfAnotherKeyIsRefused) {
  Connect();
  EpochGuard guard(client_->epoch());
  const rdma::GlobalAddress record = owner_->NewRecord(Key(std::string_view(LongKey(1))));
  const auto insert = [&](rdma::GlobalAddress address) {
    const std::string key = LongKey(2);
    return client_->Await(remote_->Insert(Key(std::string_view(key)), address)).status().code();
  };
  EXPECT_EQ(insert(record), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(insert(record + kWordBytes), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(insert(rdma::GlobalAddress(1, record.offset())), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(insert(rdma::GlobalAddress(0, uint64_t{1} << 47)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(insert({}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(insert(owner_->NewRecord(Key(std::string_view(LongKey(2))))), absl::StatusCode::kOk);
}

std::string FabricName(const testing::TestParamInfo<bool>& info) {
  return info.param ? "adversarial" : "plain";
}
INSTANTIATE_TEST_SUITE_P(Fabrics, XStoreTaggedClientTest, testing::Bool(), FabricName);

}  // namespace xstore_tagged_test
}  // namespace gannet::index
