// What does XStore's learned cache cost and save? Prints the table of the README.
//
//   xstore_cache_table [--keys N] [--probes N] [--set linear|noised|uniform]
//
// For each key set and number of sub-models: a tree of 8-byte keys, loaded with half-full leaves as in the paper, and
// clients of the three kinds, which look up random keys over shared memory. Then a tenth as many keys again are
// inserted at random places while a client reads.
//
//   linear    i * 100: the paper's L
//   noised    i * 100 plus a random number below 100: the paper's NL
//   uniform   random 64-bit numbers
//
// Columns: `error` is the mean distance, in keys, between the predicted and the real middle of a leaf; `leaves` and
// `batches` are leaves READ and doorbells rung per lookup with the whole model cached; `B/key` are bytes of the
// client's cache per key, whole and with the models only; then batches per lookup with the models only and with only
// the top model; then the share of lookups that took a call, during the inserts and once retraining has caught up; and
// leaves per lookup then.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "index/xstore/xstore.h"
#include "rdma/base/check.h"
#include "rdma/base/random.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

struct Flags {
  uint64_t keys = 10'000'000;
  uint64_t probes = 200'000;
  std::string set;  // all of them if empty
};

constexpr IndexId kFirstId = 1;
constexpr double kFill = 0.5;

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
  return rdma::GlobalAddress(0, 64 * (1 + key % 1'000'000));
}

// One index with its clients.
class Trial {
 public:
  Trial(IndexCluster* cluster, OwnerThread* owner, ClientThread* client, IndexId id, uint32_t sub_models)
      : cluster_(cluster), owner_(owner), client_(client), id_(id) {
    auto index = XStore::Create(cluster->owner().service.get(), id, {.fixed_sub_models = sub_models});
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = std::move(*index);
  }

  void Load(const std::vector<uint64_t>& keys) {
    std::vector<Entry> entries(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) entries[i] = {OwnedKey(Key(keys[i])), RecordOf(keys[i])};
    EpochGuard guard(owner_->epoch());
    const Status status = index_->BulkLoad(owner_->context(), entries, kFill);
    GANNET_CHECK(status.ok(), "%s", status.ToString());
  }

  std::unique_ptr<RemoteIndex> Connect(XCacheMode mode) {
    auto remote = ConnectXStore(client_->channel(), 0, id_, {.mode = mode});
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
    double leaves;
    double fallbacks;
  };
  // Of lookups of random keys, which must all be found.
  Cost Probe(RemoteIndex* remote, const std::vector<uint64_t>& keys, uint64_t probes, const std::atomic<bool>* until) {
    Random random(7);
    const rdma::VerbCounters counters = client_->channel()->counters();
    const ClientStatistics before = remote->statistics();
    uint64_t n = 0;
    for (; until == nullptr ? n < probes : !*until; ++n) {
      const uint64_t key = keys[random.Below(keys.size())];
      GANNET_CHECK(Find(remote, key) == RecordOf(key), "key %d", key);
    }
    const rdma::VerbCounters spent = client_->channel()->counters() - counters;
    const ClientStatistics after = remote->statistics();
    const auto per_lookup = [n](uint64_t count) { return static_cast<double>(count) / static_cast<double>(n); };
    return {per_lookup(spent.round_trips), per_lookup(after.leaves_read - before.leaves_read),
            per_lookup(after.fallbacks - before.fallbacks)};
  }

  // Touches every sub-model, so that the cache is whole.
  void Fill(RemoteIndex* remote, const std::vector<uint64_t>& keys) {
    const uint64_t sub_models = index_->model_statistics().sub_models;
    const size_t stride = std::max<size_t>(1, keys.size() / sub_models / 8);
    for (size_t i = 0; i < keys.size(); i += stride) Find(remote, keys[i]);
  }

