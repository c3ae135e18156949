// XModel, on which the speed of clients depends. A key's leaf is in the predicted range for every key that the leaf
// covers, present or absent, and the range is narrow where the keys allow it.
#include <algorithm>
#include <set>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/model/model.h"
#include "tests/index/record_helper.h"

namespace gannet::index::xstore {
namespace xstore_model_test {

TEST(XStoreErrorCodes, RoundUpAndNeverDown) {
  EXPECT_EQ(EncodeError(0), 0);
  EXPECT_EQ(DecodeError(0), 0);
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const double error = random.Unit() * (1 << random.Below(20));
    const double stored = DecodeError(EncodeError(error));
    ASSERT_GE(stored, error);
    ASSERT_LE(stored, std::max(error * 1.13, 1.0 / 128));
  }
}

TEST(XStoreSubModel, BoundsHoldForAnySpans) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<LeafSpan> leaves(1 + random.Below(100));
    std::vector<double> borders;
    for (size_t i = 0; i <= leaves.size(); ++i) {
      borders.push_back(random.OneIn(4) && i > 0 ? borders.back() : random.Unit());  // equal ones: keys of one number
    }
    std::sort(borders.begin(), borders.end());
    for (size_t i = 0; i < leaves.size(); ++i) leaves[i] = {borders[i], borders[i + 1]};
    const SubModel model = TrainSubModel(leaves);
    ASSERT_EQ(model.size, leaves.size());
    for (uint32_t l = 0; l < leaves.size(); ++l) {
      for (const double at : {0.0, 0.1, 0.5, 0.99, 1.0}) {
        const SubModel::Range range = model.Predict(leaves[l].low + at * (leaves[l].high - leaves[l].low));
        ASSERT_LE(range.first, l);
        ASSERT_GE(range.last, l);
      }
    }
  }
}

TEST(XStoreProjection, IsMonotonicAlsoForKeysItHasNotSeen) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    Projection::Learner<3> learner;
    const auto random_key = [&] {
      std::string bytes = "common";
      const size_t size = random.Below(12);
      while (bytes.size() < 6 + size) bytes.push_back(static_cast<char>('a' + random.Below(1 + round % 20)));
      return bytes;
    };
    for (int i = 0; i < 50; ++i) learner.Add(EncodeBytes<3>(random_key()));
    const Projection projection = learner.Learn();
    std::vector<KeyWords<3>> keys;
    for (int i = 0; i < 200; ++i) {
      std::string bytes = random_key();
      if (random.OneIn(3)) bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
      keys.push_back(EncodeBytes<3>(bytes));
    }
    std::sort(keys.begin(), keys.end());
    for (size_t i = 1; i < keys.size(); ++i) ASSERT_LE(projection(keys[i - 1]), projection(keys[i]));
  }
}

TEST(XStoreProjection, SurvivesTheWire) {
  Projection::Learner<1> learner;
  Random random(4);
  for (int i = 0; i < 100; ++i) learner.Add({{random.Below(3) << 48 | random.Below(10) << 32 | random.Below(3000)}});
  const Projection projection = learner.Learn();
  std::vector<std::byte> buffer(1000);
  rdma::WireWriter writer(buffer);
  projection.Encode(writer);
  rdma::WireReader reader(writer.written());
  const StatusOr<Projection> copy = Projection::Decode(reader, 1);
  ASSERT_TRUE(copy.ok()) << copy.status();
  for (int i = 0; i < 1000; ++i) {
    const KeyWords<1> key{{random() >> random.Below(64)}};
    ASSERT_EQ((*copy)(key), projection(key));
  }
}

