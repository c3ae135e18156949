// What does a lookup, an insert or a scan in XStore cost, at the owner and at a client over shared memory?
//
// One million 8-byte keys, inserted in random order: leaves are about 70% full. items_per_second counts keys; for
// scans, entries.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "index/xstore/xstore.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

constexpr uint64_t kKeys = 1'000'000;
constexpr IndexId kId = 1;

rdma::GlobalAddress RecordOf(uint64_t i) {
  return rdma::GlobalAddress(0, 64 * (1 + i));
}
uint64_t KeyOf(uint64_t i) {
  return Mix64(i + 1);
}

struct World {
  World() : cluster({.bytes_per_node = uint64_t{4} << 30}) {
    RegisterXStoreMethods(cluster.owner().service.get());
    index = Make(kId);
    cluster.Serve();
    cluster.StartEpochs();
    owner = std::make_unique<OwnerThread>(&cluster);
    client = std::make_unique<ClientThread>(&cluster);
    EpochGuard guard(owner->epoch());
    for (uint64_t i = 0; i < kKeys; ++i) {
      const auto change = index->Insert(owner->context(), KeyOf(i), RecordOf(i), nullptr);
      GANNET_CHECK(change.ok(), "%s", change.status().ToString());
    }
  }
  ~World() { cluster.owner().node->Shutdown(); }

  std::unique_ptr<XStore> Make(IndexId id) {
    auto made = XStore::Create(cluster.owner().service.get(), id, {});
    GANNET_CHECK(made.ok(), "%s", made.status().ToString());
    return std::move(*made);
  }

  IndexCluster cluster;
  std::unique_ptr<XStore> index;
  std::unique_ptr<OwnerThread> owner;
  std::unique_ptr<ClientThread> client;
  IndexId next_id = kId + 1;
};

World& TheWorld() {
  static World world;
  return world;
}

