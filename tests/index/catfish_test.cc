// What is particular to catfish: options, the shape of trees, memory.
#include "index/catfish/catfish.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

using testing::HasSubstr;

constexpr IndexId kId = 4;

std::string NameOf(CatfishVariant variant) {
  return std::array{"guttman", "rstar", "hilbert"}[static_cast<size_t>(variant)];
}

class CatfishTest : public testing::TestWithParam<CatfishVariant> {
 protected:
  void Start(CatfishOptions options, const IndexCluster::Options& cluster = {}) {
    options.variant = GetParam();
    cluster_ = std::make_unique<IndexCluster>(cluster);
    auto index = CreateCatfish(cluster_->owner().service.get(), kId, KeyKind::kBytes, 40, 1000, options);
    ASSERT_TRUE(index.ok()) << index.status();
    index_ = std::move(*index);
    cluster_->Serve();
    owner_ = std::make_unique<OwnerThread>(cluster_.get());
  }
  void TearDown() override {
    if (cluster_ != nullptr) cluster_->owner().node->Shutdown();
    owner_.reset();
    index_.reset();
    cluster_.reset();
  }
  // Squares of side 1e-3 in the unit square.
  static RectangleKeyBytes KeyOf(uint64_t n) {
    Random random(n);
    const Rectangle at = Rectangle::Point(random.Unit(), random.Unit());
    return RectangleKeyBytes({{at.min_x, at.min_y, at.min_x + 1e-3, at.min_y + 1e-3}, n});
  }
  void InsertMany(uint64_t first, uint64_t end) {
    for (uint64_t n = first; n < end; ++n) {
      EpochGuard guard(owner_->epoch());
      const auto key = KeyOf(n);
      const auto change = index_->Insert(owner_->context(), key.view(), owner_->NewRecord(key.view()), nullptr);
      ASSERT_TRUE(change.ok()) << change.status();
    }
  }
  // Nodes that a search of a window of this side looks at, on average.
  double NodesPerSearch(double side) {
    Random random(5);
    uint64_t nodes = 0;
    for (int i = 0; i < 200; ++i) {
      EpochGuard guard(owner_->epoch());
      const Rectangle at = Rectangle::Point(random.Unit(), random.Unit());
      ScanResult result;
      EXPECT_TRUE(index_->Search({.window = {at.min_x, at.min_y, at.min_x + side, at.min_y + side}}, &result).ok());
      nodes += result.witnesses.size();
    }
    return static_cast<double>(nodes) / 200;
  }

  std::unique_ptr<IndexCluster> cluster_;
  std::unique_ptr<LocalIndex> index_;
  std::unique_ptr<OwnerThread> owner_;
};
INSTANTIATE_TEST_SUITE_P(Variants, CatfishTest,
                         testing::Values(CatfishVariant::kGuttman, CatfishVariant::kRStar, CatfishVariant::kHilbert),
                         [](const auto& test) { return NameOf(test.param); });

TEST_P(CatfishTest, TreesAreAsHighAndAsFullAsTheyShouldBe) {
  Start({.world = Rectangle{0, 0, 1, 1}});
  InsertMany(0, 20000);
  const Statistics statistics = index_->statistics();
  EXPECT_EQ(statistics.keys, 20000u);
  EXPECT_GE(statistics.height, 3);
  EXPECT_LE(statistics.height, 4);
  const double fill = 20000.0 / static_cast<double>(statistics.nodes) / 30;
  EXPECT_GT(fill, GetParam() == CatfishVariant::kGuttman ? 0.5 : 0.6);
  ASSERT_TRUE(index_->CheckStructure().ok());
  // A tree that ignores the geometry looks at hundreds of its 1,000 nodes.
  EXPECT_LT(NodesPerSearch(1e-3), 12);
}

TEST_P(CatfishTest, ABulkLoadPacksTheNodes) {
  Start({.world = Rectangle{0, 0, 1, 1}});
  std::vector<RectangleKeyBytes> keys;
  std::vector<LoadEntry> entries;
  for (uint64_t n = 0; n < 20000; ++n) keys.push_back(KeyOf(n));
  EpochGuard guard(owner_->epoch());
  for (const auto& key : keys) entries.push_back({key.view(), owner_->NewRecord(key.view())});
  const Status loaded = index_->BulkLoad(owner_->context(), entries, 1.0);
  ASSERT_TRUE(loaded.ok()) << loaded;
  const Statistics statistics = index_->statistics();
  EXPECT_EQ(statistics.keys, 20000u);
  EXPECT_EQ(statistics.height, 3);
  EXPECT_LT(statistics.nodes, 20000 / 30 + 40);
  EXPECT_LT(NodesPerSearch(1e-3), 8);
  EXPECT_TRUE(absl::IsFailedPrecondition(index_->BulkLoad(owner_->context(), entries, 1.0)));
}

