// What ROLEX adds to the common suite: models, their training, and what lookups by models cost.
#include "index/rolex/rolex.h"

#include <array>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/rolex/retraining.h"
#include "index/rolex/rolex_index.h"
#include "index/rolex/synonyms.h"
#include "rdma/forwarding.h"
#include "tests/index/record_helper.h"

namespace gannet::index::rolex {
namespace rolex_test {

constexpr IndexId kId = 1;

template <class Keys>
void ExpectQuietModels(const RolexIndex* index) {
  const auto* const own = dynamic_cast<const BasicRolexIndex<Keys>*>(index);
  ASSERT_NE(own, nullptr) << "the index holds keys of the other kind";
  for (const OwnModel<Keys>* const model : own->directory().All()) {
    for (size_t at = 0; at < model->model.bytes(); at += kLineBytes) {
      ASSERT_FALSE(rdma::IsLineBusy(LoadWord(model->block + at))) << at;
    }
  }
}

// Every node says that it has this much memory, once that is not 0.
class ClaimingFabric : public rdma::ForwardingFabric {
 public:
  ClaimingFabric(rdma::Fabric* inner, const uint64_t* bytes) : ForwardingFabric(inner), bytes_(bytes) {}
  StatusOr<std::unique_ptr<rdma::Node>> Attach(rdma::NodeId id) override {
    StatusOr<std::unique_ptr<rdma::Node>> node = ForwardingFabric::Attach(id);
    if (!node.ok()) return node;
    return std::make_unique<ClaimingNode>(*std::move(node), bytes_);
  }

 private:
  class ClaimingNode : public rdma::ForwardingNode {
   public:
    ClaimingNode(std::unique_ptr<rdma::Node> inner, const uint64_t* bytes)
        : ForwardingNode(std::move(inner)), bytes_(bytes) {}
    std::span<std::byte> memory() override {
      const std::span<std::byte> all = inner().memory();
      return *bytes_ == 0 ? all : std::span(all.data(), *bytes_);
    }

   private:
    const uint64_t* bytes_;
  };

  const uint64_t* bytes_;
};

// The places of leaves have 32 bits, in units of 64 bytes.
TEST(RolexMemoryTest, ANodeOfMoreThan256GiBIsRefused) {
  uint64_t bytes = 0;
  IndexCluster cluster({.wrap = [&](rdma::Fabric* inner) { return std::make_unique<ClaimingFabric>(inner, &bytes); }});
  IndexId id = kId;
  for (const KeyKind keys : {KeyKind::kInteger, KeyKind::kBytes}) {
    bytes = uint64_t{257} << 30;
    const Status refused = CreateRolex(cluster.owner().service.get(), id, keys).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_TRUE(absl::StrContains(refused.message(), "256 GiB")) << refused;
    bytes = 0;
    const Status taken = CreateRolex(cluster.owner().service.get(), id++, keys).status();
    EXPECT_TRUE(taken.ok()) << taken;
  }
}

class RolexTest : public ::testing::Test {
 protected:
  RolexTest() : cluster_({}) {
    RegisterRolexMethods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    auto index = CreateRolex(cluster_.owner().service.get(), kId, KeyKind::kInteger);
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = std::move(*index);
    rolex_ = dynamic_cast<RolexIndex*>(index_.get());
    thread_ = std::make_unique<ClientThread>(&cluster_);
    remote_ = Connect();
  }

  std::unique_ptr<RemoteIndex> Connect() {
    auto remote = ConnectRolex(thread_->channel(), 0, kId, {});
    GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
    return *std::move(remote);
  }
  static rdma::GlobalAddress RecordOf(uint64_t key) { return {0, (uint64_t{1} << 20) + key % 4096 * kLineBytes}; }