// Random keys out of the first `range(0)` keys.
void LocalFind(benchmark::State& state) {
  World& world = TheWorld();
  EpochGuard guard(world.owner->epoch());
  Random random(1);
  const auto among = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    const FindResult found = world.index->Find(KeyOf(random.Below(among)));
    benchmark::DoNotOptimize(found.record);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(LocalFind)->Arg(100)->Arg(10'000)->Arg(kKeys);

void LocalFindMany(benchmark::State& state) {
  World& world = TheWorld();
  EpochGuard guard(world.owner->epoch());
  Random random(2);
  std::vector<Key> keys(16);
  std::vector<FindResult> results(keys.size());
  for (auto _ : state) {
    for (Key& key : keys) key = KeyOf(random.Below(kKeys));
    world.index->FindMany(keys, results);
    benchmark::DoNotOptimize(results.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(keys.size()));
}
BENCHMARK(LocalFindMany);

void LocalInsertRandom(benchmark::State& state) {
  World& world = TheWorld();
  const auto index = world.Make(world.next_id++);
  EpochGuard guard(world.owner->epoch());
  uint64_t i = 0;
  for (auto _ : state) {
    const auto change = index->Insert(world.owner->context(), KeyOf(i), RecordOf(i % kKeys), nullptr);
    GANNET_CHECK(change.ok(), "%s", change.status().ToString());
    ++i;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(LocalInsertRandom)->Iterations(1'000'000);

void LocalInsertAscending(benchmark::State& state) {
  World& world = TheWorld();
  const auto index = world.Make(world.next_id++);
  EpochGuard guard(world.owner->epoch());
  uint64_t i = 0;
  for (auto _ : state) {
    const auto change = index->Insert(world.owner->context(), i, RecordOf(i % kKeys), nullptr);
    GANNET_CHECK(change.ok(), "%s", change.status().ToString());
    ++i;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(LocalInsertAscending)->Iterations(2'000'000);

// Orders of twenty districts, as in TPC-C's ORDER.
void LocalInsertOrders(benchmark::State& state) {
  World& world = TheWorld();
  const auto index = world.Make(world.next_id++);
  EpochGuard guard(world.owner->epoch());
  Random random(3);
  std::vector<uint64_t> orders(20);
  for (auto _ : state) {
    const uint64_t district = random.Below(orders.size());
    const auto change =
        index->Insert(world.owner->context(), district << 40 | orders[district]++, RecordOf(1), nullptr);
    GANNET_CHECK(change.ok(), "%s", change.status().ToString());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(LocalInsertOrders)->Iterations(1'000'000);

// Ten order lines per order, with orders of twenty districts: the inserts of TPC-C's NewOrder.
void LocalInsertOrderLines(benchmark::State& state) {
  World& world = TheWorld();
  const auto index = world.Make(world.next_id++);
  EpochGuard guard(world.owner->epoch());
  Random random(3);
  std::vector<uint64_t> orders(20);
  for (auto _ : state) {
    const uint64_t district = random.Below(orders.size());
    const uint64_t order = orders[district]++;
    for (uint64_t line = 0; line < 10; ++line) {
      const uint64_t key = district << 40 | order << 8 | line;
      const auto change = index->Insert(world.owner->context(), key, RecordOf(line), nullptr);
      GANNET_CHECK(change.ok(), "%s", change.status().ToString());
    }
  }
  state.SetItemsProcessed(state.iterations() * 10);
}
BENCHMARK(LocalInsertOrderLines)->Iterations(100'000);

// Inserts at the high end and removals at the low end: TPC-C's NEW-ORDER.
void LocalQueue(benchmark::State& state) {
  World& world = TheWorld();
  const auto index = world.Make(world.next_id++);
  uint64_t i = 0;
  for (auto _ : state) {
    EpochGuard guard(world.owner->epoch());
    const auto change = index->Insert(world.owner->context(), i, RecordOf(i % kKeys), nullptr);
    GANNET_CHECK(change.ok(), "%s", change.status().ToString());
    if (i >= 1000) {
      const auto removed = index->Remove(world.owner->context(), i - 1000, RecordOf((i - 1000) % kKeys));
      GANNET_CHECK(removed.ok(), "%s", removed.status().ToString());
    }
    ++i;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(LocalQueue);

void LocalScan(benchmark::State& state) {
  World& world = TheWorld();
  EpochGuard guard(world.owner->epoch());
  Random random(4);
  ScanResult result;
  int64_t entries = 0;
  for (auto _ : state) {
    result.Clear();
    const uint64_t from = KeyOf(random.Below(kKeys));
    const Status status =
        world.index->Scan({.from = from, .to = UINT64_MAX, .limit = static_cast<size_t>(state.range(0))}, &result);
    GANNET_CHECK(status.ok(), "%s", status.ToString());
    entries += static_cast<int64_t>(result.entries.size());
  }
  state.SetItemsProcessed(entries);
}
BENCHMARK(LocalScan)->Arg(1)->Arg(100);

// A client with a warm cache, after the owner has trained its model.
std::unique_ptr<RemoteIndex> ConnectWarm(World& world, XCacheMode mode) {
  auto remote = ConnectXStore(world.client->channel(), 0, kId, {}, {.mode = mode});
  GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
  Random random(5);
  for (int i = 0; i < 100'000; ++i) {
    EpochGuard guard(world.client->epoch());
    const auto found = world.client->Await((*remote)->Find(KeyOf(random.Below(kKeys))));
    GANNET_CHECK(found.ok(), "%s", found.status().ToString());
    while (!world.index->model_statistics().caught_up) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::move(*remote);
}

// Reports the verbs of `channel` per iteration.
class Verbs {
 public:
  Verbs(benchmark::State& state, rdma::Channel* channel)
      : state_(state), channel_(channel), before_(channel->counters()) {}
  ~Verbs() {
    const rdma::VerbCounters spent = channel_->counters() - before_;
    const auto per = [this](uint64_t n) { return static_cast<double>(n) / static_cast<double>(state_.iterations()); };
    state_.counters["round_trips"] = per(spent.round_trips);
    state_.counters["reads"] = per(spent.reads);
    state_.counters["bytes_in"] = per(spent.bytes_in);
  }

 private:
  benchmark::State& state_;
  rdma::Channel* channel_;
  rdma::VerbCounters before_;
};

void RemoteFind(benchmark::State& state) {
  World& world = TheWorld();
  const auto remote = ConnectWarm(world, static_cast<XCacheMode>(state.range(0)));
  EpochGuard guard(world.client->epoch());
  Random random(6);
  const Verbs verbs(state, world.client->channel());
  for (auto _ : state) {
    const auto found = world.client->Await(remote->Find(KeyOf(random.Below(kKeys))));
    GANNET_CHECK(found.ok() && !found->record.is_null(), "%s", found.status().ToString());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(RemoteFind)->ArgName("mode")->DenseRange(0, 2);

void RemoteFindMany(benchmark::State& state) {
  World& world = TheWorld();
  const auto remote = ConnectWarm(world, XCacheMode::kWhole);
  EpochGuard guard(world.client->epoch());
  Random random(7);
  std::vector<Key> keys(16);
  std::vector<FindResult> results(keys.size());
  const Verbs verbs(state, world.client->channel());
  for (auto _ : state) {
    for (Key& key : keys) key = KeyOf(random.Below(kKeys));
    const Status status = world.client->Await(remote->FindMany(keys, results));
    GANNET_CHECK(status.ok(), "%s", status.ToString());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(keys.size()));
}
BENCHMARK(RemoteFindMany);

void RemoteScan(benchmark::State& state) {
  World& world = TheWorld();
  const auto remote = ConnectWarm(world, static_cast<XCacheMode>(state.range(0)));
  EpochGuard guard(world.client->epoch());
  Random random(8);
  ScanResult result;
  int64_t entries = 0;
  const Verbs verbs(state, world.client->channel());
  for (auto _ : state) {
    result.Clear();
    const uint64_t from = KeyOf(random.Below(kKeys));
    const Status status = world.client->Await(remote->Scan({.from = from, .to = UINT64_MAX, .limit = 100}, &result));
    GANNET_CHECK(status.ok(), "%s", status.ToString());
    entries += static_cast<int64_t>(result.entries.size());
  }
  state.SetItemsProcessed(entries);
}
BENCHMARK(RemoteScan)->ArgName("mode")->DenseRange(0, 2);

}  // namespace
}  // namespace gannet::index

BENCHMARK_MAIN();
