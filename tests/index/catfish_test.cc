// What is particular to catfish: options, the shape of trees, memory, hostile images, and how clients search.
#include "index/catfish/catfish.h"

#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/catfish/node.h"
#include "index/catfish/rpc/messages.h"
#include "index/catfish/variant.h"
#include "index/registry.h"
#include "rdma/rpc.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace catfish_test {

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
    RegisterCatfishMethods(cluster_->owner().service.get());
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

TEST(CatfishOptionsTest, TheRegistryMakesOne) {
  const IndexKindEntry& entry = EntryOf(IndexKind::kCatfish);
  EXPECT_EQ(entry.name, "catfish");
  EXPECT_TRUE(entry.traits.spatial);
  EXPECT_FALSE(entry.traits.ordered);
  IndexCluster cluster({});
  entry.register_methods(cluster.owner().service.get());
  const auto index = entry.create(cluster.owner().service.get(), kId,
                                  {.key_kind = KeyKind::kBytes,
                                   .max_key_bytes = 40,
                                   .own = CatfishOptions{.variant = CatfishVariant::kGuttman, .node_entries = 130}});
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ((*index)->statistics().registered_bytes % 64, 0u);
  cluster.owner().node->Shutdown();
}

// An owner whose answers have become wrong when the client searches: rectangles are removed after each.
TEST(CatfishNearestTest, AReachThatIsTooShortIsAskedForAgain) {
  IndexCluster cluster({});
  rdma::Node* const node = cluster.owner().node.get();
  IndexService* const service = cluster.owner().service.get();
  const auto index = CreateCatfish(service, kId, KeyKind::kBytes, 40, 1000, {});
  ASSERT_TRUE(index.ok()) << index.status();
  std::atomic<int> wrong = 0;  // answers that are too short from now on
  std::atomic<int> calls = 0;
  node->Handle(catfish::kNearest, [&](rdma::NodeId, std::span<const std::byte>, std::span<std::byte> out) {
    ++calls;
    rdma::WireWriter writer(out);
    writer.PutU8(0);
    catfish::PutNumber(writer, wrong.fetch_sub(1) > 0 ? 0.0 : 4.0);
    return writer.Finish();
  });
  node->Handle(catfish::kSearch, [&](rdma::NodeId, std::span<const std::byte>, std::span<std::byte> out) {
    const IndexService::Guard guard(service);
    ScanResult all;
    EXPECT_TRUE((*index)->Search({.window = Rectangle::Everything()}, &all).ok());
    rdma::WireWriter writer(out);
    catfish::PutPosition(writer, std::nullopt);
    catfish::PutResult(writer, all);
    return writer.Finish();
  });
  cluster.Serve();
  {
    OwnerThread owner(&cluster);
    for (uint64_t n = 0; n < 10; ++n) {
      EpochGuard guard(owner.epoch());
      const RectangleKeyBytes key({Rectangle::Point(static_cast<double>(n), 0), n});
      ASSERT_TRUE((*index)->Insert(owner.context(), key.view(), owner.NewRecord(key.view()), nullptr).ok());
    }
    ClientThread client(&cluster);
    const auto remote = ConnectCatfish(client.channel(), 0, kId, {.by_call = true});
    ASSERT_TRUE(remote.ok()) << remote.status();
    for (const int times : {0, 1, 3}) {
      wrong = times;
      calls = 0;
      ScanResult result;
      const Status status = client.Await((*remote)->Nearest({.x = 0, .y = 0, .count = 3}, &result));
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(result.entries.size(), 3u);
      for (uint64_t n = 0; n < 3; ++n) EXPECT_EQ(DecodeRectangleKey(result.entries[n].key.view())->id, n);
      EXPECT_EQ(calls, times + 1);
    }
    wrong = 1000;
    ScanResult result;
    EXPECT_TRUE(absl::IsAborted(client.Await((*remote)->Nearest({.x = 0, .y = 0, .count = 3}, &result))));
    EXPECT_TRUE(result.entries.empty());
    EXPECT_TRUE(result.witnesses.empty());
  }
  node->Shutdown();
}

