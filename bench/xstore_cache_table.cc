// What does XStore's learned cache cost, and what does it save? Prints the tables of docs/performance.md.
//
//   xstore_cache_table [--keys N] [--probes N] [--set linear|noised|uniform]
//
// For each key set and number of sub-models: a tree of 8-byte keys, loaded with half-full leaves as in the paper, and
// clients with the three cache modes, which look up random keys over shared memory.
//
//   linear    i * 100: the paper's L
//   noised    i * 100 plus a random number below 100: the paper's NL
//   uniform   random 64-bit numbers
//
// Columns of the first table. `leaves/sub-model`: entries of a translation table. `error`: mean distance, in keys,
// between the predicted and the actual middle of a leaf. `leaves`: number of leaves that a lookup READs with the whole
// model cached, in `batches` doorbells; the `record` takes one more. `B/key`: bytes of a client's cache per key: the
// whole, the part of the translation tables (8 bytes per leaf), the part of entries for leaves that two sub-models
// share, and the whole with the models only. Then batches per lookup with the models only, and with only the top model.
// The last columns say what bounds a row: `error` if predictions cross borders of leaves (more than 1.05 leaves per
// lookup); for the bytes `tables`, unless models and shared leaves add more than a tenth.
//
// The second table: a tenth as many keys are inserted at random places while a client with the whole model reads.
// Half-full leaves take them without a split; most full leaves split. `fallbacks` are lookups that needed a call:
// during the inserts; then right after retraining has caught up while the client's cache is still old; then once more.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "index/xstore/xstore.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

struct Flags {
  uint64_t keys = 10'000'000;
  uint64_t probes = 200'000;
  std::string set;  // empty: all sets
};

constexpr IndexId kId = 1;
constexpr double kHalf = 0.5;
// All numbers of keys per sub-model of the first table, and those of the second.
constexpr uint32_t kKeysPerSubModel[] = {2000, 500, 320, 200, 50};
constexpr uint32_t kKeysPerSubModelWithInserts[] = {500, 200};

uint64_t KeyOf(const std::string& set, uint64_t i) {
  if (set == "linear") return i * 100;
  if (set == "noised") return i * 100 + Mix64(i) % 100;
  return Mix64(i + 1);
}

std::vector<uint64_t> SortedKeys(const std::string& set, uint64_t n) {
  std::vector<uint64_t> keys(n);
  for (uint64_t i = 0; i < n; ++i) keys[i] = KeyOf(set, i);
  std::sort(keys.begin(), keys.end());
  return keys;
}

rdma::GlobalAddress RecordOf(uint64_t key) {
  return rdma::GlobalAddress(0, 64 * (1000 + key % 1'000'000));
}

// One index with its clients.
class Trial {
 public:
  Trial(IndexCluster* cluster, OwnerThread* owner, ClientThread* client, uint32_t sub_models)
      : cluster_(cluster), owner_(owner), client_(client) {
    auto index = XStore::Create(cluster->owner().service.get(), kId, {.fixed_sub_models = sub_models});
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = std::move(*index);
  }

  void Load(const std::vector<uint64_t>& keys, double fill) {
    std::vector<LoadEntry> entries(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) entries[i] = {Key(keys[i]), RecordOf(keys[i])};
    EpochGuard guard(owner_->epoch());
    const Status status = index_->BulkLoad(owner_->context(), entries, fill);
    GANNET_CHECK(status.ok(), "%s", status.ToString());
  }

  std::unique_ptr<RemoteIndex> Connect(XCacheMode mode) {
    auto remote = ConnectXStore(client_->channel(), 0, kId, {}, {.mode = mode});
    GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
    Find(remote->get(), 0);  // tells the owner to train
    WaitForTraining();
    return std::move(*remote);
  }