// Long keys: texts that are the same in all of them are between bytes that differ.
template <int W>
void CheckLongProjection() {
  SCOPED_TRACE(W);
  Random random(static_cast<uint64_t>(W));
  const size_t shared = CapacityOf(W) / 2 - 20;
  for (int round = 0; round < 40; ++round) {
    Projection::Learner<W> learner;
    const auto random_key = [&] {
      std::string bytes(shared - random.Below(2) * static_cast<size_t>(round % 3 == 0), 's');
      bytes.push_back(static_cast<char>('a' + random.Below(3)));
      bytes.append(shared, 't');
      bytes += std::to_string(100'000 + random.Below(5000));
      return bytes;
    };
    for (int i = 0; i < 500; ++i) learner.Add(EncodeBytes<W>(random_key()));
    const Projection projection = learner.Learn();
    std::vector<KeyWords<W>> keys = {KeyWords<W>::Lowest(), KeyWords<W>::Highest()};
    for (int i = 0; i < 500; ++i) {
      std::string bytes = random_key();
      if (random.OneIn(3)) bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
      if (random.OneIn(9)) bytes.resize(random.Below(bytes.size()));
      keys.push_back(EncodeBytes<W>(bytes));
    }
    std::sort(keys.begin(), keys.end());
    std::set<uint64_t> numbers;
    for (size_t i = 1; i < keys.size(); ++i) {
      ASSERT_LE(projection(keys[i - 1]), projection(keys[i]));
      numbers.insert(projection(keys[i]));
    }
    EXPECT_GT(numbers.size(), 200u) << "of 500 keys, a third of which are changed";

    std::vector<std::byte> buffer(4000);
    rdma::WireWriter writer(buffer);
    projection.Encode(writer);
    rdma::WireReader reader(writer.written());
    const StatusOr<Projection> copy = Projection::Decode(reader, W);
    ASSERT_TRUE(copy.ok()) << copy.status();
    ASSERT_TRUE(reader.Finish().ok());
    for (const KeyWords<W>& key : keys) ASSERT_EQ((*copy)(key), projection(key));
    // An index whose keys have fewer words refuses it.
    for (const int words : {1, 9, static_cast<int>(shared / 8)}) {
      rdma::WireReader again(writer.written());
      EXPECT_FALSE(Projection::Decode(again, words).ok()) << words;
    }
  }
  EXPECT_EQ(Projection::Learner<W>().Learn()(KeyWords<W>::Highest()), 0u) << "no keys";
}

TEST(XStoreProjection, OfLongKeysSkipsWhatTheyShare) {
  CheckLongProjection<33>();
  CheckLongProjection<129>();
}

// A peer may send any bytes. Decode refuses them, or makes a projection that reads no word behind the key.
TEST(XStoreProjection, OfAPeerIsChecked) {
  Random random(6);
  int taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(1 + random.Below(300));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.OneIn(2) ? random.Below(4) : random.Below(256));
    bytes[0] = static_cast<std::byte>((random.OneIn(4) ? 0 : 0x80) | random.Below(12));
    rdma::WireReader reader(bytes);
    const StatusOr<Projection> decoded = Projection::Decode(reader, 33);
    if (!decoded.ok()) continue;
    ++taken;
    KeyWords<33> key;
    for (uint64_t& word : key.words) word = random();
    static_cast<void>((*decoded)(key));
  }
  EXPECT_GT(taken, 10);
}