// What a search returns by READs and what by calls is the same, and the statistics say how it was made.
TEST_P(CatfishTest, ClientsSearchByReadsOrByCalls) {
  Start({.world = Rectangle{0, 0, 1, 1}});
  InsertMany(0, 5000);
  ClientThread client(cluster_.get());
  const auto search = [&](RemoteIndex* remote) {
    ScanResult result;
    const WindowQuery query{.window = {0.2, 0.2, 0.4, 0.4}, .at_one_moment = true};
    EXPECT_TRUE(client.Await(remote->Search(query, &result)).ok());
    return result.entries.size();
  };
  const auto by_reads = ConnectCatfish(client.channel(), 0, kId, {});
  const auto by_calls = ConnectCatfish(client.channel(), 0, kId, {.by_call = true});
  ASSERT_TRUE(by_reads.ok() && by_calls.ok());
  const size_t found = search(by_reads->get());
  EXPECT_GT(found, 100u);
  EXPECT_EQ(found, search(by_calls->get()));
  EXPECT_EQ((*by_reads)->statistics().one_sided, 1u);
  EXPECT_EQ((*by_reads)->statistics().fallbacks, 0u);
  EXPECT_EQ((*by_calls)->statistics().fallbacks, 1u);
  EXPECT_EQ((*by_calls)->statistics().leaves_read, 0u);
  // The root, then all its children that meet the window with one posting, then all leaves with a few, then the words.
  const uint64_t calls = client.channel()->counters().calls;
  const uint64_t round_trips = client.channel()->counters().round_trips;
  search(by_reads->get());
  EXPECT_EQ(client.channel()->counters().calls, calls);
  const uint64_t together = client.channel()->counters().round_trips - round_trips;
  EXPECT_LE(together, 5u);
  // One READ at a time takes a round trip for each node.
  const auto one_by_one = ConnectCatfish(client.channel(), 0, kId, {.reads_at_once = 1});
  ASSERT_TRUE(one_by_one.ok()) << one_by_one.status();
  EXPECT_EQ(found, search(one_by_one->get()));
  const uint64_t nodes = (*one_by_one)->statistics().leaves_read;
  EXPECT_GT(nodes, together);
  const uint64_t before = client.channel()->counters().round_trips;
  EXPECT_EQ(found, search(one_by_one->get()));
  EXPECT_EQ(client.channel()->counters().round_trips - before, nodes + 1);  // and the words
}

TEST(CatfishClientTest, WrongOptionsAreNamed) {
  for (const uint32_t reads : {0U, kMostCatfishReads + 1}) {
    const auto client = ConnectCatfish(nullptr, 0, kId, {.reads_at_once = reads});
    EXPECT_TRUE(absl::IsInvalidArgument(client.status())) << client.status();
    EXPECT_THAT(std::string(client.status().message()), HasSubstr("reads_at_once"));
  }
}