  void Load(const std::set<uint64_t>& keys, double fill = 1.0) {
    std::vector<LoadEntry> entries;
    for (const uint64_t key : keys) entries.push_back({Key(key), RecordOf(key)});
    const Status status = index_->BulkLoad(owner_->context(), entries, fill);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Insert(uint64_t key) {
    const auto inserted = thread_->Await(remote_->Insert(Key(key), RecordOf(key)));
    ASSERT_TRUE(inserted.ok()) << inserted.status();
  }
  void ExpectFound(RemoteIndex* remote, const std::set<uint64_t>& keys) {
    for (const uint64_t key : keys) {
      const auto found = thread_->Await(remote->Find(Key(key)));
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(found->record, RecordOf(key)) << key;
      ASSERT_EQ(index_->Find(Key(key)).record, RecordOf(key)) << key;
    }
  }
  static std::set<uint64_t> RandomKeys(uint64_t seed, size_t n) {
    Random random(seed);
    std::set<uint64_t> keys;
    while (keys.size() < n) keys.insert(random());
    return keys;
  }
  uint64_t MostSynonyms() {
    uint64_t most = 0;
    for (const std::byte* const table : rolex_->synonym_tables()) {
      most = std::max(most, LoadWord(table + kUsedOffset) & ~kRetiredBit);
    }
    return most;
  }

  IndexCluster cluster_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<LocalIndex> index_;
  RolexIndex* rolex_ = nullptr;
  std::unique_ptr<ClientThread> thread_;
  std::unique_ptr<RemoteIndex> remote_;
};

// A lookup takes at most 1.2 READs for a trained key, of one line mostly, with at most one byte of cache per key.
TEST_F(RolexTest, TrainedKeysTakeOneRead) {
  const std::set<uint64_t> keys = RandomKeys(1, 60'000);
  Load(keys);
  ExpectFound(remote_.get(), keys);  // fills the cache
  const ClientStatistics before = remote_->statistics();
  ExpectFound(remote_.get(), keys);
  const ClientStatistics after = remote_->statistics();
  const auto n = static_cast<double>(keys.size());
  EXPECT_LE(static_cast<double>(after.leaves_read - before.leaves_read) / n, 1.1);
  EXPECT_LE(static_cast<double>(after.cache_bytes) / n, 1.0);
  const std::vector<OwnedKey> some = {OwnedKey(*keys.begin())};
  const Key key = some[0].view();
  EXPECT_EQ(remote_->Estimate(std::span(&key, 1)).bytes, 64);
}

// At the start of a line such a key would be the mark of a line that is being written (fabric.h, 2).
TEST_F(RolexTest, KeysThatLookLikeBusyLines) {
  std::set<uint64_t> keys = RandomKeys(7, 1000);
  for (uint64_t key = UINT64_MAX - 30'000; key != 0; ++key) keys.insert(key);
  Load(keys);
  ExpectFound(remote_.get(), keys);
  ExpectQuietModels<IntegerKeys>(rolex_);
  ASSERT_GT(rolex_->synonym_tables().size(), 10u);  // enough for lines of the directory
}

// A scan READs the leaves that it needs, and not their empty last lines; once these are in use, it READs them, too.
TEST_F(RolexTest, AScanReadsWhatItNeeds) {
  constexpr size_t kEntries = 50;
  std::set<uint64_t> keys = RandomKeys(8, 20'000);
  Load(keys, 0.875);  // 14 in a leaf
  ExpectFound(remote_.get(), keys);
  Random random(4);
  const auto scan = [&](bool reverse) {
    const uint64_t at = random();
    ScanResult result;
    ScanRange range{.from = reverse ? 0 : at, .to = reverse ? at : UINT64_MAX, .limit = kEntries};
    range.reverse = reverse;
    const Status status = thread_->Await(remote_->Scan(range, &result));
    ASSERT_TRUE(status.ok()) << status;
    std::vector<uint64_t> expected;
    if (reverse) {
      for (auto key = keys.upper_bound(at); key != keys.begin() && expected.size() < kEntries;) {
        expected.push_back(*--key);
      }
    } else {
      for (auto key = keys.lower_bound(at); key != keys.end() && expected.size() < kEntries; ++key) {
        expected.push_back(*key);
      }
    }
    ASSERT_EQ(result.entries.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(result.entries[i].key.integer(), expected[i]);
  };
  const auto bytes_of_scans = [&] {
    const uint64_t before = thread_->channel()->counters().bytes_in;
    for (int i = 0; i < 400; ++i) scan(i % 2 == 0);
    return static_cast<double>(thread_->channel()->counters().bytes_in - before) / 400;
  };
  for (int i = 0; i < 50; ++i) scan(true);  // until it knows how full leaves are
  EXPECT_LE(bytes_of_scans(), (kEntries / 14.0 + 1.3) * 6 * kLineBytes);
  for (const uint64_t key : RandomKeys(9, 3'000)) {
    if (!keys.insert(key).second) continue;
    Insert(key);
  }
  EXPECT_GT(bytes_of_scans(), (kEntries / 16.0 + 1) * 6 * kLineBytes);
}

TEST_F(RolexTest, ModelsFollowInserts) {
  std::set<uint64_t> keys = RandomKeys(2, 20'000);
  Load(keys);
  const size_t models = rolex_->synonym_tables().size();
  auto other = Connect();
  ExpectFound(other.get(), keys);
  size_t n = 0;
  for (const uint64_t key : RandomKeys(3, 40'000)) {
    if (!keys.insert(key).second) continue;
    Insert(key);
    if (++n % 500 == 0) rolex_->TrainNow();
  }
  rolex_->TrainNow();
  EXPECT_LE(MostSynonyms(), kTrainAt);
  EXPECT_GE(rolex_->synonym_tables().size(), 3 * models / 2);
  ExpectFound(other.get(), keys);  // its models are of the beginning
  ExpectFound(remote_.get(), keys);
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
  // A client that knows the new models reads whole leaves at most.
  const ClientStatistics before = other->statistics();
  ExpectFound(other.get(), keys);
  EXPECT_LE(
      static_cast<double>(other->statistics().leaves_read - before.leaves_read) / static_cast<double>(keys.size()),
      1.2);
}

// Without any training nothing is refused and nothing is lost, however long the chains become.
TEST_F(RolexTest, AFullSynonymTableRefusesNothing) {
  std::set<uint64_t> keys;
  for (uint64_t key = 0; key < 20'000; ++key) {
    Insert(3 * key);
    keys.insert(3 * key);
  }
  EXPECT_EQ(rolex_->synonym_tables().size(), 1u);
  EXPECT_GT(MostSynonyms(), 3 * kSynonyms);
  auto other = Connect();
  // The newest leaves have taken the places of the oldest.
  const std::set<uint64_t> newest(std::prev(keys.end(), 1000), keys.end());
  ExpectFound(other.get(), newest);
  EXPECT_LE(other->statistics().leaves_read, newest.size() + 20);
  ExpectFound(other.get(), keys);
  for (uint64_t key = 0; key < 20'000; key += 3) {
    Insert(3 * key + 1);
    keys.insert(3 * key + 1);
  }
  // The urgent queue brought the model to the trainer.
  rolex_->TrainNow();
  EXPECT_GE(rolex_->synonym_tables().size(), 5u);
  ExpectQuietModels<IntegerKeys>(rolex_);
  EXPECT_LE(MostSynonyms(), kTrainAt);
  ExpectFound(other.get(), keys);
  ExpectFound(remote_.get(), keys);
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
}

TEST_F(RolexTest, RemovalsShrinkLeavesAndModels) {
  const std::set<uint64_t> keys = RandomKeys(5, 30'000);
  Load(keys);
  const size_t models = rolex_->synonym_tables().size();
  const uint64_t leaves = index_->statistics().nodes;
  auto other = Connect();
  ExpectFound(other.get(), keys);
  std::set<uint64_t> left;
  size_t n = 0;
  for (const uint64_t key : keys) {
    if (++n % 50 == 0) {
      left.insert(key);
      continue;
    }
    const auto removed = thread_->Await(remote_->Remove(Key(key), RecordOf(key)));
    ASSERT_TRUE(removed.ok()) << removed.status();
    if (n % 300 == 0) rolex_->TrainNow();
  }
  rolex_->TrainNow();
  EXPECT_LE(index_->statistics().nodes, leaves / 4);
  EXPECT_LE(rolex_->synonym_tables().size(), models / 2);
  ExpectFound(other.get(), left);
  for (const uint64_t key : keys) {
    if (left.contains(key)) continue;
    const auto found = thread_->Await(other->Find(Key(key)));
    ASSERT_TRUE(found.ok()) << found.status();
    // A line may still have the entry; then the record tells, and the second look finds nothing.
    if (found->from_cache) {
      other->Forget(Key(key));
      const auto again = thread_->Await(other->Find(Key(key)));
      ASSERT_TRUE(again.ok() && again->record.is_null()) << key;
    } else {
      ASSERT_TRUE(found->record.is_null()) << key;
    }
  }
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
}

// The last leaf of a model's table is the first one of the next model's, too, and dead. A search that passes it on its
// way left meets it twice, and goes on.
TEST_F(RolexTest, ADeadLeafOfTwoModels) {
  constexpr uint64_t kInLeaf = kLoadedEntries<IntegerKeys>;
  constexpr uint64_t kBorder = Retraining<IntegerKeys>::kLeavesPerModel;  // number of the second model's first leaf
  std::set<uint64_t> keys;
  for (uint64_t key = 0; key < 3 * kBorder * kInLeaf; ++key) keys.insert(key);
  Load(keys);
  const auto remove = [&](uint64_t leaf, uint64_t from, uint64_t to) {
    for (uint64_t key = leaf * kInLeaf + from; key < leaf * kInLeaf + to; ++key) {
      const auto removed = thread_->Await(remote_->Remove(Key(key), RecordOf(key)));
      ASSERT_TRUE(removed.ok()) << removed.status();
      keys.erase(key);
    }
  };
  // The last leaf of the first model gets the interval of 40 leaves of the second one, which is trained again.
  const uint64_t next = kBorder + 40;
  remove(kBorder - 1, 8, kInLeaf);
  for (uint64_t leaf = kBorder; leaf < next; ++leaf) remove(leaf, 0, kInLeaf);
  rolex_->TrainNow();
  const auto* const own = dynamic_cast<const BasicRolexIndex<IntegerKeys>*>(rolex_);
  const Model& second = own->directory().Find(kBorder * kInLeaf)->model;
  const Model& first = own->directory().Find(kBorder * kInLeaf - 1)->model;
  ASSERT_EQ(second.OffsetOf(0), first.OffsetOf(first.leaves() - 1));
  // The second leaf of `second` is merged with the leaf that both have, and that one with its left neighbour.
  remove(next, 1, kInLeaf);
  remove(kBorder - 2, 8, kInLeaf);
  remove(kBorder - 1, 0, 8);
  auto other = Connect();
  ExpectFound(other.get(), keys);
  ExpectFound(remote_.get(), keys);
  for (uint64_t key = kBorder * kInLeaf; key < (next + 1) * kInLeaf; ++key) {
    if (keys.contains(key)) continue;
    const auto found = thread_->Await(other->Find(Key(key)));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->record.is_null() || found->from_cache) << key;
  }
}

// A client has written the mark of a retired table into that of a model which lives. The owner merges this model with
// the one before it, and adds its own mark, which takes the other away. Then the table looks like one that needs
// training, and its model is no longer there.
TEST_F(RolexTest, AModelThatWasMergedIsNotTrainedAgain) {
  std::set<uint64_t> keys;
  const uint64_t first_leaves = Retraining<IntegerKeys>::kLeavesPerModel;
  for (uint64_t key = 1; key <= (first_leaves + 10) * IntegerKeys::kSlots; ++key) keys.insert(key);
  Load(keys);
  ASSERT_EQ(rolex_->synonym_tables().size(), 2u);
  for (uint64_t key = 15 * IntegerKeys::kSlots + 1; key <= first_leaves * IntegerKeys::kSlots; ++key) {
    ASSERT_TRUE(index_->Remove(owner_->context(), Key(key), RecordOf(key)).ok());
    keys.erase(key);
  }
  ASSERT_EQ(rolex_->synonym_tables().size(), 2u);
  StoreWord(rolex_->synonym_tables()[0] + kUsedOffset, kTrainAt);
  StoreWord(rolex_->synonym_tables()[1] + kUsedOffset, kRetiredBit | kTrainAt);
  index_->RepairAfter(1);
  rolex_->TrainNow();
  EXPECT_EQ(rolex_->synonym_tables().size(), 1u);
  cluster_.PassGracePeriod();  // frees each model once
  ExpectFound(remote_.get(), keys);
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
}

// Where atomics are not atomic with the owner's CPU, a late FAA of a client can bring back the mark that a table had
// when it was that of another model.
TEST_F(RolexTest, ALivingModelWithTheMarkOfARetiredTableGetsANewOne) {
  std::set<uint64_t> keys;
  for (uint64_t key = 1; key <= 10 * IntegerKeys::kSlots; ++key) keys.insert(key);
  Load(keys);
  ASSERT_EQ(rolex_->synonym_tables().size(), 1u);
  StoreWord(rolex_->synonym_tables()[0] + kUsedOffset, kRetiredBit | 3);
  index_->RepairAfter(1);
  rolex_->TrainNow();
  EXPECT_EQ(LoadWord(rolex_->synonym_tables()[0] + kUsedOffset), 0u);
  ExpectFound(remote_.get(), keys);
}

// A synonym that a split added while the model was trained is known to the new model, or found by right links.
TEST_F(RolexTest, ATrainerThreadTrainsWhileClientsInsert) {
  cluster_.StartEpochs();
  std::set<uint64_t> keys = RandomKeys(6, 5000);
  Load(keys);
  for (const uint64_t key : RandomKeys(7, 60'000)) {
    if (!keys.insert(key).second) continue;
    Insert(key);
  }
  EpochGuard guard(owner_->epoch());
  ExpectFound(remote_.get(), keys);
  auto other = Connect();
  ExpectFound(other.get(), keys);
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
}

// Kinds of byte keys that are hard to tell apart by any 8 bytes of theirs.
enum class Family : uint8_t {
  kThreePrefixes,  // of 40 bytes
  kNames,          // of syllables that are not equally frequent, with numbers where they repeat
  kLong,           // 64 bytes, of which the last differ
  kNested,         // the empty key, and keys that are prefixes of each other
  kHigh,           // mostly bytes of 0xff, as the first word of a busy line has (fabric.h, 2)
};

class RolexByteTest : public ::testing::TestWithParam<Family> {
 protected:
  RolexByteTest() : cluster_({}) {
    RegisterRolexMethods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    auto index = CreateRolex(cluster_.owner().service.get(), kId, KeyKind::kBytes);
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = std::move(*index);
    rolex_ = dynamic_cast<RolexIndex*>(index_.get());
    thread_ = std::make_unique<ClientThread>(&cluster_);
    remote_ = Connect();
  }

  std::unique_ptr<RemoteIndex> Connect() {
    auto remote = ConnectRolex(thread_->channel(), 0, kId, {.key_kind = KeyKind::kBytes});
    GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
    return *std::move(remote);
  }
  // A key of the family.
  static std::string Draw(Random* random) {
    const auto text = [random](size_t size, uint64_t letters) {
      std::string bytes(size, ' ');
      for (char& byte : bytes) byte = static_cast<char>('a' + random->Below(letters));
      return bytes;
    };
    switch (GetParam()) {
      case Family::kThreePrefixes:
        return std::string(20, 'p') + std::string(20, static_cast<char>('a' + random->Below(3))) + text(10, 26);
      case Family::kNames: {
        std::string name;
        for (int i = 0; i < 5; ++i) {
          const uint64_t rank = random->Below(1 + random->Below(1 + random->Below(20)));
          name += std::string(1, static_cast<char>('A' + rank)) + "ough";
        }
        return name + std::to_string(random->Below(1000));
      }
      case Family::kLong:
        return std::string(60, 'x') + text(4, 20);
      case Family::kNested:
        return text(64, 2).substr(0, random->Below(65));
      case Family::kHigh: {
        std::string key(1 + random->Below(40), '\xff');
        for (int i = 0; i < 4; ++i) key[random->Below(key.size())] = static_cast<char>((*random)());
        return key;
      }
    }
    return "";
  }
  static std::set<std::string> DrawKeys(uint64_t seed, size_t n) {
    Random random(seed);
    std::set<std::string> keys;
    while (keys.size() < n) keys.insert(Draw(&random));
    return keys;
  }
  rdma::GlobalAddress RecordOf(const std::string& key) {
    const auto [at, is_new] = records_.try_emplace(key);
    if (is_new) at->second = owner_->NewRecord(Key(std::string_view(key)));
    return at->second;
  }
  void Load(const std::set<std::string>& keys) {
    std::vector<LoadEntry> entries;
    for (const std::string& key : keys) entries.push_back({Key(std::string_view(key)), RecordOf(key)});
    const Status status = index_->BulkLoad(owner_->context(), entries, 1.0);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Insert(const std::string& key) {
    const auto inserted = thread_->Await(remote_->Insert(Key(std::string_view(key)), RecordOf(key)));
    ASSERT_TRUE(inserted.ok()) << inserted.status();
  }
  void ExpectFound(RemoteIndex* remote, const std::set<std::string>& keys) {
    for (const std::string& text : keys) {
      const Key key{std::string_view(text)};
      const auto found = thread_->Find(remote, key);
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(found->record, RecordOf(text)) << text;
      ASSERT_EQ(index_->Find(key).record, RecordOf(text)) << text;
    }
  }
  // READs of leaves, for each key, by a client that has cached the models.
  double LeavesReadPerKey(RemoteIndex* remote, const std::set<std::string>& keys) {
    const uint64_t before = remote->statistics().leaves_read;
    for (const std::string& key : keys) {
      const auto found = thread_->Await(remote->Find(Key(std::string_view(key))));
      GANNET_CHECK(found.ok() && !found->record.is_null(), "a key is lost");
    }
    return static_cast<double>(remote->statistics().leaves_read - before) / static_cast<double>(keys.size());
  }

  IndexCluster cluster_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<LocalIndex> index_;
  RolexIndex* rolex_ = nullptr;
  std::map<std::string, rdma::GlobalAddress> records_;
  std::unique_ptr<ClientThread> thread_;
  std::unique_ptr<RemoteIndex> remote_;
};

TEST_P(RolexByteTest, TrainedKeysTakeOneRead) {
  EpochGuard guard(owner_->epoch());
  const std::set<std::string> keys = DrawKeys(1, 20'000);
  Load(keys);
  EXPECT_GE(rolex_->synonym_tables().size(), 5u);
  ExpectQuietModels<ByteKeys>(rolex_);
  ExpectFound(remote_.get(), keys);  // fills the cache
  EXPECT_LE(LeavesReadPerKey(remote_.get(), keys), 1.2);
  const auto n = static_cast<double>(keys.size());
  EXPECT_LE(static_cast<double>(remote_->statistics().cache_bytes) / n,
            GetParam() == Family::kNested || GetParam() == Family::kHigh ? 2.5 : 1.0);
  // Absent keys take the leaf that proves it.
  Random random(2);
  const uint64_t before = remote_->statistics().leaves_read;
  for (int i = 0; i < 2000; ++i) {
    const std::string absent = Draw(&random).substr(0, 63) + "!";
    if (keys.contains(absent)) continue;
    const auto found = thread_->Find(remote_.get(), Key(std::string_view(absent)));
    ASSERT_TRUE(found.ok() && found->record.is_null()) << absent;
  }
  EXPECT_LE(remote_->statistics().leaves_read - before, 5000u);
}

TEST_P(RolexByteTest, ModelsFollowInsertsAndRemovals) {
  EpochGuard guard(owner_->epoch());
  std::set<std::string> keys = DrawKeys(2, 6000);
  Load(keys);
  const size_t models = rolex_->synonym_tables().size();
  auto other = Connect();
  ExpectFound(other.get(), keys);
  size_t n = 0;
  for (const std::string& key : DrawKeys(3, 14'000)) {
    if (!keys.insert(key).second) continue;
    Insert(key);
    if (++n % 500 == 0) rolex_->TrainNow();
  }
  rolex_->TrainNow();
  EXPECT_GT(rolex_->synonym_tables().size(), models);
  ExpectFound(other.get(), keys);  // its models are of the beginning
  ExpectFound(remote_.get(), keys);
  EXPECT_LE(LeavesReadPerKey(other.get(), keys), 1.2);
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();

  const uint64_t leaves = index_->statistics().nodes;
  std::set<std::string> left;
  n = 0;
  for (const std::string& key : keys) {
    if (++n % 50 == 0) {
      left.insert(key);
      continue;
    }
    const auto removed = thread_->Await(remote_->Remove(Key(std::string_view(key)), RecordOf(key)));
    ASSERT_TRUE(removed.ok()) << removed.status();
    if (n % 300 == 0) rolex_->TrainNow();
  }
  rolex_->TrainNow();
  EXPECT_LE(index_->statistics().nodes, leaves / 4);
  ExpectFound(other.get(), left);
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
}

// All leaves but one are synonyms, and many of them have the same number. Neither the owner nor a client that comes
// later follows the chain from its beginning.
TEST_P(RolexByteTest, WithoutTrainingSynonymsLeadToTheLeaves) {
  EpochGuard guard(owner_->epoch());
  const std::set<std::string> keys = DrawKeys(4, 5000);
  for (const std::string& key : keys) {
    const auto inserted = index_->Insert(owner_->context(), Key(std::string_view(key)), RecordOf(key), nullptr);
    ASSERT_TRUE(inserted.ok()) << inserted.status();
  }
  ASSERT_EQ(rolex_->synonym_tables().size(), 1u);
  const uint64_t leaves = index_->statistics().nodes;
  EXPECT_GT(leaves, 100u);
  ASSERT_LT(leaves, kSynonyms) << "the synonym table has all of them";
  auto other = Connect();
  ExpectFound(other.get(), keys);
  EXPECT_LE(LeavesReadPerKey(other.get(), keys), 1.2);
  ASSERT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
}

std::string NameOf(const testing::TestParamInfo<Family>& info) {
  constexpr std::array kNames = {"ThreePrefixes", "Names", "Long", "Nested", "High"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(, RolexByteTest,
                         ::testing::Values(Family::kThreePrefixes, Family::kNames, Family::kLong, Family::kNested,
                                           Family::kHigh),
                         NameOf);

}  // namespace rolex_test
}  // namespace gannet::index::rolex