class XStoreModelTest : public testing::Test {
 protected:
  XStoreModelTest() {
    auto tree = Tree<1>::Create(cluster_.owner().service.get(), KeyKind::kInteger);
    EXPECT_TRUE(tree.ok()) << tree.status();
    tree_ = std::move(*tree);
    thread_ = std::make_unique<OwnerThread>(&cluster_);
  }
  void Insert(uint64_t key) {
    EpochGuard guard(thread_->epoch());
    ASSERT_TRUE(tree_->Insert(thread_->context(), {{key}}, rdma::GlobalAddress(0, 64), nullptr).ok());
  }
  std::unique_ptr<Model<1>> Train(uint32_t sub_models) {
    auto model = Model<1>::Train(tree_.get(), {}, 1, [sub_models](uint64_t) { return sub_models; });
    EXPECT_TRUE(model.ok()) << model.status();
    return std::move(*model);
  }
  // The leaf of `key` is in the range that the model predicts; returns the size of the range.
  uint32_t ExpectPredicted(const Model<1>& model, uint64_t key) {
    EpochGuard guard(thread_->epoch());
    const uint32_t leaf = tree_->NumberOf(tree_->Locate({{key}}));
    const TopModel::Place place = model.top().Locate(KeyWords<1>{{key}});
    const SubModelLine line = model.LineOf(place.sub_model);
    const SubModel::Range range = line.model.Predict(place.x);
    EXPECT_LT(range.last, line.model.size);
    bool found = false;
    for (uint32_t i = range.first; i <= range.last; ++i) {
      found |= TableEntry::Unpack(LoadWord(model.TableAt(line.table) + i * kWordBytes)).leaf == leaf;
    }
    EXPECT_TRUE(found) << "key " << key << " of sub-model " << place.sub_model;
    return range.last - range.first + 1;
  }
  // The slot of `key` is in the predicted slots; returns the number of predicted slots.
  int ExpectSlotPredicted(const Model<1>& model, uint64_t key) {
    EpochGuard guard(thread_->epoch());
    const Leaf<1> leaf = tree_->Locate({{key}});
    const TopModel::Place place = model.top().Locate(KeyWords<1>{{key}});
    const SubModelLine line = model.LineOf(place.sub_model);
    const int slot = leaf.FindSlot({{key}}, leaf.meta().count);
    for (uint32_t i = 0; i < line.model.size; ++i) {
      const TableEntry entry = TableEntry::Unpack(LoadWord(model.TableAt(line.table) + i * kWordBytes));
      if (entry.leaf != tree_->NumberOf(leaf)) continue;
      const SubModel::Slots slots = line.model.PredictSlots(place.x, i, entry.count);
      EXPECT_LE(slots.first, slot) << key;
      EXPECT_GE(slots.last, slot) << key;
      return slots.last - slots.first + 1;
    }
    ADD_FAILURE() << "the leaf of key " << key << " is not in its sub-model's table";
    return 0;
  }
  void ExpectAllPredicted(const Model<1>& model, const std::set<uint64_t>& keys) {
    for (const uint64_t key : keys) {
      ExpectPredicted(model, key);
      if (key > 0) ExpectPredicted(model, key - 1);
      if (key < UINT64_MAX) ExpectPredicted(model, key + 1);
    }
    ExpectPredicted(model, 0);
    ExpectPredicted(model, UINT64_MAX);
    for (auto it = keys.begin(); it != keys.end() && std::next(it) != keys.end(); ++it) {
      ExpectPredicted(model, *it + (*std::next(it) - *it) / 2);
    }
  }

  IndexCluster cluster_{{}};
  std::unique_ptr<OwnerThread> thread_;
  std::unique_ptr<Tree<1>> tree_;
};

TEST_F(XStoreModelTest, EveryKeyIsWithinItsBoundsPresentOrAbsent) {
  Random random(5);
  std::set<uint64_t> keys;
  for (int i = 0; i < 1000; ++i) keys.insert(random());                                  // uniform
  for (int i = 0; i < 1000; ++i) keys.insert((uint64_t{1} << 40) + random.Below(5000));  // a dense range
  for (int i = 0; i < 500; ++i) keys.insert(uint64_t{1} << random.Below(64));            // powers
  for (int i = 0; i < 1000; ++i)
    keys.insert((uint64_t{7} << 60) + random.Below(10) * (uint64_t{1} << 32) + random.Below(100));
  keys.insert(0);
  keys.insert(UINT64_MAX);
  for (const uint64_t key : keys) Insert(key);
  for (const uint32_t sub_models : {1u, 2u, 7u, 100u, 1000u, 20000u}) {
    const auto model = Train(sub_models);
    EXPECT_EQ(model->sub_models(), sub_models);
    ExpectAllPredicted(*model, keys);
  }
}

TEST_F(XStoreModelTest, EveryPresentKeyIsInThePredictedSlots) {
  Random random(9);
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < 4000; ++i) keys.insert(1000 + i * 100);
  for (const uint64_t key : keys) Insert(key);
  const auto regular = Train(20);
  int slots = 0;
  for (const uint64_t key : keys) slots += ExpectSlotPredicted(*regular, key);
  EXPECT_LE(slots, 2 * 4000) << "of regular keys";
  EXPECT_LT(regular->mean_range(), 1.0);
  // Some keys are inserted in no order within their leaves.
  for (int i = 0; i < 3000; ++i) {
    const uint64_t key = random.Below(500'000);
    if (keys.insert(key).second) Insert(key);
  }
  for (const uint32_t sub_models : {1u, 7u, 100u, 3000u}) {
    const auto model = Train(sub_models);
    for (const uint64_t key : keys) ExpectSlotPredicted(*model, key);
  }
}