  // A tenth as many keys again, at random places, on a thread of their own.
  std::thread InsertTenth(const std::vector<uint64_t>& keys, std::atomic<bool>* done) {
    return std::thread([this, &keys, done] {
      OwnerThread thread(cluster_);
      Random random(8);
      for (size_t i = 0; i < keys.size() / 10; ++i) {
        const size_t at = random.Below(keys.size() - 1);
        const uint64_t key = keys[at] + 1 + random.Below(std::max<uint64_t>(keys[at + 1] - keys[at], 2) - 1);
        EpochGuard guard(thread.epoch());
        (void)index_->Insert(thread.context(), key, RecordOf(key), nullptr).status();  // some draw the same place
      }
      *done = true;
    });
  }

  XStore* index() { return index_.get(); }

 private:
  IndexCluster* cluster_;
  OwnerThread* owner_;
  ClientThread* client_;
  IndexId id_;
  std::unique_ptr<XStore> index_;
};

void PrintHeader() {
  std::printf(
      "| keys | sub-models | error | leaves | batches | B/key whole | B/key models | batches, models only | batches, "
      "top only "
      "| fallbacks while inserting | fallbacks after | leaves after |\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
}

void Run(const Flags& flags, const std::string& set, uint32_t sub_models, const std::vector<uint64_t>& keys,
         Trial& trial) {
  trial.Load(keys);
  const auto whole = trial.Connect(XCacheMode::kWhole);
  trial.Fill(whole.get(), keys);
  const XStore::ModelStatistics model = trial.index()->model_statistics();
  const Trial::Cost cost = trial.Probe(whole.get(), keys, flags.probes, nullptr);
  const auto models_only = trial.Connect(XCacheMode::kModelOnly);
  trial.Fill(models_only.get(), keys);
  const Trial::Cost models_cost = trial.Probe(models_only.get(), keys, flags.probes / 4, nullptr);
  const auto top_only = trial.Connect(XCacheMode::kTopOnly);
  const Trial::Cost top_cost = trial.Probe(top_only.get(), keys, flags.probes / 4, nullptr);
  const double n = static_cast<double>(keys.size());
  const double whole_bytes = static_cast<double>(whole->statistics().cache_bytes) / n;
  const double model_bytes = static_cast<double>(models_only->statistics().cache_bytes) / n;

  std::atomic<bool> done{false};
  std::thread writer = trial.InsertTenth(keys, &done);
  const Trial::Cost during = trial.Probe(whole.get(), keys, 0, &done);
  writer.join();
  trial.WaitForTraining();
  const Trial::Cost after = trial.Probe(whole.get(), keys, flags.probes, nullptr);
  std::printf("| %s | %u | %.2f | %.3f | %.4f | %.3f | %.3f | %.3f | %.3f | %.2f%% | %.3f%% | %.3f |\n", set.c_str(),
              sub_models, model.mean_error * 16 * kFill, cost.leaves, cost.batches, whole_bytes, model_bytes,
              models_cost.batches, top_cost.batches, 100 * during.fallbacks, 100 * after.fallbacks, after.leaves);
  std::fflush(stdout);
}

void RunSet(const Flags& flags, const std::string& set, const std::vector<uint32_t>& keys_per_sub_model) {
  const std::vector<uint64_t> keys = SortedKeys(set, flags.keys);
  // Each trial has a fresh cluster: retraining of the last one would disturb the next.
  for (const uint32_t per_sub_model : keys_per_sub_model) {
    IndexCluster cluster({.bytes_per_node = std::max<uint64_t>(uint64_t{256} << 20, flags.keys * 150)});
    RegisterXStoreMethods(cluster.owner().service.get());
    OwnerThread owner(&cluster);
    ClientThread client(&cluster);
    cluster.Serve();
    cluster.StartEpochs();
    {
      const auto sub_models = static_cast<uint32_t>(std::max<uint64_t>(1, flags.keys / per_sub_model));
      Trial trial(&cluster, &owner, &client, kFirstId, sub_models);
      Run(flags, set, sub_models, keys, trial);
      cluster.owner().node->Shutdown();
    }
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
  PrintHeader();
  for (const char* set : {"linear", "noised", "uniform"}) {
    if (flags.set.empty() || flags.set == set) RunSet(flags, set, {2000, 500, 320, 200, 50});
  }
  return 0;
}

}  // namespace
}  // namespace gannet::index

int main(int argc, char** argv) {
  return gannet::index::Main(argc, argv);
}