  void WaitForTraining() {
    while (!index_->model_statistics().caught_up) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  rdma::GlobalAddress Find(RemoteIndex* remote, uint64_t key) {
    EpochGuard guard(client_->epoch());
    const StatusOr<FindResult> found = client_->Await(remote->Find(key));
    GANNET_CHECK(found.ok(), "%s", found.status().ToString());
    return found->record;
  }

  struct Cost {
    double batches;
    double record;  // batches that read the record
    double leaves;
    double fallbacks;
  };
  // Looks up random keys, which must all be found: `probes` of them, or as many as fit before *until.
  Cost Probe(RemoteIndex* remote, const std::vector<uint64_t>& keys, uint64_t probes, const std::atomic<bool>* until) {
    Random random(7);
    const ClientStatistics before = remote->statistics();
    uint64_t batches = 0;
    uint64_t record_batches = 0;
    uint64_t n = 0;
    for (; until == nullptr ? n < probes : n == 0 || !*until; ++n) {
      const uint64_t key = keys[random.Below(keys.size())];
      const uint64_t start = RoundTrips();
      const rdma::GlobalAddress record = Find(remote, key);
      GANNET_CHECK(record == RecordOf(key), "key %d", key);
      const uint64_t found = RoundTrips();
      ReadRecord(record);
      batches += found - start;
      record_batches += RoundTrips() - found;
    }
    const ClientStatistics after = remote->statistics();
    const auto per_lookup = [n](uint64_t count) { return static_cast<double>(count) / static_cast<double>(n); };
    return {per_lookup(batches), per_lookup(record_batches), per_lookup(after.leaves_read - before.leaves_read),
            per_lookup(after.fallbacks - before.fallbacks)};
  }

  // Touches every sub-model, so that the cache is complete.
  void Fill(RemoteIndex* remote, const std::vector<uint64_t>& keys) {
    const uint64_t sub_models = index_->model_statistics().sub_models;
    const size_t stride = std::max<size_t>(1, keys.size() / sub_models / 8);
    for (size_t i = 0; i < keys.size(); i += stride) Find(remote, keys[i]);
  }

  // Inserts a tenth as many keys at random places, on a thread of its own.
  std::thread InsertTenth(const std::vector<uint64_t>& keys, std::atomic<bool>* done) {
    return std::thread([this, &keys, done] {
      OwnerThread thread(cluster_);
      Random random(8);
      for (size_t i = 0; i < keys.size() / 10; ++i) {
        const size_t at = random.Below(keys.size() - 1);
        const uint64_t key = keys[at] + 1 + random.Below(std::max<uint64_t>(keys[at + 1] - keys[at], 2) - 1);
        EpochGuard guard(thread.epoch());
        (void)index_->Insert(thread.context(), key, RecordOf(key), nullptr).status();  // some draws repeat a place
      }
      *done = true;
    });
  }

  XStore* index() { return index_.get(); }

 private:
  uint64_t RoundTrips() const { return client_->channel()->counters().round_trips; }
  // The content at a record's address does not matter here, only the cost of the READ.
  void ReadRecord(rdma::GlobalAddress record) {
    alignas(kLineBytes) std::byte image[kLineBytes];
    const auto read = [&]() -> coro::Task<Status> {
      Status status = co_await client_->channel()->Read(record, image, sizeof image);
      co_return status;
    };
    const Status status = client_->Await(read());
    GANNET_CHECK(status.ok(), "%s", status.ToString());
  }

  IndexCluster* cluster_;
  OwnerThread* owner_;
  ClientThread* client_;
  std::unique_ptr<XStore> index_;
};

double PerKey(uint64_t bytes, const std::vector<uint64_t>& keys) {
  return static_cast<double>(bytes) / static_cast<double>(keys.size());
}

void PrintLookupHeader() {
  std::printf(
      "| keys | sub-models | leaves/sub-model | error | leaves | batches | record | B/key whole | of that tables | "
      "shared "
      "leaves | B/key models | batches, models only | batches, top only | bound by |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n");
}

// Prints one row of the first table.
void MeasureLookups(const Flags& flags, const std::string& set, const std::vector<uint64_t>& keys, Trial& trial,
                    RemoteIndex* whole) {
  const XStore::ModelStatistics model = trial.index()->model_statistics();
  const uint64_t leaves = trial.index()->statistics().nodes;
  const Trial::Cost cost = trial.Probe(whole, keys, flags.probes, nullptr);
  const auto models_only = trial.Connect(XCacheMode::kModelOnly);
  trial.Fill(models_only.get(), keys);
  const Trial::Cost models_cost = trial.Probe(models_only.get(), keys, flags.probes / 4, nullptr);
  const auto top_only = trial.Connect(XCacheMode::kTopOnly);
  const Trial::Cost top_cost = trial.Probe(top_only.get(), keys, flags.probes / 4, nullptr);

  const double whole_bytes = PerKey(whole->statistics().cache_bytes, keys);
  const double table_bytes = PerKey(leaves * 8, keys);
  const double shared_bytes = PerKey(model.table_entries * 8, keys) - table_bytes;
  const double model_bytes = PerKey(models_only->statistics().cache_bytes, keys);
  const std::string bound = std::string(cost.leaves > 1.05 ? "error, " : "") +
                            (shared_bytes + model_bytes > table_bytes / 10 ? "models and shared leaves" : "tables");
  std::printf("| %s | %lu | %.1f | %.2f | %.3f | %.4f | %.4f | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f | %s |\n",
              set.c_str(), model.sub_models,
              static_cast<double>(model.table_entries) / static_cast<double>(model.sub_models),
              model.mean_error * static_cast<double>(keys.size()) / static_cast<double>(leaves), cost.leaves,
              cost.batches, cost.record, whole_bytes, table_bytes, shared_bytes, model_bytes, models_cost.batches,
              top_cost.batches, bound.c_str());
  std::fflush(stdout);
}

// Returns one row of the second table.
std::string MeasureInserts(const Flags& flags, const std::string& set, double fill, const std::vector<uint64_t>& keys,
                           Trial& trial, RemoteIndex* whole) {
  const uint64_t sub_models = trial.index()->model_statistics().sub_models;
  const uint64_t leaves = trial.index()->statistics().nodes;
  std::atomic<bool> done{false};
  std::thread writer = trial.InsertTenth(keys, &done);
  const Trial::Cost during = trial.Probe(whole, keys, 0, &done);
  writer.join();
  trial.WaitForTraining();
  const Trial::Cost after = trial.Probe(whole, keys, flags.probes, nullptr);
  const Trial::Cost again = trial.Probe(whole, keys, flags.probes, nullptr);
  const double split = static_cast<double>(trial.index()->statistics().nodes) / static_cast<double>(leaves) - 1;
  const XStore::ModelStatistics model = trial.index()->model_statistics();
  char row[400];
  std::snprintf(row, sizeof row,
                "| %s | %.0f%% | %lu | %.1f%% | %lu | %.3f | %.3f%% | %.4f | %.3f | %.3f%% | %.4f | %.3f | %.3f%% |\n",
                set.c_str(), 100 * fill, sub_models, 100 * split, model.retrainings, during.batches,
                100 * during.fallbacks, after.batches, after.leaves, 100 * after.fallbacks, again.batches, again.leaves,
                100 * again.fallbacks);
  return row;
}

void PrintInsertTable(const std::string& rows) {
  std::printf(
      "\nA tenth as many keys inserted at random places\n\n"
      "| keys | leaves full | sub-models | leaves split | retrainings | during: batches | fallbacks | retrained: "
      "batches | "
      "leaves | fallbacks | once more: batches | leaves | fallbacks |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n%s",
      rows.c_str());
}

enum class Measure { kLookups, kInserts, kBoth };

// Each trial has a fresh cluster, because retraining of the previous one would disturb it.
void RunTrial(const Flags& flags, const std::string& set, const std::vector<uint64_t>& keys,
              uint32_t keys_per_sub_model, double fill, Measure measure, std::string* insert_rows) {
  IndexCluster cluster({.bytes_per_node = std::max<uint64_t>(uint64_t{256} << 20, flags.keys * 250)});
  RegisterXStoreMethods(cluster.owner().service.get());
  OwnerThread owner(&cluster);
  ClientThread client(&cluster);
  cluster.Serve();
  cluster.StartEpochs();
  {
    const auto sub_models = static_cast<uint32_t>(std::max<uint64_t>(1, flags.keys / keys_per_sub_model));
    Trial trial(&cluster, &owner, &client, sub_models);
    trial.Load(keys, fill);
    const auto whole = trial.Connect(XCacheMode::kWhole);
    trial.Fill(whole.get(), keys);
    if (measure != Measure::kInserts) MeasureLookups(flags, set, keys, trial, whole.get());
    if (measure != Measure::kLookups) *insert_rows += MeasureInserts(flags, set, fill, keys, trial, whole.get());
    cluster.owner().node->Shutdown();
  }
}

void RunSet(const Flags& flags, const std::string& set, std::string* insert_rows) {
  const std::vector<uint64_t> keys = SortedKeys(set, flags.keys);
  for (const uint32_t n : kKeysPerSubModel) {
    const bool inserts = std::ranges::find(kKeysPerSubModelWithInserts, n) != std::end(kKeysPerSubModelWithInserts);
    RunTrial(flags, set, keys, n, kHalf, inserts ? Measure::kBoth : Measure::kLookups, insert_rows);
  }
  for (const uint32_t n : kKeysPerSubModelWithInserts) {
    RunTrial(flags, set, keys, n, 1.0, Measure::kInserts, insert_rows);
  }
}

bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--keys") {
      flags->keys = std::stoull(argv[i + 1]);
    } else if (name == "--probes") {
      flags->probes = std::stoull(argv[i + 1]);
    } else if (name == "--set") {
      flags->set = argv[i + 1];
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && flags->keys >= 1000 && flags->probes >= 4;
}

int Main(int argc, char** argv) {
  Flags flags;
  if (!Parse(argc, argv, &flags)) {
    std::fprintf(stderr, "usage: xstore_cache_table [--keys N] [--probes N] [--set linear|noised|uniform]\n");
    return 2;
  }
  std::printf("%lu keys, leaves half full, %lu lookups each\n\n", flags.keys, flags.probes);
  PrintLookupHeader();
  std::string insert_rows;
  for (const char* set : {"linear", "noised", "uniform"}) {
    if (flags.set.empty() || flags.set == set) RunSet(flags, set, &insert_rows);
  }
  PrintInsertTable(insert_rows);
  return 0;
}

}  // namespace
}  // namespace gannet::index

int main(int argc, char** argv) {
  return gannet::index::Main(argc, argv);
}
