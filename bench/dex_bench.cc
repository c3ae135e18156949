// How much slower is a lookup in DEX's page cache than one in a tree in local memory (VLDB'24, 8.3)? Two nodes on
// shared memory, one thread. The argument: number of keys, of 8 bytes, with values of 8 bytes in the entries; the
// lookups are of random keys that exist.
//
//   InBTree       absl::btree_map
//   XStoreTree    the B+-tree of XStore's owner, by its CPU
//   AtTheOwner    the B-link tree of DEX's owner, by its CPU
//   InClaims      another node's copies of leaves that it has claimed: no verb
//   InKeptLeaves  copies of leaves that it keeps
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "base/check.h"
#include "base/random.h"
#include "index/claim_boards.h"
#include "index/dex/dex.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "index/shared_leaf/leaf_index.h"
#include "index/xstore/xstore.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

using shared_leaf::ClaimHolder;
using shared_leaf::Keeping;

constexpr IndexId kId = 1;
constexpr size_t kCacheBytes = size_t{256} << 20;

template <class T>
T Checked(StatusOr<T> made) {
  GANNET_CHECK(made.ok(), "%s", made.status().ToString());
  return *std::move(made);
}

uint64_t KeyOf(uint64_t i) {
  return Mix64(i) >> 1;
}

// A value of 8 bytes, in the place of a record's address.
rdma::GlobalAddress ValueOf(uint64_t i) {
  return rdma::GlobalAddress(0, 64 * (i + 1));
}

struct World {
  explicit World(uint64_t keys, bool xstore = false) : cluster({.bytes_per_node = uint64_t{1} << 30}) {
    IndexService* const service = cluster.owner().service.get();
    RegisterDexMethods(service);
    index = xstore ? std::unique_ptr<LocalIndex>(Checked(XStore::Create(service, kId, {})))
                   : Checked(CreateDex(service, kId, KeyKind::kInteger));
    cluster.Serve();
    cluster.StartEpochs();
    owner = std::make_unique<OwnerThread>(&cluster);
    client = std::make_unique<ClientThread>(&cluster);
    std::vector<LoadEntry> entries;
    for (uint64_t i = 0; i < keys; ++i) entries.push_back({Key(KeyOf(i)), ValueOf(i)});
    std::ranges::sort(entries, [](const LoadEntry& a, const LoadEntry& b) { return a.key < b.key; });
    EpochGuard guard(owner->epoch());
    const Status loaded = index->BulkLoad(owner->context(), entries, 0.9);
    GANNET_CHECK(loaded.ok(), "%s", loaded.ToString());
  }
  ~World() { cluster.owner().node->Shutdown(); }

  // All leaves are the client's to claim, or to keep.
  void Connect(Keeping keeping) {
    rdma::Node* const node = cluster.client().node.get();
    rdma::SlabCache slab(cluster.client().slab.get());
    claims = std::make_unique<ClaimHolder>(node, Checked(slab.Allocate(kBoardBytes)), 1);
    claims->set_keeping(keeping);
    pages = MakeDexCache(kCacheBytes);
    const Status set = dynamic_cast<shared_leaf::AnyLeafIndex&>(*index).SetClaimRanges(
        {{.first = OwnedKey(Key(uint64_t{0})), .node = node->id()}});
    GANNET_CHECK(set.ok(), "%s", set.ToString());
    const DexClientOptions options{.shared = pages, .node = node, .values_in_entries = true, .claims = claims.get()};
    remote = Checked(ConnectDex(client->channel(), 0, kId, options));
  }

  IndexCluster cluster;
  std::unique_ptr<LocalIndex> index;
  std::unique_ptr<OwnerThread> owner;
  std::unique_ptr<ClientThread> client;
  std::unique_ptr<ClaimHolder> claims;
  std::shared_ptr<dex::SharedPages> pages;
  std::unique_ptr<RemoteIndex> remote;
};

void InBTree(benchmark::State& state) {
  const auto keys = static_cast<uint64_t>(state.range(0));
  absl::btree_map<uint64_t, uint64_t> tree;
  for (uint64_t i = 0; i < keys; ++i) tree[KeyOf(i)] = i + 1;
  Random random(1);
  for (auto _ : state) benchmark::DoNotOptimize(tree.find(KeyOf(random.Below(keys)))->second);
}

void FindAtTheOwner(benchmark::State& state, bool xstore) {
  const auto keys = static_cast<uint64_t>(state.range(0));
  World world(keys, xstore);
  EpochGuard guard(world.owner->epoch());
  Random random(1);
  for (auto _ : state) benchmark::DoNotOptimize(world.index->Find(Key(KeyOf(random.Below(keys)))).record);
}
void XStoreTree(benchmark::State& state) {
  FindAtTheOwner(state, true);
}
void AtTheOwner(benchmark::State& state) {
  FindAtTheOwner(state, false);
}

coro::Task<void> FindAll(World* world, uint64_t keys) {
  for (uint64_t i = 0; i < keys; ++i) {
    coro::Async<StatusOr<FindResult>> find = world->remote->Find(Key(KeyOf(i)));
    const StatusOr<FindResult> found = co_await find;
    GANNET_CHECK(found.ok() && found->record == ValueOf(i), "key %d", i);
  }
}

coro::Task<void> FindRandom(World* world, uint64_t keys, benchmark::State* state) {
  Random random(1);
  for (auto _ : *state) {
    coro::Async<StatusOr<FindResult>> find = world->remote->Find(Key(KeyOf(random.Below(keys))));
    const StatusOr<FindResult> found = co_await find;
    benchmark::DoNotOptimize(found->record);
  }
}

void InCopies(benchmark::State& state, Keeping keeping) {
  const auto keys = static_cast<uint64_t>(state.range(0));
  World world(keys);
  world.Connect(keeping);
  EpochGuard guard(world.client.get());
  coro::Worker& worker = *world.client->worker();
  for (int i = 0; i < 2; ++i) worker.BlockOn(FindAll(&world, keys));
  const rdma::VerbCounters before = world.client->channel()->counters();
  worker.BlockOn(FindRandom(&world, keys, &state));
  const rdma::VerbCounters used = world.client->channel()->counters() - before;
  state.counters["reads_per_lookup"] = static_cast<double>(used.reads) / static_cast<double>(state.iterations());
}
void InClaims(benchmark::State& state) {
  InCopies(state, Keeping::kNone);
}
void InKeptLeaves(benchmark::State& state) {
  InCopies(state, Keeping::kWriteBack);
}

BENCHMARK(InBTree)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(XStoreTree)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(AtTheOwner)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(InClaims)->Arg(100'000)->Arg(1'000'000);
BENCHMARK(InKeptLeaves)->Arg(100'000)->Arg(1'000'000);

}  // namespace
}  // namespace gannet::index

BENCHMARK_MAIN();
