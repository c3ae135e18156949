// Inner nodes of Dolphin (index/dolphin/art.h): the ways that they lead, against a map of low fences; their changes by
// clients of three nodes of a simulation at once, with verbs that fail and nodes that die; nodes with any content;
// clients' cache; and the memory that they take for each key.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/coro/worker.h"
#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/backoff.h"
#include "index/dolphin/art.h"
#include "index/dolphin/art_cache.h"
#include "index/dolphin/art_editor.h"
#include "index/dolphin/dolphin.h"
#include "index/dolphin/inner_node.h"
#include "index/dolphin/own_art.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/shared_leaves.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/slab.h"

namespace gannet::index {
namespace dolphin_art_test {

using dolphin::ArtCache;
using dolphin::ArtEditor;
using dolphin::ArtKeyOf;
using dolphin::ArtLeaf;
using dolphin::ArtWay;
using dolphin::ByteKey;
using dolphin::kLargestNode;
using dolphin::kSmallestNode;
using dolphin::LeafLook;
using dolphin::NodeImage;
using dolphin::NodeRef;
using dolphin::NodeType;
using dolphin::OwnArt;
using shared_leaf::FreeBlock;
using shared_leaf::LeafBlocks;
using shared_leaf::LeafChannel;

constexpr rdma::NodeId kOwner = 0;
constexpr rdma::NodeId kNodes = 4;
constexpr uint64_t kPatienceNanos = 50'000'000;

// What caches for clients of an index of either kind of keys look like.
using SharedArt = shared_leaf::SharedLeavesOf<dolphin::ArtCacheOf>;

template <class T>
T Must(StatusOr<T> result) {
  GANNET_CHECK(result.ok(), "%s", result.status().ToString());
  return std::move(*result);
}

// --- Keys ---

struct KeySource {
  const char* name;
  size_t max_bytes;
  ByteKey (*next)(Random* random);
};
ByteKey DenseKey(Random* random) {
  return ArtKeyOf(random->Below(3000) * 16 + 1);
}
ByteKey RandomKey(Random* random) {
  return ArtKeyOf((*random)());
}
// As separators that are cut where that is enough.
ByteKey ShortKey(Random* random) {
  return ArtKeyOf((*random)() << (40 + 8 * random->Below(3)));
}
ByteKey Name(Random* random) {
  static constexpr const char* kParts[] = {"smith", "smit", "johnson", "john", "a", "the street of ", "", "\xff", "zz"};
  std::string name = "customers/";
  for (uint64_t n = random->Below(5); n > 0; --n) name += kParts[random->Below(std::size(kParts))];
  return ByteKey(name.substr(random->OneIn(4) ? 9 : 0, 40));
}
// Many are prefixes of others; with zeros, which are less than all other bytes.
ByteKey Prefix(Random* random) {
  std::string key;
  for (uint64_t n = random->Below(8); n > 0; --n) key.push_back(static_cast<char>(random->Below(3) * 127));
  return ByteKey(key);
}
ByteKey LongKey(Random* random) {
  std::string key(40 + random->Below(25), 'k');
  for (uint64_t n = 1 + random->Below(3); n > 0; --n) {
    key[random->Below(key.size())] = static_cast<char>(random->Below(4) + 'j');
  }
  return ByteKey(key);
}
constexpr KeySource kSources[] = {{"dense integers", 8, DenseKey},   {"random integers", 8, RandomKey},
                                  {"short separators", 8, ShortKey}, {"names", 40, Name},
                                  {"prefixes", 8, Prefix},           {"64 bytes", 64, LongKey}};

// --- The world ---

class World {
 public:
  explicit World(size_t max_key_bytes, uint64_t seed = 1, const rdma::sim::Faults& faults = {},
                 uint64_t bytes = 32 << 20)
      : simulation_({.seed = seed, .faults = faults}),
        fabric_(Must(rdma::sim::SimFabric::Create(
            &simulation_, {.num_nodes = kNodes, .bytes_per_node = bytes, .detection_nanos = 500'000}))) {
    for (rdma::NodeId id = 0; id < kNodes; ++id) nodes_[id] = Must(fabric_->Attach(id));
    slab_ = std::make_unique<rdma::SlabAllocator>(nodes_[kOwner].get());
    cache_ = std::make_unique<rdma::SlabCache>(slab_.get());
    context_ = {.slab = cache_.get(), .epoch = nullptr};
    leaves_ = std::make_unique<LeafBlocks>(fabric_.get(), nodes_[kOwner].get(),
                                           shared_leaf::LeafFormat{.bytes = kLineBytes}, IndexRights::kClients);
    art_ = std::make_unique<OwnArt>(fabric_.get(), nodes_[kOwner].get(), max_key_bytes, IndexRights::kClients);
    model_[ByteKey()] = NewLeaf();
    first_ = model_.begin()->second;
    const Status made = art_->MakeRoot(context_, first_);
    GANNET_CHECK(made.ok(), "%s", made.ToString());
  }
  ~World() {
    for (auto& node : nodes_) node->Shutdown();
    art_->Close(*cache_);
    leaves_->Close(*cache_);
  }

  rdma::GlobalAddress NewLeaf() { return Must(leaves_->Take(context_)).address; }
  std::byte* At(rdma::GlobalAddress at) const { return nodes_[kOwner]->memory().data() + at.offset(); }
  std::vector<ArtLeaf> Leaves() const {
    std::vector<ArtLeaf> leaves;
    for (const auto& [low, leaf] : model_) leaves.push_back({low, leaf});
    return leaves;
  }
  // The leaf of a key, or of the keys right below it; null: there is none.
  rdma::GlobalAddress LeafOf(const ByteKey& key, bool below = false) const {
    auto at = below ? model_.lower_bound(key) : model_.upper_bound(key);
    return at == model_.begin() ? rdma::GlobalAddress() : std::prev(at)->second;
  }
  ByteKey LowOf(rdma::GlobalAddress leaf) const {
    for (const auto& [low, at] : model_) {
      if (at == leaf) return low;
    }
    return ByteKey("there is no such leaf");
  }
  rdma::GlobalAddress OwnWay(const ByteKey& key, bool below = false) const {
    ArtWay way(art_->root(), key.view(), below);
    art_->Go(&way);
    return way.step() == ArtWay::Step::kFound ? way.leaf() : rdma::GlobalAddress();
  }
  // Every leaf is where its way leads, and no block is lost.
  void ExpectExact(const std::string& what) const {
    const auto check = art_->CheckAll(Leaves());
    ASSERT_TRUE(check.ok()) << what << ": " << check.status();
    ASSERT_EQ(check->wrong, 0u) << what;
    ASSERT_EQ(check->missed, 0u) << what;
    ASSERT_EQ(check->entries, model_.size()) << what;
  }
  // Runs on a thread of a node.
  void Run(rdma::NodeId node, std::function<void()> body) {
    simulation_.Join(simulation_.StartOn(node, "run", std::move(body)));
  }

  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::array<std::unique_ptr<rdma::Node>, kNodes> nodes_;
  std::unique_ptr<rdma::SlabAllocator> slab_;
  std::unique_ptr<rdma::SlabCache> cache_;
  Context context_;
  std::unique_ptr<LeafBlocks> leaves_;
  std::unique_ptr<OwnArt> art_;
  std::map<ByteKey, rdma::GlobalAddress> model_;  // leaves by low fence
  rdma::GlobalAddress first_;
  // Blocks of types that were lent to nodes, and those that they have returned: the owner's thread exchanges them.
  std::array<std::array<std::vector<FreeBlock>, dolphin::kNodeTypes>, kNodes> lent_;
  std::array<std::vector<FreeBlock>, dolphin::kNodeTypes> returned_;

  void ExchangeBlocks() {
    for (NodeType type = kSmallestNode; type <= kLargestNode; ++type) {
      const size_t pool = type - kSmallestNode;
      for (const FreeBlock& block : std::exchange(returned_[pool], {})) art_->pool(type).Return(block);
      for (rdma::NodeId node = 1; node < kNodes; ++node) {
        while (lent_[node][pool].size() < 8 && fabric_->Runs(node)) {
          lent_[node][pool].push_back(art_->pool(type).Lend(context_, node, 1)[0]);
        }
      }
    }
  }
};

// The owner's blocks, taken at once.
class OwnSource final : public shared_leaf::BlockSource {
 public:
  OwnSource(World* world, NodeType type) : world_(world), blocks_(&world->art_->pool(type)) {}
  coro::Task<StatusOr<FreeBlock>> Take(uint64_t) override { co_return blocks_->Take(world_->context_); }
  void PutBack(const FreeBlock& block) override { blocks_->PutBack(block); }
  coro::Task<void> Return(FreeBlock block) override {
    blocks_->Return(block);
    co_return;
  }

 private:
  World* world_;
  LeafBlocks* blocks_;
};
// Those of the clients of a node, which the owner's thread lends: a thread that dies must not hold a lock of the owner.
class LentSource final : public shared_leaf::BlockSource {
 public:
  LentSource(World* world, rdma::NodeId node, NodeType type)
      : stock_(world->lent_[node][type - kSmallestNode]), returned_(world->returned_[type - kSmallestNode]) {}
  coro::Task<StatusOr<FreeBlock>> Take(uint64_t) override {
    Patience patience(kPatienceNanos);
    while (stock_.empty()) {
      if (!patience.Pause()) co_return absl::ResourceExhaustedError("no block");
      SleepForNanos(10'000);
    }
    const FreeBlock block = stock_.back();
    stock_.pop_back();
    co_return block;
  }
  void PutBack(const FreeBlock& block) override { stock_.push_back(block); }
  coro::Task<void> Return(FreeBlock block) override {
    returned_.push_back(block);
    co_return;
  }

 private:
  std::vector<FreeBlock>& stock_;
  std::vector<FreeBlock>& returned_;
};

// An editor, and ways through its cache. At the owner, by its CPU.
class Client final : public dolphin::ArtWatch {
 public:
  Client(World* world, rdma::NodeId node, size_t max_key_bytes, size_t cache_bytes = 0)
      : world_(world),
        shared_(cache_bytes),
        view_(&shared_),
        channel_(Must(world->nodes_[node]->OpenChannel())),
        leaves_(channel_.get(), world->nodes_[node].get(), kOwner, absl::Nanoseconds(kPatienceNanos), 0,
                node == kOwner ? world->leaves_.get() : nullptr) {
    for (NodeType type = kSmallestNode; type <= kLargestNode; ++type) {
      if (node == kOwner) {
        sources_[type - kSmallestNode] = std::make_unique<OwnSource>(world, type);
      } else {
        sources_[type - kSmallestNode] = std::make_unique<LentSource>(world, node, type);
      }
    }
    editor_ = std::make_unique<ArtEditor>(
        &leaves_, world->art_->root(), max_key_bytes,
        ArtEditor::BlockSources{sources_[0].get(), sources_[1].get(), sources_[2].get(), sources_[3].get()},
        cache_bytes == 0 ? nullptr : this);
    worker_.AddPoller([this] { return channel_->Poll(); });
  }

  void NoteNode(const NodeImage& node) override { Changing()->Put(node); }
  void NoteDead(rdma::GlobalAddress node) override { Changing()->Drop(node); }
  void NoteEntry(rdma::GlobalAddress node, uint64_t entry) override { Changing()->NoteEntry(node, entry); }
  void NoteNoEntry(rdma::GlobalAddress node, uint64_t entry) override { Changing()->NoteNoEntry(node, entry); }

  bool Add(const ByteKey& low, rdma::GlobalAddress leaf) {
    return worker_.BlockOn(editor_->AddLeaf(low, leaf, Start(low)));
  }
  bool Remove(const ByteKey& low, rdma::GlobalAddress leaf) {
    return worker_.BlockOn(editor_->RemoveLeaf(low, leaf, Start(low)));
  }
  bool RemoveEntry(const NodeRef& node, uint64_t entry) { return worker_.BlockOn(editor_->RemoveEntry(node, entry)); }
  StatusOr<LeafLook> Read(const NodeRef& node, NodeImage* image) { return worker_.BlockOn(editor_->Read(node, image)); }
  // By copies as far as they lead. False: the owner cannot be reached.
  bool Go(ArtWay* way) {
    NodeImage image;
    while (!SharedArt::Reading<shared_leaf::IntegerKeys>(view_)->Go(way)) {
      const StatusOr<LeafLook> look = Read(way->next(), &image);
      if (!look.ok()) return false;
      ++reads_;
      if (*look == LeafLook::kWhole) {
        way->Take(image, /*is_fresh=*/true);
      } else {
        way->Miss();
      }
    }
    return true;
  }
  const rdma::VerbCounters& counters() const { return channel_->counters(); }
  uint64_t reads() const { return reads_; }
  SharedArt::Reading<shared_leaf::IntegerKeys> Reading() { return SharedArt::Reading<shared_leaf::IntegerKeys>(view_); }
  SharedArt::Changing<shared_leaf::IntegerKeys> Changing() {
    return SharedArt::Changing<shared_leaf::IntegerKeys>(view_);
  }
  uint64_t cache_bytes() const { return shared_.bytes(); }

 private:
  std::optional<NodeRef> Start(const ByteKey& low) { return Reading()->DeepestFor(world_->art_->root(), low.view()); }

  World* world_;
  SharedArt shared_;
  SharedArt::View<shared_leaf::IntegerKeys> view_;
  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  LeafChannel leaves_;
  std::array<std::unique_ptr<shared_leaf::BlockSource>, dolphin::kNodeTypes> sources_;
  std::unique_ptr<ArtEditor> editor_;
  uint64_t reads_ = 0;
};

// A split, or an absorb, at a key: the change of the model, and then that of the tree.
bool Split(World* world, Client* client, const ByteKey& low) {
  const auto [at, is_new] = world->model_.try_emplace(low);
  if (!is_new) return true;
  at->second = world->NewLeaf();
  return client->Add(low, at->second);
}
bool Absorb(World* world, Client* client, const ByteKey& key) {
  const auto at = world->model_.upper_bound(key);
  if (at == world->model_.end()) return true;
  const auto [low, leaf] = *at;
  world->model_.erase(at);
  return client->Remove(low, leaf);
}

// --- One at a time ---

TEST(DolphinArt, IntegersKeepTheirOrderAsBytes) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t a = random() >> random.Below(64) << random.Below(64);
    const uint64_t b = random.OneIn(3) ? a + 1 : random() >> random.Below(64);
    EXPECT_EQ(ArtKeyOf(a) < ArtKeyOf(b), a < b) << a << " " << b;
    EXPECT_EQ(dolphin::IntegerOf(ArtKeyOf(a).view()), a);
  }
  EXPECT_EQ(ArtKeyOf(0).size(), 0u);
  EXPECT_EQ(ArtKeyOf(uint64_t{3} << 56).size(), 1u);
}

void ExpectWays(const World& world, Random* random, const KeySource& source, int keys) {
  for (int i = 0; i < keys; ++i) {
    const ByteKey key = source.next(random);
    ASSERT_EQ(world.OwnWay(key), world.LeafOf(key)) << source.name;
    ASSERT_EQ(world.OwnWay(key, /*below=*/true), world.LeafOf(key, /*below=*/true)) << source.name;
    ArtWay way(world.art_->root(), key.view());
    world.art_->Go(&way);
    ASSERT_EQ(way.step(), ArtWay::Step::kFound);
    ASSERT_FALSE(way.misled().has_value());
    ASSERT_EQ(world.model_.at(way.low()), way.leaf()) << "the entry says what the low fence is";
    auto at = world.model_.find(way.low());
    for (int left = 0; left < 3; ++left) {
      way.GoLeft();
      world.art_->Go(&way);
      if (at == world.model_.begin()) {
        ASSERT_EQ(way.step(), ArtWay::Step::kNone);
        break;
      }
      ASSERT_EQ(way.leaf(), (--at)->second) << source.name;
    }
  }
}

TEST(DolphinArt, SplitsAndAbsorbsLeadEveryKeyToItsLeaf) {
  for (const KeySource& source : kSources) {
    SCOPED_TRACE(source.name);
    World world(source.max_bytes);
    world.Run(kOwner, [&] {
      Client client(&world, kOwner, source.max_bytes);
      Random random(7);
      for (int step = 0; step < 1500; ++step) {
        const bool shrinks = step % 700 >= 450;
        if (random.Below(10) < (shrinks ? 2 : 7)) {
          ASSERT_TRUE(Split(&world, &client, source.next(&random)));
        } else {
          ASSERT_TRUE(Absorb(&world, &client, source.next(&random)));
        }
        ExpectWays(world, &random, source, 2);
        if (step % 50 == 0) world.ExpectExact(source.name);
        if (::testing::Test::HasFatalFailure()) return;
      }
      world.ExpectExact(source.name);
      while (world.model_.size() > 1) ASSERT_TRUE(Absorb(&world, &client, ByteKey()));
      world.ExpectExact(source.name);
      for (NodeType type = kSmallestNode; type <= kLargestNode; ++type) {
        EXPECT_EQ(world.art_->pool(type).counts().lent, type == kLargestNode ? 1u : 0u) << "empty nodes go";
      }
    });
  }
}

TEST(DolphinArt, NodesGrowThroughAllTypes) {
  World world(8);
  world.Run(1, [&] {
    Client client(&world, 1, 8);
    Random random(1);
    std::vector<int> bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.push_back(byte);
    std::shuffle(bytes.begin(), bytes.end(), random);
    const std::map<size_t, NodeType> types = {{2, 1}, {7, 1}, {8, 2}, {14, 2}, {15, 3}, {56, 3}, {57, 4}, {256, 4}};
    for (size_t n = 1; n <= bytes.size(); ++n) {
      world.ExchangeBlocks();
      ASSERT_TRUE(Split(&world, &client, ByteKey(std::string("ab") + static_cast<char>(bytes[n - 1]))));
      if (!types.contains(n)) continue;
      NodeType type = 0;
      ASSERT_TRUE(world.art_
                      ->ForEachNode([&](const NodeImage& node) {
                        if (!node.prefix().empty()) type = node.type();
                      })
                      .ok());
      EXPECT_EQ(type, types.at(n)) << n;
    }
    ASSERT_TRUE(Split(&world, &client, ByteKey("ab")));
    world.ExchangeBlocks();
    world.ExpectExact("all bytes");
    const rdma::VerbCounters before = client.counters();
    ASSERT_TRUE(Split(&world, &client, ByteKey("zz")));
    const rdma::VerbCounters verbs = client.counters() - before;
    EXPECT_EQ(verbs.round_trips, 2u) << "a READ of the root, and the CAS";
    EXPECT_EQ(verbs.compare_and_swaps, 1u);
  });
}

TEST(DolphinArt, ABulkLoadedTreeIsThatOfTheSplits) {
  for (const KeySource& source : kSources) {
    World world(source.max_bytes);
    world.Run(kOwner, [&] {
      Random random(3);
      for (int i = 0; i < 2000; ++i) {
        const auto [at, is_new] = world.model_.try_emplace(source.next(&random));
        if (is_new) at->second = world.NewLeaf();
      }
      ASSERT_TRUE(world.art_->Build(world.context_, world.Leaves()).ok());
      world.ExpectExact(source.name);
      ExpectWays(world, &random, source, 200);
      Client client(&world, kOwner, source.max_bytes);
      for (int i = 0; i < 300; ++i) {
        ASSERT_TRUE(Split(&world, &client, source.next(&random)));
        ASSERT_TRUE(Absorb(&world, &client, source.next(&random)));
      }
      world.ExpectExact(source.name);
    });
  }
}

// --- At once ---

struct Tally {
  uint64_t changes = 0;
  uint64_t given_up = 0;
  uint64_t deaths = 0;
  uint64_t missed = 0;
  uint64_t wrong = 0;
  size_t most_detours = 0;
};

struct Death {
  rdma::NodeId node = 0;  // 0: none
  uint64_t verbs = 0;
};

class Trial {
 public:
  Trial(uint64_t seed, const KeySource& source, const rdma::sim::Faults& faults, const Death& death = {})
      : seed_(seed), source_(source), death_(death), world_(source.max_bytes, seed, faults) {}

  // What is wrong, or nothing.
  std::string Go(Tally* tally) {
    world_.ExchangeBlocks();
    if (death_.node != 0) world_.fabric_->KillAfterVerbs(death_.node, death_.verbs);
    std::vector<Runtime::Thread*> threads;
    for (uint64_t i = 0; i < 5; ++i) {
      const auto node = static_cast<rdma::NodeId>(1 + i % 3);
      threads.push_back(world_.simulation_.StartOn(node, "work", [this, node, i, tally] { Work(node, i, tally); }));
    }
    Runtime::Thread* const owner = world_.simulation_.StartOn(kOwner, "owner", [this] { Own(); });
    for (Runtime::Thread* const thread : threads) world_.simulation_.Join(thread);
    has_died_ = death_.node != 0 && !world_.fabric_->Runs(death_.node);
    tally->deaths += has_died_ ? 1 : 0;
    is_over_ = true;
    world_.simulation_.Join(owner);
    world_.simulation_.SetFaults({});
    world_.Run(kOwner, [this, tally] { Check(tally); });
    return wrong_;
  }

 private:
  void Note(const std::string& what) {
    if (wrong_.empty() && !what.empty()) wrong_ = absl::StrCat("seed ", seed_, ": ", what);
  }

  // The leaf of a low fence has one user at a time. After a change that was given up it stays his.
  void Work(rdma::NodeId node, uint64_t number, Tally* tally) {
    Client client(&world_, node, source_.max_bytes, number % 2 == 0 ? 1 << 16 : 0);
    Random random(seed_ * 16 + number);
    for (int i = 0; i < 50; ++i) {
      const ByteKey key = source_.next(&random);
      const bool splits = random.Below(10) < (i % 20 < 12 ? 8u : 2u);
      const auto at = splits ? world_.model_.end() : world_.model_.upper_bound(key);
      if (!splits && at == world_.model_.end()) continue;
      const ByteKey low = splits ? key : at->first;
      if (low.size() == 0 || std::exchange(taken_[low], true)) continue;
      bool done = true;
      const auto known = world_.model_.find(low);
      if (splits && known == world_.model_.end()) {
        const rdma::GlobalAddress leaf = world_.NewLeaf();
        world_.model_[low] = leaf;
        done = client.Add(low, leaf);
      } else if (!splits) {
        const rdma::GlobalAddress leaf = known->second;
        world_.model_.erase(known);
        done = client.Remove(low, leaf);
      }
      ++tally->changes;
      tally->given_up += done ? 0 : 1;
      taken_[low] = !done;
    }
  }

  void Own() {
    while (!is_over_ || (has_died_ && !is_repaired_)) {
      world_.ExchangeBlocks();
      const bool has_died = death_.node != 0 && !world_.fabric_->Runs(death_.node);
      if (has_died && !is_repaired_ && world_.nodes_[kOwner]->ConnectionTo(death_.node) == 0) {
        const Status repaired = world_.art_->RepairAfter(death_.node);
        if (!repaired.ok()) Note(repaired.ToString());
        is_repaired_ = true;
      }
      SleepForNanos(50'000);
    }
    world_.ExchangeBlocks();
  }

  // How many leaves a reader looks at that are not the one of the key. It goes left from a leaf that begins behind the
  // key, or is none, and right from one that ends before it.
  size_t Detours(const ByteKey& key) {
    const rdma::GlobalAddress leaf = world_.LeafOf(key);
    ArtWay way(world_.art_->root(), key.view());
    world_.art_->Go(&way);
    size_t detours = 0;
    for (; way.step() == ArtWay::Step::kFound && detours < 1000; ++detours) {
      if (way.leaf() == leaf) return detours;
      const ByteKey low = way.low();
      const auto at = world_.model_.find(low);
      if (at != world_.model_.end() && at->second == way.leaf() && low <= key) {
        return detours + static_cast<size_t>(std::distance(at, world_.model_.find(world_.LowOf(leaf))));
      }
      way.GoLeft();
      world_.art_->Go(&way);
    }
    return 1000;
  }

  void Check(Tally* tally) {
    const bool is_exact = tally->given_up == 0 && death_.node == 0;
    for (const auto& [low, leaf] : world_.model_) tally->most_detours = std::max(tally->most_detours, Detours(low));
    if (tally->most_detours >= 1000) Note("there is no way to a leaf");
    // What an editor has left that gave up.
    if (!is_exact) {
      const Status repaired = world_.art_->RepairAfter(/*client=*/63);
      if (!repaired.ok()) Note(repaired.ToString());
    }
    StatusOr<OwnArt::Check> check = world_.art_->CheckAll(world_.Leaves());
    if (!check.ok()) return Note(check.status().ToString());
    tally->missed += check->missed;
    tally->wrong += check->wrong;
    if (is_exact && check->missed > 0) Note(absl::StrCat(check->missed, " leaves are missed"));
    CheckBlocks();
    // Readers that meet a wrong leaf, or miss one, mend the tree.
    Client client(&world_, kOwner, source_.max_bytes);
    std::vector<std::pair<NodeRef, uint64_t>> wrong;
    const Status walked = world_.art_->ForEachNode([&](const NodeImage& node) {
      node.ForEach([&](uint64_t entry) {
        const NodeRef child = dolphin::ChildOf(entry, kOwner);
        if (child.type != dolphin::kLeafType) {
          NodeImage below;
          below.Expect(child, world_.art_->prefix_lines());
          const bool is_whole = dolphin::LoadNode(world_.At(child.address), &below) == LeafLook::kWhole;
          const ByteKey prefix = dolphin::LowOf(node.prefix(), entry);
          if (!is_whole || !below.prefix().starts_with(prefix.view())) wrong.push_back({node.ref(), entry});
          return;
        }
        const auto at = world_.model_.find(dolphin::LowOf(node.prefix(), entry));
        if (at == world_.model_.end() || at->second != child.address) wrong.push_back({node.ref(), entry});
      });
    });
    if (!walked.ok()) Note(walked.ToString());
    for (const auto& [node, entry] : wrong) client.RemoveEntry(node, entry);
    for (const auto& [low, leaf] : world_.model_) {
      if (world_.OwnWay(low) != leaf && !client.Add(low, leaf)) Note("a leaf cannot be added");
    }
    check = world_.art_->CheckAll(world_.Leaves());
    if (!check.ok()) return Note(check.status().ToString());
    if (check->missed + check->wrong > 0)
      Note(absl::StrCat("after mending ", check->missed, " are missed, ", check->wrong, " wrong"));
  }

  // All blocks are free, nodes of the tree, or in the stock of a node that lives.
  void CheckBlocks() {
    std::array<size_t, dolphin::kNodeTypes + 1> nodes{};
    const Status walked = world_.art_->ForEachNode([&nodes](const NodeImage& node) { ++nodes[node.type()]; });
    if (!walked.ok()) Note(walked.ToString());
    for (NodeType type = kSmallestNode; type <= kLargestNode; ++type) {
      LeafBlocks& pool = world_.art_->pool(type);
      for (rdma::NodeId node = 1; node < kNodes; ++node) {
        if (!world_.fabric_->Runs(node)) continue;
        auto& stock = world_.lent_[node][type - kSmallestNode];
        for (const FreeBlock& block : std::exchange(stock, {})) pool.GiveBack(node, block);
      }
      const LeafBlocks::Counts counts = pool.counts();
      const size_t used = counts.lent + counts.in_use;
      if (used != nodes[type]) {
        Note(absl::StrCat(used, " blocks of type ", static_cast<int>(type), " are in use, for ", nodes[type],
                          " nodes: ", counts.lent, " are lent"));
      }
    }
  }

  const uint64_t seed_;
  const KeySource& source_;
  const Death death_;
  World world_;
  std::map<ByteKey, bool> taken_;
  bool is_over_ = false;
  bool has_died_ = false;
  bool is_repaired_ = false;
  std::string wrong_;
};

rdma::sim::Faults RaceFaults() {
  return {.scatter_lines = 0.3,
          .scatter_nanos = 3000,
          .preempt = 0.02,
          .preempt_nanos = 8000,
          .slow_completion = 0.05,
          .slow_nanos = 20'000};
}

// More by hand: GANNET_DOLPHIN_SEEDS.
uint64_t Seeds(uint64_t seeds) {
  const char* const asked = std::getenv("GANNET_DOLPHIN_SEEDS");
  return asked == nullptr ? seeds : std::strtoull(asked, nullptr, 10);
}
const KeySource& SourceOf(uint64_t seed) {
  return kSources[seed % std::size(kSources)];
}

TEST(DolphinArt, ChangesOfThreeNodesLoseNothing) {
  Tally tally;
  for (uint64_t seed = 1; seed <= Seeds(420); ++seed) {
    ASSERT_EQ(Trial(seed, SourceOf(seed), RaceFaults()).Go(&tally), "") << SourceOf(seed).name;
    ASSERT_EQ(tally.given_up, 0u) << "seed " << seed << ", " << SourceOf(seed).name;
  }
  // An entry may be carried over to the copy of its node after a removal has looked for it there.
  EXPECT_LT(tally.wrong, tally.changes / 1000);
  EXPECT_LE(tally.most_detours, 1u);
  EXPECT_GT(tally.changes, Seeds(420) * 100);
  std::printf("%lu changes: %lu entries wrong\n", static_cast<unsigned long>(tally.changes),
              static_cast<unsigned long>(tally.wrong));
}

TEST(DolphinArt, VerbsThatFailCostDetours) {
  Tally tally;
  rdma::sim::Faults faults = RaceFaults();
  faults.disconnect = 0.01;
  for (uint64_t seed = 1; seed <= Seeds(90); ++seed) {
    ASSERT_EQ(Trial(seed, SourceOf(seed), faults).Go(&tally), "") << SourceOf(seed).name;
  }
  EXPECT_GT(tally.given_up, 20u);
  EXPECT_LT(tally.given_up, tally.changes / 10);
  EXPECT_LT(tally.most_detours, 30u);
  std::printf("%lu of %lu changes given up: %lu leaves missed, %lu entries wrong, at most %zu detours\n",
              static_cast<unsigned long>(tally.given_up), static_cast<unsigned long>(tally.changes),
              static_cast<unsigned long>(tally.missed), static_cast<unsigned long>(tally.wrong), tally.most_detours);
}

TEST(DolphinArt, DeathsAtAnyVerbCostDetoursAndNoBlock) {
  Tally tally;
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    const Death death{.node = static_cast<rdma::NodeId>(1 + seed % 3), .verbs = 1 + seed * 7 % 200};
    ASSERT_EQ(Trial(seed, SourceOf(seed / 3), RaceFaults(), death).Go(&tally), "") << "death at verb " << death.verbs;
  }
  EXPECT_GT(tally.deaths, Seeds(200) / 2);
  EXPECT_LT(tally.missed, 2 * tally.deaths);
  EXPECT_LT(tally.most_detours, 10u);
  std::printf("%lu deaths: %lu leaves missed, %lu entries wrong, at most %zu detours\n",
              static_cast<unsigned long>(tally.deaths), static_cast<unsigned long>(tally.missed),
              static_cast<unsigned long>(tally.wrong), tally.most_detours);
}

// A client that does not keep the rules can write anything into a node. Others come to an end of their ways, and change
// what they can.
TEST(DolphinArt, NodesWithAnyContentStopNobody) {
  uint64_t found = 0;
  uint64_t changed = 0;
  for (uint64_t seed = 1; seed <= Seeds(60); ++seed) {
    const KeySource& source = SourceOf(seed);
    World world(source.max_bytes, seed);
    world.Run(kOwner, [&] {
      Client own(&world, kOwner, source.max_bytes);
      Random random(seed);
      std::vector<NodeRef> nodes;
      for (int i = 0; i < 120; ++i) ASSERT_TRUE(Split(&world, &own, source.next(&random)));
      ASSERT_TRUE(world.art_->ForEachNode([&](const NodeImage& node) { nodes.push_back(node.ref()); }).ok());
      const auto damage = [&] {
        const NodeRef& node = nodes[random.Below(nodes.size())];
        const NodeRef& other = nodes[random.Below(nodes.size())];
        const size_t words = dolphin::NodeBytes(node.type, world.art_->prefix_lines()) / kWordBytes;
        const auto byte = static_cast<int>(random.Below(257));
        const NodeRef lie{other.address, static_cast<NodeType>(random.Below(5))};
        const std::array<uint64_t, 7> values = {
            random(),
            0,
            ~uint64_t{0},
            dolphin::EntryWord(other, byte),
            dolphin::EntryWord(lie, byte),
            dolphin::EntryWord({rdma::GlobalAddress(kOwner, random.Below(40 << 20) / 64 * 64), lie.type}, byte),
            dolphin::EntryWord({world.first_, dolphin::kLeafType}, byte, static_cast<int>(random.Below(257)))};
        // Seldom a word of the first line, without which no node is whole; and a prefix, which changes all below it.
        const size_t word = random.OneIn(10) ? random.Below(8) : 8 + random.Below(words - 8);
        if (word % 8 == 0 && !random.OneIn(5)) return;
        StoreWord(world.At(node.address) + word * kWordBytes, values[random.Below(values.size())]);
      };
      const auto run = [&](Client* client) {
        for (int i = 0; i < 25; ++i) {
          for (uint64_t n = random.Below(4); n > 0; --n) damage();
          const ByteKey key = source.next(&random);
          ArtWay way(world.art_->root(), key.view(), random.OneIn(3));
          ASSERT_TRUE(client->Go(&way));
          for (int left = 0; left < 4 && way.step() == ArtWay::Step::kFound; ++left) {
            ++found;
            way.GoLeft();
            ASSERT_TRUE(client->Go(&way));
          }
          std::vector<ArtCache::Leaf> leaves;
          client->Reading()->LeavesFrom(world.art_->root(), key.view(), false, random.OneIn(2), 16, &leaves);
          changed += client->Add(key, world.first_) ? 1 : 0;
          changed += client->Remove(key, world.first_) ? 1 : 0;
          world.OwnWay(key);
          static_cast<void>(world.art_->ForEachNode([](const NodeImage&) {}));
          world.ExchangeBlocks();
        }
      };
      Client copies(&world, kOwner, source.max_bytes, 1 << 16);
      run(&own);
      run(&copies);
      static_cast<void>(world.art_->RepairAfter(1));
    });
    world.ExchangeBlocks();
    world.Run(1, [&] {
      Client client(&world, 1, source.max_bytes, 1 << 16);
      Random random(seed);
      for (int i = 0; i < 60; ++i) {
        const ByteKey key = source.next(&random);
        ArtWay way(world.art_->root(), key.view());
        ASSERT_TRUE(client.Go(&way));
        changed += client.Add(key, world.first_) ? 1 : 0;
        world.ExchangeBlocks();
      }
    });
  }
  EXPECT_GT(found, 1000u);
  EXPECT_GT(changed, 1000u);
}

// --- The cache ---

// A client whose copies are stale notices by what it finds at the leaf, and then needs no copy.
TEST(DolphinArt, StaleCopiesLeadToEveryLeafAtTheSecondTry) {
  for (const KeySource& source : kSources) {
    World world(source.max_bytes);
    world.Run(1, [&] {
      Client writer(&world, 1, source.max_bytes);
      Client reader(&world, 1, source.max_bytes, 1 << 20);
      Random random(5);
      uint64_t detours = 0;
      for (int round = 0; round < 400; ++round) {
        world.ExchangeBlocks();
        for (int i = 0; i < 3; ++i) {
          ASSERT_TRUE(Split(&world, &writer, source.next(&random)));
          if (random.OneIn(2)) {
            ASSERT_TRUE(Absorb(&world, &writer, source.next(&random)));
          }
        }
        for (int i = 0; i < 4; ++i) {
          const ByteKey key = source.next(&random);
          ArtWay way(world.art_->root(), key.view());
          ASSERT_TRUE(reader.Go(&way));
          if (way.step() == ArtWay::Step::kFound && way.leaf() == world.LeafOf(key)) continue;
          ++detours;
          way.Again();
          ASSERT_TRUE(reader.Go(&way));
          ASSERT_EQ(way.leaf(), world.LeafOf(key)) << source.name;
        }
      }
      std::printf("%s: %lu of 1600 ways were stale, %lu READs\n", source.name, static_cast<unsigned long>(detours),
                  static_cast<unsigned long>(reader.reads()));
      EXPECT_LT(detours, 1200u) << source.name;
      EXPECT_LT(reader.reads(), 7000u) << source.name;
    });
  }
}

TEST(DolphinArt, TheCacheHasSixBytesPerEntryAndItsBound) {
  World world(8, 1, {}, 64 << 20);
  world.Run(1, [&] {
    Random random(9);
    for (int i = 0; i < 20'000; ++i) {
      const auto [at, is_new] = world.model_.try_emplace(RandomKey(&random));
      if (is_new) at->second = world.NewLeaf();
    }
    ASSERT_TRUE(world.art_->Build(world.context_, world.Leaves()).ok());
    const auto count_nodes = [&](ArtCache* cache) {
      size_t entries = 0;
      EXPECT_TRUE(world.art_
                      ->ForEachNode([&](const NodeImage& node) {
                        cache->Put(node);
                        entries += static_cast<size_t>(node.count());
                      })
                      .ok());
      return entries;
    };
    ArtCache all(size_t{1} << 30);
    const size_t entries = count_nodes(&all);
    EXPECT_LE(all.bytes(), 6 * entries + 32 * all.nodes() + 2 * 8192);
    const uint64_t full = all.bytes();
    count_nodes(&all);
    EXPECT_EQ(all.bytes(), full) << "copies are replaced";

    // All leaves in a row, forward and backward.
    const std::vector<ArtLeaf> leaves = world.Leaves();
    for (int i = 0; i < 200; ++i) {
      const ByteKey key = RandomKey(&random);
      std::vector<ArtCache::Leaf> found;
      all.LeavesFrom(world.art_->root(), key.view(), false, false, 16, &found);
      auto at = std::prev(world.model_.upper_bound(key));
      for (const ArtCache::Leaf& leaf : found) {
        ASSERT_EQ(leaf.address, at->second);
        ASSERT_EQ(leaf.low, at->first);
        ++at;
      }
      EXPECT_TRUE(found.size() == 16 || at == world.model_.end());
      found.clear();
      all.LeavesFrom(world.art_->root(), key.view(), false, true, 16, &found);
      at = world.model_.upper_bound(key);
      for (const ArtCache::Leaf& leaf : found) ASSERT_EQ(leaf.address, (--at)->second);
      EXPECT_TRUE(found.size() == 16 || at == world.model_.begin());
    }

    // A tenth of it, and none: the rest is READ.
    for (const size_t most : {size_t{20'000}, size_t{64}}) {
      Client client(&world, 1, 8, most);
      for (int i = 0; i < 2000; ++i) {
        const ByteKey key = RandomKey(&random);
        ArtWay way(world.art_->root(), key.view());
        ASSERT_TRUE(client.Go(&way));
        ASSERT_EQ(way.leaf(), world.LeafOf(key));
        ASSERT_LE(client.cache_bytes(), most);
      }
      EXPECT_LT(client.reads(), most > 64 ? 5000u : 10'000u) << "the root and large nodes stay";
    }
    for (const ArtLeaf& leaf : leaves) all.Drop(leaf.leaf);
    EXPECT_EQ(all.bytes(), full) << "those are no nodes";
    ASSERT_TRUE(world.art_->ForEachNode([&](const NodeImage& node) { all.Drop(node.address()); }).ok());
    EXPECT_EQ(all.nodes(), 0u);
  });
}

// --- Memory ---

struct Bytes {
  double server = 0;  // per key
  double client = 0;
};
// The inner nodes of leaves that were split at the shortest separator near their middle.
Bytes BytesOf(uint64_t keys, uint64_t least, uint64_t most, const std::function<uint64_t(Random*)>& gap) {
  World world(8, 1, {}, keys * 24 + (64 << 20));
  Bytes bytes;
  world.Run(kOwner, [&] {
    Random random(11);
    std::vector<ArtLeaf> leaves = world.Leaves();
    uint64_t key = 0;
    uint64_t border = 0;
    int border_shift = 0;  // zero bits at its end
    uint64_t left = least;
    for (uint64_t n = 0; n < keys; ++n) {
      const uint64_t before = key;
      key += gap(&random);
      if (--left > 4) continue;
      // One of five places: the last of those with the shortest separator.
      const int shift = (63 - std::countl_zero(key ^ before)) / 8 * 8;
      if (left == 4 || shift >= border_shift) {
        border = key >> shift << shift;
        border_shift = shift;
      }
      if (left > 0) continue;
      // They need no memory here.
      leaves.push_back({ArtKeyOf(border), world.first_ + leaves.size() * kLineBytes});
      left = least + random.Below(most - least + 1);
    }
    GANNET_CHECK(world.art_->Build(world.context_, leaves).ok(), "no memory");
    ArtCache cache(size_t{1} << 40);
    GANNET_CHECK(world.art_->ForEachNode([&](const NodeImage& node) { cache.Put(node); }).ok(), "damaged");
    bytes.server = static_cast<double>(world.art_->bytes()) / static_cast<double>(keys);
    bytes.client = static_cast<double>(cache.bytes()) / static_cast<double>(keys);
  });
  return bytes;
}

TEST(DolphinArt, InnerNodesTakeFewBytesPerKey) {
  const char* const asked = std::getenv("GANNET_DOLPHIN_KEYS");
  const uint64_t keys = asked == nullptr ? 300'000 : std::strtoull(asked, nullptr, 10);
  const double mean = 0.95 * static_cast<double>(UINT64_MAX) / static_cast<double>(keys);
  const Bytes random =
      BytesOf(keys, 10, 19, [mean](Random* by) { return 1 + static_cast<uint64_t>(-std::log(1 - by->Unit()) * mean); });
  const Bytes dense = BytesOf(keys, 25, 43, [](Random*) { return uint64_t{1}; });
  std::printf("%lu random keys in leaves of 21 slots: %.2f B per key at the owner, %.2f B in a cache\n",
              static_cast<unsigned long>(keys), random.server, random.client);
  std::printf("%lu dense keys in leaves of 49 slots:  %.2f B per key at the owner, %.2f B in a cache\n",
              static_cast<unsigned long>(keys), dense.server, dense.client);
  EXPECT_LT(random.server, 5.0);
  EXPECT_LT(random.client, 0.7);
  EXPECT_LT(dense.server, 1.0);
  EXPECT_LT(dense.client, 0.35);
}

TEST(DolphinOptionsTest, AsText) {
  EXPECT_EQ(ToText(DolphinOptions{}), "key_lines=3");
  EXPECT_EQ(DolphinOptionsOf("")->key_lines, 3u);
  EXPECT_EQ(DolphinOptionsOf("key_lines=7")->key_lines, 7u);
  for (const char* wrong : {"key_lines=0", "key_lines=10", "key_lines=-1", "key_lines=", "key_lines=x", "lines=3"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DolphinOptionsOf(wrong).status())) << wrong;
  }
}

}  // namespace dolphin_art_test
}  // namespace gannet::index
