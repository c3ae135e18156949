#include "bench/ycsb/run.h"

#include <chrono>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/stop.h"
#include "ycsb/driver.h"

namespace gannet::bench {
namespace {

// The entries take half of it, so few buckets overflow.
constexpr uint64_t kLocationBytesPerKey = 16;

// Measures the wall clock, also for a simulation.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

ycsb::RunOptions RunOptionsOf(const YcsbOptions& o, int slot, const std::atomic<bool>* stop) {
  ycsb::RunOptions run;
  run.threads_per_machine = o.clients.threads;
  run.coroutines = o.coroutines;
  run.mix = o.operations();
  run.distribution = o.keys_drawn();
  run.theta = o.theta;
  run.inserts = o.inserts;
  run.insert_rate = o.insert_rate;
  run.insert_for = o.insert_for;
  run.move_after = o.move_after;
  run.paths = o.paths;
  run.caches.xcache.mode = o.cache;
  run.caches.share_locations = o.simulated();
  if (o.locations) {
    run.caches.xstore_location_bytes = o.cache_bytes != 0 ? o.cache_bytes : kLocationBytesPerKey * o.keys;
  } else if (o.cache_bytes != 0) {
    run.caches.location_bytes = run.caches.index_bytes = run.caches.xcache.max_bytes = o.cache_bytes;
  }
  run.caches.pages.leaf_admission = o.leaf_admission_percent / 100.0;
  run.caches.pages.one_cooling_latch = o.one_cooling_latch;
  run.warmup = *o.warmup;
  run.duration = *o.duration;
  run.interval = *o.interval;
  // Clients of one cluster do not all draw the same keys in the same order.
  run.seed = o.seed + (static_cast<uint64_t>(slot) << 32);
  run.stop = stop;
  return run;
}

Status Load(ycsb::Cluster& cluster, const YcsbProgress& progress, const std::atomic<bool>* stop, YcsbResult* result) {
  const Stopwatch watch;
  Status loaded = cluster.Load([&](uint64_t keys) { progress.loaded(keys, result->options.keys); }, stop);
  result->load_seconds = watch.seconds();
  return loaded;
}

Status Start(YcsbCluster& cluster, const YcsbProgress& progress, const std::atomic<bool>* stop,
             const YcsbOptions& options) {
  if (options.paths.reads != ycsb::Path::kCall) progress.step("training models");
  return cluster.cluster().Start(stop);
}

Status Run(YcsbCluster& cluster, const YcsbProgress& progress, const std::atomic<bool>* stop, YcsbResult* result) {
  const Stopwatch watch;
  progress.step("connecting clients and filling their caches");
  ycsb::RunOptions options = RunOptionsOf(result->options, result->slot, stop);
  options.watch = [&cluster](bool end) { cluster.Watch(end); };
  auto run = ycsb::RunBenchmark(&cluster.cluster(), options, progress.ran);
  if (!run.ok()) return run.status();
  result->run = *std::move(run);
  result->run_seconds = watch.seconds();
  result->interrupted = IsStopRequested(stop);
  result->simulation = cluster.simulation_report();
  return absl::OkStatus();
}

// Measures the speed of this machine, unless time is virtual.
Status CalibrateFor(const YcsbOptions& options, Calibration* calibration) {
  if (options.simulated()) return absl::OkStatus();
  const StatusOr<Calibration> measured = CalibrateForRun(*options.duration);
  if (measured.ok()) *calibration = *measured;
  return measured.status();
}

// `status`; if it is an error and a server that is another process is gone, an error that names that server.
Status Explain(const YcsbCluster& cluster, const Status& status) {
  return cluster.client() == nullptr ? status : cluster.client()->Explain(status);
}

StatusOr<std::unique_ptr<YcsbCluster>> Attach(const YcsbProgress& progress, const std::atomic<bool>* stop,
                                              YcsbResult* result) {
  auto attached =
      YcsbCluster::Attach(result->options, {.at_most = result->options.wait,
                                            .advice = "start it with `gannet serve`, or wait longer (--wait)",
                                            .stop = stop,
                                            .note = progress.step});
  if (attached.ok()) result->slot = (*attached)->client()->slot();
  return attached;
}

StatusOr<std::unique_ptr<YcsbCluster>> OpenAndLoad(const YcsbProgress& progress, const std::atomic<bool>* stop,
                                                   YcsbResult* result) {
  auto opened = YcsbCluster::Open(result->options);
  if (!opened.ok()) return opened.status();
  GANNET_RETURN_IF_ERROR(Load((*opened)->cluster(), progress, stop, result));
  return opened;
}

// The servers' indexes have every key that was loaded or inserted, and no other. Other processes may insert into the
// servers of a cluster file.
Status CheckKeys(const YcsbResult& result) {
  if (result.options.cluster_config.has_value()) return absl::OkStatus();
  const uint64_t inserted = result.run.of(ycsb::Kind::kInsert).finished;
  if (result.index.keys == result.options.keys + inserted) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat("%d keys were loaded and %d inserted, but the index has %d",
                                             result.options.keys, inserted, result.index.keys));
}

}  // namespace

StatusOr<std::unique_ptr<YcsbCluster>> PrepareYcsb(const YcsbProgress& progress, const std::atomic<bool>* stop,
                                                   YcsbResult* result) {
  auto opened =
      result->options.cluster_config.has_value() ? Attach(progress, stop, result) : OpenAndLoad(progress, stop, result);
  if (!opened.ok()) return opened.status();
  std::unique_ptr<YcsbCluster> cluster = *std::move(opened);
  GANNET_RETURN_IF_ERROR(CalibrateFor(result->options, &result->before_run_calibration));
  GANNET_RETURN_IF_ERROR(Explain(*cluster, Start(*cluster, progress, stop, result->options)));
  return cluster;
}

Status RunPreparedYcsb(YcsbCluster* cluster, const YcsbProgress& progress, const std::atomic<bool>* stop,
                       YcsbResult* result) {
  GANNET_RETURN_IF_ERROR(Explain(*cluster, Run(*cluster, progress, stop, result)));
  GANNET_RETURN_IF_ERROR(CalibrateFor(result->options, &result->after_run_calibration));
  progress.step("measuring the index");
  GANNET_RETURN_IF_ERROR(Explain(*cluster, MeasureStore(&cluster->cluster(), result)));
  return CheckKeys(*result);
}

bool ShareCluster(const YcsbOptions& a, const YcsbOptions& b) {
  const auto cluster = [](const YcsbOptions& o) {
    const bool trained = o.paths.reads != ycsb::Path::kCall;
    return std::tuple(o.seed, o.index, o.index_options, o.clients_change_index(), o.durability, o.disk, o.keys,
                      o.key_form, o.value_bytes, o.inline_values, o.fill_percent, o.sub_models, o.trainers, trained,
                      o.fabric, o.clients.machines, o.clients.threads, o.servers, o.server_threads, o.colocated,
                      o.partitioned, o.keeping, o.nic, o.version_reads, o.spread);
  };
  return cluster(a) == cluster(b);
}

Status RunYcsb(const YcsbProgress& progress, const std::atomic<bool>* stop, YcsbResult* result) {
  const auto cluster = PrepareYcsb(progress, stop, result);
  if (!cluster.ok()) return cluster.status();
  return RunPreparedYcsb(cluster->get(), progress, stop, result);
}

}  // namespace gannet::bench
