// What do byte keys cost in the ordered kinds, in memory and in time, at the owner and at a client over shared memory?
//
// 200,000 keys, inserted in random order, and for rolex_loaded by a bulk load: the argument says how many bytes they
// have at most. The models of rolex are trained then. items_per_second counts keys; for scans, entries. bytes_per_key:
// memory that clients READ and memory of the owner alone, without the records.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "index/blink/blink.h"
#include "index/dolphin/dolphin.h"
#include "index/rolex/rolex.h"
#include "index/rolex/rolex_index.h"
#include "index/xstore/xstore.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

constexpr uint64_t kKeys = 200'000;
constexpr IndexId kId = 1;

// Names of 8 bytes that are drawn from 50, as often as they fit: many keys begin alike.
OwnedKey KeyOf(uint64_t i, size_t bytes) {
  uint64_t state = i + 1;
  std::string key;
  while (key.size() + 24 <= bytes) key += std::to_string(10'000'000 + SplitMix64(state) % 50);
  key += std::to_string(Mix64(i + 1));
  key.resize(bytes, ' ');
  return OwnedKey(Key(std::string_view(key)));
}

enum class Kind : uint8_t { kXStore, kBlink, kRolex, kRolexLoaded, kDolphin };
constexpr std::array kKindNames = {"xstore/", "blink/", "rolex/", "rolex_loaded/", "dolphin/"};

struct World {
  World(Kind of_kind, size_t key_bytes) : kind(of_kind), cluster({.bytes_per_node = uint64_t{1} << 30}) {
    IndexService* const service = cluster.owner().service.get();
    RegisterXStoreMethods(service);
    RegisterBlinkMethods(service);
    RegisterRolexMethods(service);
    RegisterDolphinMethods(service);
    Create(service, key_bytes);
    cluster.Serve();
    cluster.StartEpochs();
    owner = std::make_unique<OwnerThread>(&cluster);
    client = std::make_unique<ClientThread>(&cluster);
    for (uint64_t i = 0; i < kKeys; ++i) {
      keys.push_back(KeyOf(i, key_bytes));
      records.push_back(owner->NewRecord(keys.back().view()));
    }
    EpochGuard guard(owner->epoch());
    Fill();
    Connect(key_bytes);
  }
  ~World() { cluster.owner().node->Shutdown(); }

  template <class T>
  static T Checked(StatusOr<T> made) {
    GANNET_CHECK(made.ok(), "%s", made.status().ToString());
    return *std::move(made);
  }

  void Create(IndexService* service, size_t key_bytes) {
    if (kind == Kind::kXStore) {
      index = Checked(XStore::Create(service, kId, {.key_kind = KeyKind::kBytes, .max_key_bytes = key_bytes}));
    } else if (kind == Kind::kBlink) {
      index = Checked(CreateBlink(service, kId, KeyKind::kBytes, {.max_key_bytes = key_bytes}));
    } else if (kind == Kind::kDolphin) {
      index = Checked(CreateDolphin(service, kId, KeyKind::kBytes, {.max_key_bytes = key_bytes}));
    } else {
      index = Checked(CreateRolex(service, kId, KeyKind::kBytes, {.max_key_bytes = key_bytes}));
    }
  }
  void Fill() {
    if (kind == Kind::kRolexLoaded) {
      std::vector<uint64_t> order(kKeys);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::sort(order, [this](uint64_t a, uint64_t b) { return keys[a].view() < keys[b].view(); });
      std::vector<LoadEntry> entries;
      for (const uint64_t i : order) entries.push_back({keys[i].view(), records[i]});
      const Status loaded = index->BulkLoad(owner->context(), entries, 1.0);
      GANNET_CHECK(loaded.ok(), "%s", loaded.ToString());
      return;
    }
    for (uint64_t i = 0; i < kKeys; ++i) {
      const auto change = index->Insert(owner->context(), keys[i].view(), records[i], nullptr);
      GANNET_CHECK(change.ok(), "%s", change.status().ToString());
    }
    if (kind == Kind::kRolex) dynamic_cast<rolex::RolexIndex*>(index.get())->TrainNow();
  }
  void Connect(size_t key_bytes) {
    if (kind == Kind::kXStore) {
      remote = Checked(
          ConnectXStore(client->channel(), 0, kId, {.key_kind = KeyKind::kBytes, .max_key_bytes = key_bytes}, {}));
    } else if (kind == Kind::kBlink) {
      remote =
          Checked(ConnectBlink(client->channel(), 0, kId, {.key_kind = KeyKind::kBytes, .max_key_bytes = key_bytes}));
    } else if (kind == Kind::kDolphin) {
      remote =
          Checked(ConnectDolphin(client->channel(), 0, kId, {.key_kind = KeyKind::kBytes, .max_key_bytes = key_bytes}));
    } else {
      remote =
          Checked(ConnectRolex(client->channel(), 0, kId, {.key_kind = KeyKind::kBytes, .max_key_bytes = key_bytes}));
    }
  }

