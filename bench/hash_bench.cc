// What does a lookup, an insert or a removal in the hash index cost, at the owner and at a client over shared memory?
//
// One million 8-byte keys in random order, each with a 64-byte record of its own: 18 MB of buckets and 64 MB of
// records, so nearly every line that an operation needs is a miss of the private caches. items_per_second counts keys.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "index/hash/hash_client.h"
#include "index/hash/hash_index.h"
#include "index/hash/hash_rpc.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

constexpr uint64_t kKeys = 1'000'000;
constexpr IndexId kId = 1;

struct World {
  World() : cluster({.bytes_per_node = uint64_t{1} << 30}) {
    RegisterHashMethods(cluster.owner().service.get());
    auto made = HashIndex::Create(cluster.owner().service.get(), kId, {.expected_keys = kKeys});
    GANNET_CHECK(made.ok(), "%s", made.status().ToString());
    index = std::move(*made);
    cluster.Serve();
    owner = std::make_unique<OwnerThread>(&cluster);
    // Records lie in memory in another order than the keys are looked up in.
    EpochGuard guard(owner->epoch());
    for (uint64_t i = 0; i < kKeys; ++i) {
      const auto change = index->Insert(owner->context(), i, owner->NewRecord(i), nullptr);
      GANNET_CHECK(change.ok(), "%s", change.status().ToString());
    }
  }
  ~World() { cluster.owner().node->Shutdown(); }

  IndexCluster cluster;
  std::unique_ptr<HashIndex> index;
  std::unique_ptr<OwnerThread> owner;
};

World& TheWorld() {
  static World world;
  return world;
}

void Find(benchmark::State& state, uint64_t first_key) {
  World& world = TheWorld();
  EpochGuard guard(world.owner->epoch());
  Random random(1);
  for (auto _ : state) {
    const FindResult found = world.index->Find(first_key + random.Below(kKeys));
    benchmark::DoNotOptimize(found.record);
  }
  state.SetItemsProcessed(state.iterations());
}

void LocalFindHit(benchmark::State& state) {
  Find(state, 0);
}
BENCHMARK(LocalFindHit);

void LocalFindMiss(benchmark::State& state) {
  Find(state, kKeys);
}
BENCHMARK(LocalFindMiss);

// The next key depends on this lookup, as in a transaction that awaits each access.
void LocalFindDependent(benchmark::State& state) {
  World& world = TheWorld();
  EpochGuard guard(world.owner->epoch());
  Random random(2);
  uint64_t bit = 0;
  for (auto _ : state) {
    const FindResult found = world.index->Find(random.Below(kKeys / 2) * 2 + bit);
    bit = found.record.offset() >> 6 & 1;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(LocalFindDependent);

void LocalFindMany(benchmark::State& state) {
  World& world = TheWorld();
  EpochGuard guard(world.owner->epoch());
  const size_t n = state.range(0);
  std::vector<Key> keys(n);
  std::vector<FindResult> results(n);
  Random random(3);
  for (auto _ : state) {
    for (Key& key : keys) key = random.Below(kKeys);
    world.index->FindMany(keys, results);
    benchmark::DoNotOptimize(results.data());
  }
  state.SetItemsProcessed(state.iterations() * n);
}
BENCHMARK(LocalFindMany)->Arg(4)->Arg(10)->Arg(16)->Arg(64);

void LocalInsertRemove(benchmark::State& state) {
  World& world = TheWorld();
  constexpr uint64_t kPool = 10'000;
  static std::vector<rdma::GlobalAddress> records;
  EpochGuard guard(world.owner->epoch());
  for (uint64_t i = records.size(); i < kPool; ++i) records.push_back(world.owner->NewRecord(kKeys + i));
  Random random(4);
  for (auto _ : state) {
    const uint64_t i = random.Below(kPool);
    const auto inserted = world.index->Insert(world.owner->context(), kKeys + i, records[i], nullptr);
    const auto removed = world.index->Remove(world.owner->context(), kKeys + i, records[i]);
    if (!inserted.ok() || !removed.ok()) state.SkipWithError("an insert or a removal failed");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(LocalInsertRemove);

// Lookups by a client; argument: bytes of its location cache. The READ of the record is not included.
void RemoteFind(benchmark::State& state) {
  World& world = TheWorld();
  ClientThread client(&world.cluster);
  auto remote = ConnectHash(client.channel(), 0, kId, {.location_cache_bytes = static_cast<size_t>(state.range(0))});
  GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
  EpochGuard guard(client.epoch());
  RemoteIndex* index = remote->get();
  (void)client.Await(index->Find(uint64_t{0})).ok();  // learns where the buckets are
  if (state.range(0) > 0) {
    for (uint64_t key = 0; key < kKeys; ++key) (void)client.Await(index->Find(key)).ok();
  }
  Random random(5);
  const rdma::VerbCounters before = client.channel()->counters();
  for (auto _ : state) {
    auto found = index->Find(random.Below(kKeys));
    if (found.ready()) [[likely]] {
      benchmark::DoNotOptimize(found.value());
    } else {
      (void)client.Await(std::move(found)).ok();  // two candidates share a tag
    }
  }
  const rdma::VerbCounters made = client.channel()->counters() - before;
  state.SetItemsProcessed(state.iterations());
  state.counters["reads_per_lookup"] = static_cast<double>(made.reads) / static_cast<double>(state.iterations());
}
BENCHMARK(RemoteFind)->Arg(0)->Arg(32 << 20);

void RemoteFindMany(benchmark::State& state) {
  World& world = TheWorld();
  ClientThread client(&world.cluster);
  auto remote = ConnectHash(client.channel(), 0, kId, {.location_cache_bytes = 0});
  GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
  EpochGuard guard(client.epoch());
  const size_t n = state.range(0);
  std::vector<Key> keys(n);
  std::vector<FindResult> results(n);
  (void)client.Await((*remote)->Find(uint64_t{0})).ok();
  Random random(6);
  const rdma::VerbCounters before = client.channel()->counters();
  for (auto _ : state) {
    for (Key& key : keys) key = random.Below(kKeys);
    if (!client.Await((*remote)->FindMany(keys, results)).ok()) state.SkipWithError("a lookup failed");
  }
  const rdma::VerbCounters made = client.channel()->counters() - before;
  state.SetItemsProcessed(state.iterations() * n);
  state.counters["trips_per_batch"] = static_cast<double>(made.round_trips) / static_cast<double>(state.iterations());
}
BENCHMARK(RemoteFindMany)->Arg(16);

}  // namespace
}  // namespace gannet::index

BENCHMARK_MAIN();
