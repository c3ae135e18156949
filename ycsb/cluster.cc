#include "ycsb/cluster.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "ycsb/connection.h"
#include "ycsb/value.h"

namespace gannet::ycsb {
namespace {

constexpr absl::Duration kTrainingTime = absl::Minutes(10);
constexpr uint64_t kLookEveryNanos = 1'000'000;

Status CheckOptions(const rdma::Fabric& fabric, const ClusterOptions& o) {
  const auto wrong = [](const std::string& what) { return absl::InvalidArgumentError(what); };
  if (o.servers < 1 || o.machines < 1 || o.servers + o.machines != fabric.num_nodes()) {
    return wrong(absl::StrFormat("%d servers and %d machines on a fabric of %d nodes", o.servers, o.machines,
                                 fabric.num_nodes()));
  }
  if (o.server_threads < 1) return wrong(absl::StrFormat("%d server threads: at least 1", o.server_threads));
  if (o.keys < static_cast<uint64_t>(o.servers) || o.keys >= uint64_t{1} << 32) {
    return wrong(absl::StrFormat("%d keys: at least one for each server, and less than 2^32", o.keys));
  }
  if (o.value_bytes < kMinValueBytes || o.value_bytes > kMaxValueBytes) {
    return wrong(absl::StrFormat("values of %d bytes: from %d to %d", o.value_bytes, kMinValueBytes, kMaxValueBytes));
  }
  if (index::FindIndexKind(o.index) == nullptr) {
    return wrong(absl::StrFormat("index is %d, which is no IndexKind", static_cast<int>(o.index)));
  }
  if (!(o.fill > 0 && o.fill <= 1)) return wrong(absl::StrFormat("leaves filled to %g: above 0, at most 1", o.fill));
  if (!fabric.capabilities().line_consistent) {
    return absl::FailedPreconditionError(
        "the bench runs on cards, shared memory and the simulation: a device made of software has no speed to measure");
  }
  return absl::OkStatus();
}

}  // namespace

Machine::~Machine() {
  if (node != nullptr) node->Shutdown();
  if (epochs != nullptr) epochs->Stop();
}

Cluster::Cluster(rdma::Fabric* fabric, const ClusterOptions& options)
    : fabric_(fabric), options_(options), keys_(options.key_form, options.keys, options.servers) {}

Cluster::~Cluster() = default;

StatusOr<std::unique_ptr<Cluster>> Cluster::Create(rdma::Fabric* fabric, const ClusterOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckOptions(*fabric, options));
  std::unique_ptr<Cluster> cluster(new Cluster(fabric, options));
  GANNET_RETURN_IF_ERROR(cluster->Open());
  return cluster;
}

Status Cluster::Open() {
  for (int i = 0; i < options_.servers; ++i) {
    const ServerOptions server_options = {.index = options_.index,
                                          .expected_keys = keys_.FirstRankOf(i + 1) - keys_.FirstRankOf(i),
                                          .value_bytes = options_.value_bytes,
                                          .fill = options_.fill,
                                          .sub_models = options_.sub_models};
    auto server = Server::Create(fabric_, static_cast<rdma::NodeId>(i), server_options);
    if (!server.ok()) return server.status();
    servers_.push_back(*std::move(server));
  }
  for (int i = 0; i < options_.machines; ++i) {
    auto machine = std::make_unique<Machine>();
    auto node = fabric_->Attach(static_cast<rdma::NodeId>(options_.servers + i));
    if (!node.ok()) return node.status();
    machine->node = *std::move(node);
    machine->slab = std::make_unique<rdma::SlabAllocator>(machine->node.get());
    auto epochs = rdma::EpochManager::Create(fabric_, machine->node.get(), machine->slab.get());
    if (!epochs.ok()) return epochs.status();
    machine->epochs = *std::move(epochs);
    machines_.push_back(std::move(machine));
  }
  return absl::OkStatus();
}

Status Cluster::Load(const std::function<void(uint64_t)>& progress, const std::atomic<bool>* stop) {
  for (int i = 0; i < options_.servers; ++i) {
    const uint64_t first = keys_.FirstRankOf(i);
    const auto report = [&progress, first](uint64_t loaded) {
      if (progress) progress(first + loaded);
    };
    GANNET_RETURN_IF_ERROR(server(i).Load(keys_, first, keys_.FirstRankOf(i + 1), report, stop));
  }
  return absl::OkStatus();
}

Status Cluster::Start(const std::atomic<bool>* stop) {
  for (const auto& server : servers_) GANNET_RETURN_IF_ERROR(server->Start(options_.server_threads));
  for (const auto& machine : machines_) GANNET_RETURN_IF_ERROR(machine->epochs->Start());
  if (!index::EntryOf(options_.index).traits.learned || !options_.train_models) return absl::OkStatus();
  // On a thread of its own, because a simulated thread permanently belongs to the node whose channel it polls.
  Status trained;
  Thread client("ycsb-train", [this, &trained, stop] { trained = TrainModels(stop); });
  client.join();
  return trained;
}

// An owner trains its model once a client has asked for it.
Status Cluster::TrainModels(const std::atomic<bool>* stop) {
  auto connection = Connection::Open(this, 0, {});
  if (!connection.ok()) return connection.status();
  const uint64_t start = NowNanos();
  for (int i = 0; i < options_.servers; ++i) {
    const Status found = (*connection)->FindOnce(keys_.LoadedKey(keys_.FirstRankOf(i)));
    GANNET_RETURN_IF_ERROR(found);
    while (!server(i).xstore()->model_statistics().caught_up) {
      GANNET_RETURN_IF_ERROR(CheckStop(stop, "models were trained"));
      if (NowNanos() - start > static_cast<uint64_t>(absl::ToInt64Nanoseconds(kTrainingTime))) {
        return absl::DeadlineExceededError(
            absl::StrFormat("server %d has not trained its model in %s", i, absl::FormatDuration(kTrainingTime)));
      }
      SleepForNanos(kLookEveryNanos);
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet::ycsb