  const Kind kind;
  IndexCluster cluster;
  std::unique_ptr<LocalIndex> index;
  std::unique_ptr<OwnerThread> owner;
  std::unique_ptr<ClientThread> client;
  std::unique_ptr<RemoteIndex> remote;
  std::vector<OwnedKey> keys;
  std::vector<rdma::GlobalAddress> records;
};

// There is one world at a time, because they are large.
World& TheWorld(benchmark::State& state, Kind kind) {
  static std::unique_ptr<World> world;
  static int64_t bytes = 0;
  if (world == nullptr || world->kind != kind || bytes != state.range(0)) {
    world.reset();
    bytes = state.range(0);
    world = std::make_unique<World>(kind, static_cast<size_t>(bytes));
  }
  const Statistics statistics = world->index->statistics();
  state.counters["bytes_per_key"] =
      static_cast<double>(statistics.registered_bytes + statistics.private_bytes) / static_cast<double>(kKeys);
  return *world;
}

void LocalFind(benchmark::State& state, Kind kind) {
  World& world = TheWorld(state, kind);
  EpochGuard guard(world.owner->epoch());
  Random random(1);
  for (auto _ : state) {
    const FindResult found = world.index->Find(world.keys[random.Below(kKeys)].view());
    GANNET_CHECK(!found.record.is_null(), "a key is lost");
  }
  state.SetItemsProcessed(state.iterations());
}

void LocalChange(benchmark::State& state, Kind kind) {
  World& world = TheWorld(state, kind);
  EpochGuard guard(world.owner->epoch());
  Random random(2);
  for (auto _ : state) {
    const uint64_t i = random.Below(kKeys);
    const Key key = world.keys[i].view();
    GANNET_CHECK(world.index->Remove(world.owner->context(), key, world.records[i]).ok(), "a key is lost");
    GANNET_CHECK(world.index->Insert(world.owner->context(), key, world.records[i], nullptr).ok(), "a key is twice");
  }
  state.SetItemsProcessed(2 * state.iterations());
}

void LocalScan50(benchmark::State& state, Kind kind) {
  World& world = TheWorld(state, kind);
  EpochGuard guard(world.owner->epoch());
  Random random(3);
  ScanResult result;
  const std::string greatest(kShortKeyBytes, '\xff');
  int64_t entries = 0;
  for (auto _ : state) {
    result.Clear();
    const ScanRange range{
        .from = world.keys[random.Below(kKeys)].view(), .to = Key(std::string_view(greatest)), .limit = 50};
    GANNET_CHECK(world.index->Scan(range, &result).ok(), "a scan failed");
    entries += static_cast<int64_t>(result.entries.size());
  }
  state.SetItemsProcessed(entries);
}