TEST_F(XStoreModelTest, LinearKeysTakeOneLeaf) {
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < 16000; ++i) keys.insert(1000 + i * 100);
  for (const uint64_t key : keys) Insert(key);
  const auto model = Train(16);
  ExpectAllPredicted(*model, keys);
  double leaves = 0;
  for (const uint64_t key : keys) leaves += ExpectPredicted(*model, key);
  EXPECT_LE(leaves / static_cast<double>(keys.size()), 1.05);
  EXPECT_LE(model->leaves_per_lookup(), 1.05);
}

TEST_F(XStoreModelTest, CompositeKeysAreNearlyLinear) {
  // Warehouse, district, order: dense in each district, with huge gaps between them.
  std::set<uint64_t> keys;
  for (uint64_t w = 1; w <= 2; ++w) {
    for (uint64_t d = 1; d <= 10; ++d) {
      for (uint64_t o = 1; o <= 1000; ++o) keys.insert(w << 48 | d << 40 | o);
    }
  }
  for (const uint64_t key : keys) Insert(key);
  const auto model = Train(100);
  ExpectAllPredicted(*model, keys);
  EXPECT_LE(model->leaves_per_lookup(), 3.0);
}

TEST_F(XStoreModelTest, RetrainedSubModelsCoverTheirSplitLeaves) {
  Random random(6);
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < 3000; ++i) keys.insert(i * 1000);
  for (const uint64_t key : keys) Insert(key);
  const auto model = Train(20);
  std::set<uint32_t> touched;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t key = 500'000 + random.Below(700'000);
    if (!keys.insert(key).second) continue;
    Insert(key);
    touched.insert(model->top().Locate(KeyWords<1>{{key}}).sub_model);
  }
  EXPECT_LT(touched.size(), 10u);
  for (const uint32_t sub_model : touched) {
    IndexService::Guard guard(cluster_.owner().service.get());
    ASSERT_TRUE(model->Retrain(guard.context(), sub_model).ok());
  }
  ExpectAllPredicted(*model, keys);
  EXPECT_EQ(model->keys(), keys.size());
}

// A sub-model may lose keys to its neighbour (a leaf that began in it now begins further right), or by removals.
TEST_F(XStoreModelTest, RetrainingCountsWhatIsGone) {
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < 3000; ++i) keys.insert(i * 1000);
  for (const uint64_t key : keys) Insert(key);
  const auto model = Train(20);
  const uint64_t entries = model->table_entries();
  for (uint64_t i = 500; i < 2500; ++i) {
    EpochGuard guard(thread_->epoch());
    ASSERT_TRUE(tree_->Remove(thread_->context(), {{i * 1000}}, rdma::GlobalAddress(0, 64)).ok());
  }
  for (uint32_t sub_model = 0; sub_model < 20; ++sub_model) {
    IndexService::Guard guard(cluster_.owner().service.get());
    ASSERT_TRUE(model->Retrain(guard.context(), sub_model).ok());
  }
  EXPECT_EQ(model->keys(), 1000u);
  EXPECT_LE(model->table_entries(), entries);
}

TEST_F(XStoreModelTest, LinesOfADisownedModelBelongToNone) {
  for (uint64_t key = 0; key < 1000; ++key) Insert(key);
  const auto model = Train(7);
  for (uint32_t i = 0; i < 7; ++i) EXPECT_EQ(model->LineOf(i).generation, 1u);
  model->Disown();
  for (uint32_t i = 0; i < 7; ++i) EXPECT_EQ(model->LineOf(i).generation, 0u);
}

TEST_F(XStoreModelTest, AnEmptyTreeHasAModelToo) {
  const auto model = Train(1);
  EXPECT_EQ(ExpectPredicted(*model, 12345), 1u);
  for (uint64_t key = 0; key < 100; ++key) Insert(key);
  IndexService::Guard guard(cluster_.owner().service.get());
  ASSERT_TRUE(model->Retrain(guard.context(), 0).ok());
  ExpectAllPredicted(*model, {0, 50, 99});
}

}  // namespace xstore_model_test
}  // namespace gannet::index::xstore