TEST_P(CatfishTest, ABulkLoadRefusesAKeyThatIsThereTwice) {
  Start({});
  const auto key = KeyOf(1);
  const auto other = KeyOf(2);
  EpochGuard guard(owner_->epoch());
  const rdma::GlobalAddress record = owner_->NewRecord(key.view());
  const std::vector<LoadEntry> entries = {{key.view(), record}, {other.view(), record}, {key.view(), record}};
  const Status twice = index_->BulkLoad(owner_->context(), entries, 1.0);
  EXPECT_TRUE(absl::IsInvalidArgument(twice));
  EXPECT_THAT(std::string(twice.message()), HasSubstr("id 1 is there twice"));
  EXPECT_TRUE(index_->BulkLoad(owner_->context(), std::span(entries).first(2), 1.0).ok());
  EXPECT_EQ(index_->statistics().keys, 2u);
}

// Every key of every size of node; also equal rectangles, which no split can tell apart.
TEST_P(CatfishTest, NodesMayHaveAnySize) {
  for (const uint32_t entries : {4u, 15u, 70u, 130u}) {
    TearDown();
    Start({.node_entries = entries});
    InsertMany(0, 3000);
    EpochGuard guard(owner_->epoch());
    for (uint64_t id = 0; id < 500; ++id) {
      const RectangleKeyBytes key({Rectangle::Point(0.5, 0.5), id});
      ASSERT_TRUE(index_->Insert(owner_->context(), key.view(), owner_->NewRecord(key.view()), nullptr).ok());
    }
    const Status structure = index_->CheckStructure();
    ASSERT_TRUE(structure.ok()) << structure;
    EXPECT_EQ(index_->statistics().keys, 3500u);
    ScanResult result;
    ASSERT_TRUE(index_->Search({.window = Rectangle::Point(0.5, 0.5)}, &result).ok());
    EXPECT_GE(result.entries.size(), 500u);
  }
}

// An insert that finds no memory changes nothing; a removal needs none.
TEST_P(CatfishTest, MemoryMayRunOut) {
  Start({.node_entries = 4}, {.bytes_per_node = uint64_t{8} << 20});
  std::vector<std::pair<RectangleKeyBytes, rdma::GlobalAddress>> present;
  Status status;
  for (uint64_t n = 0; status.ok(); ++n) {
    EpochGuard guard(owner_->epoch());
    const auto key = KeyOf(n);
    const rdma::GlobalAddress record(0, cluster_->owner().node->writable_offset() + n * kLineBytes);  // never looked at
    status = index_->Insert(owner_->context(), key.view(), record, nullptr).status();
    if (status.ok()) present.emplace_back(key, record);
    ASSERT_LT(n, 1'000'000u);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(index_->statistics().keys, present.size());
  ASSERT_TRUE(index_->CheckStructure().ok());
  // Nothing retired becomes free, because the epoch does not advance: so removals find no memory, either.
  for (const auto& [key, record] : present) {
    EpochGuard guard(owner_->epoch());
    ASSERT_TRUE(index_->Remove(owner_->context(), key.view(), record).ok());
  }
  EXPECT_EQ(index_->statistics().keys, 0u);
  const Status structure = index_->CheckStructure();
  ASSERT_TRUE(structure.ok()) << structure;
  cluster_->PassGracePeriod();
  owner_->epoch()->Collect();
  InsertMany(0, 1000);
  ASSERT_TRUE(index_->CheckStructure().ok());
  EXPECT_EQ(index_->statistics().keys, 1000u);
}

TEST(CatfishOptionsTest, WrongOptionsAreNamed) {
  IndexCluster cluster({});
  IndexService* const service = cluster.owner().service.get();
  const auto error_of = [&](KeyKind kind, size_t bytes, const CatfishOptions& options) {
    const Status status = CreateCatfish(service, kId, kind, bytes, 10, options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error_of(KeyKind::kInteger, 8, {}), HasSubstr("byte keys of 40 bytes"));
  EXPECT_THAT(error_of(KeyKind::kBytes, 39, {}), HasSubstr("byte keys of 40 bytes"));
  EXPECT_THAT(error_of(KeyKind::kBytes, 40, {.node_entries = 3}),
              HasSubstr("node_entries must be from 4 to 130, not 3"));
  EXPECT_THAT(error_of(KeyKind::kBytes, 40, {.node_entries = 131}), HasSubstr("not 131"));
  EXPECT_THAT(error_of(KeyKind::kBytes, 40, {.world = Rectangle{1, 0, 0, 0}}), HasSubstr("min_x is greater"));
}

}  // namespace
}  // namespace gannet::index