// A range with three keys, as TPC-C's search for customers of one name.
void LocalScanOf3(benchmark::State& state, Kind kind) {
  World& world = TheWorld(state, kind);
  EpochGuard guard(world.owner->epoch());
  std::vector<OwnedKey> sorted = world.keys;
  std::ranges::sort(sorted, [](const OwnedKey& a, const OwnedKey& b) { return a.view() < b.view(); });
  Random random(6);
  ScanResult result;
  for (auto _ : state) {
    result.Clear();
    const uint64_t i = random.Below(kKeys - 2);
    GANNET_CHECK(world.index->Scan({.from = sorted[i].view(), .to = sorted[i + 2].view()}, &result).ok(),
                 "a scan failed");
    GANNET_CHECK(result.entries.size() == 3, "%d entries", result.entries.size());
  }
  state.SetItemsProcessed(3 * state.iterations());
}

// READs, and their bytes, of one operation.
class Verbs {
 public:
  explicit Verbs(World& world) : world_(world), before_(world.client->channel()->counters()) {}
  void Report(benchmark::State& state) const {
    const auto& now = world_.client->channel()->counters();
    const auto n = static_cast<double>(state.iterations());
    state.counters["reads"] = static_cast<double>(now.reads - before_.reads) / n;
    state.counters["postings"] = static_cast<double>(now.round_trips - before_.round_trips) / n;
    state.counters["read_bytes"] = static_cast<double>(now.bytes_in - before_.bytes_in) / n;
  }

 private:
  World& world_;
  rdma::VerbCounters before_;
};

void RemoteFind(benchmark::State& state, Kind kind) {
  World& world = TheWorld(state, kind);
  EpochGuard guard(world.client.get());
  Random random(4);
  const auto find = [&] {
    const auto found = world.client->Await(world.remote->Find(world.keys[random.Below(kKeys)].view()));
    GANNET_CHECK(found.ok() && !found->record.is_null(), "a key is lost");
  };
  for (int i = 0; i < 20'000; ++i) find();
  const Verbs verbs(world);
  for (auto _ : state) find();
  verbs.Report(state);
  state.counters["cache_bytes_per_key"] =
      static_cast<double>(world.remote->statistics().cache_bytes) / static_cast<double>(kKeys);
  state.SetItemsProcessed(state.iterations());
}

void RemoteScan50(benchmark::State& state, Kind kind) {
  World& world = TheWorld(state, kind);
  EpochGuard guard(world.client.get());
  Random random(5);
  ScanResult result;
  const std::string greatest(kShortKeyBytes, '\xff');
  int64_t entries = 0;
  const Verbs verbs(world);
  for (auto _ : state) {
    result.Clear();
    const ScanRange range{
        .from = world.keys[random.Below(kKeys)].view(), .to = Key(std::string_view(greatest)), .limit = 50};
    GANNET_CHECK(world.client->Await(world.remote->Scan(range, &result)).ok(), "a scan failed");
    entries += static_cast<int64_t>(result.entries.size());
  }
  verbs.Report(state);
  state.SetItemsProcessed(entries);
}

void RegisterAll() {
  for (const int64_t bytes : {16, 32, 64}) {
    for (const Kind kind : {Kind::kXStore, Kind::kBlink, Kind::kRolex, Kind::kRolexLoaded, Kind::kDolphin}) {
      const auto add = [&](const std::string& name, void (*run)(benchmark::State&, Kind)) {
        benchmark::RegisterBenchmark((kKindNames[static_cast<size_t>(kind)] + name).c_str(), run, kind)->Arg(bytes);
      };
      add("local_find", LocalFind);
      add("local_scan_50", LocalScan50);
      add("local_scan_of_3", LocalScanOf3);
      add("remote_find", RemoteFind);
      add("remote_scan_50", RemoteScan50);
      add("local_change", LocalChange);
    }
  }
}

}  // namespace
}  // namespace gannet::index

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  gannet::index::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
}