// Every operation of a client ends, even if the owner is hostile or an address is stale.
TEST(CatfishHostileTest, NoImageMakesAClientLoopOrCrash) {
  constexpr uint32_t kEntries = 8;
  constexpr size_t kNodes = 48;
  const catfish::NodeLayout layout(kEntries);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    IndexCluster cluster({});
    rdma::Node& node = *cluster.owner().node;
    std::byte* const blocks = *cluster.owner().slab->AllocateExtent(kNodes * layout.bytes + kLineBytes);
    const auto offset_of = [&](size_t i) { return node.AddressOf(blocks + i * layout.bytes).offset(); };
    const catfish::Description description{.node_entries = kEntries,
                                           .root = offset_of(0),
                                           .key_words = node.AddressOf(blocks + kNodes * layout.bytes).offset(),
                                           .key_word_count = 8};
    node.Handle(catfish::kDescribe, [&](rdma::NodeId, std::span<const std::byte>, std::span<std::byte> response) {
      rdma::WireWriter writer(response);
      catfish::PutDescription(writer, description);
      return writer.Finish();
    });
    const auto refuse = [](rdma::NodeId, std::span<const std::byte>, std::span<std::byte>) -> StatusOr<size_t> {
      return absl::InternalError("a hostile owner");
    };
    node.Handle(catfish::kSearch, refuse);
    node.Handle(catfish::kFind, refuse);
    Random random(seed);
    const auto any_target = [&](int level) -> uint64_t {
      switch (random.Below(12)) {
        case 0:
          return random();  // anywhere
        case 1:
          return node.memory().size() - kLineBytes;  // the end of the memory
        case 2:
          return offset_of(random.Below(kNodes)) + 8;  // in the middle of a line
        case 3:
          return 0;
        default:
          return level > 0 ? offset_of(random.Below(kNodes))
                           : rdma::GlobalAddress(static_cast<rdma::NodeId>(random.Below(2)), 1 << 20).bits();
      }
    };
    const rdma::GlobalAddress record(0, 1 << 20);
    const bool deep = seed % 3 == 0;  // a graph in which each level leads to many nodes of the next
    for (size_t i = 0; i < kNodes; ++i) {
      const catfish::Node at(blocks + i * layout.bytes, &layout);
      const int level = deep ? static_cast<int>(kNodes - i - 1) / 2 : static_cast<int>(random.Below(4));
      StoreWord(at.at(), rdma::kLockBit);
      at.Begin();
      at.Set(catfish::NodeHead{.level = static_cast<uint8_t>(level),
                               .dead = !deep && i > 0 && random.OneIn(20),
                               .count = static_cast<uint16_t>(deep ? kEntries : random.Below(kEntries + 2))});
      for (size_t e = 0; e < kEntries; ++e) {
        Rectangle box = Rectangle::Everything();
        if (random.OneIn(6)) std::memset(static_cast<void*>(&box), static_cast<int>(random.Below(256)), sizeof box);
        const size_t below = std::min(kNodes - 1, i + 2 - i % 2 + random.Below(2));
        at.Set(e, {.box = deep ? Rectangle::Everything() : box,
                   .id = random.Below(3),
                   .target = !deep       ? any_target(level)
                             : level > 0 ? offset_of(below)
                                         : record.bits()});
      }
      at.Publish(random.OneIn(20) ? random() & ~rdma::kLockBit : 1 + random.Below(3));
    }
    cluster.Serve();
    ClientThread client(&cluster);
    const auto remote = ConnectCatfish(client.channel(), 0, kId, {});
    ASSERT_TRUE(remote.ok());
    for (const bool at_one_moment : {false, true}) {
      ScanResult result;
      const Status status =
          client.Await((*remote)->Search({.window = {0, 0, 1, 1}, .at_one_moment = at_one_moment}, &result));
      EXPECT_TRUE(status.ok() || absl::IsInternal(status)) << status;
      for (const index::Entry& entry : result.entries) EXPECT_TRUE(DecodeRectangleKey(entry.key.view()).ok());
    }
    const RectangleKeyBytes key({Rectangle::Everything(), 1});
    const auto found = client.Await((*remote)->Find(key.view()));
    EXPECT_TRUE(found.ok() || absl::IsInternal(found.status())) << found.status();
    node.Shutdown();
  }
}

// Responses of a hostile owner.
TEST(CatfishHostileTest, NoResponseMakesAClientLoopOrCrash) {
  Random random(9);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes(random.Below(200));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.OneIn(3) ? random() : random.Below(3));
    rdma::WireReader reader(bytes);
    ScanResult result;
    if (catfish::GetResult(reader, 0, &result)) {
      for (const index::Entry& entry : result.entries) EXPECT_TRUE(DecodeRectangleKey(entry.key.view()).ok());
    }
    const auto description = catfish::GetDescription(bytes);
    if (description.ok()) {
      EXPECT_LE(description->node_entries, kMaxCatfishNodeEntries);
    }
  }
}

}  // namespace catfish_test
}  // namespace gannet::index
