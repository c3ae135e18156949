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

Status CheckOptions(const ClusterOptions& o) {
  const auto wrong = [](const std::string& what) { return absl::InvalidArgumentError(what); };
  if (o.server_threads < 1) return wrong(absl::StrFormat("%d server threads: at least 1", o.server_threads));
  if (o.keys < static_cast<uint64_t>(o.servers) || o.keys >= uint64_t{1} << 32) {
    return wrong(absl::StrFormat("%d keys: at least one for each server, and less than 2^32", o.keys));
  }
  if (o.value_bytes < kMinValueBytes || o.value_bytes > kMaxValueBytes) {
    return wrong(absl::StrFormat("values of %d bytes: from %d to %d", o.value_bytes, kMinValueBytes, kMaxValueBytes));
  }
  if (index::FindIndexKind(o.index) == nullptr) {
    return wrong(absl::StrFormat("index is %d, which is not an IndexKind", static_cast<int>(o.index)));
  }
  if (o.values_in_entries && (o.value_bytes != kWordBytes || !index::EntryOf(o.index).traits.holds_values)) {
    return wrong(
        absl::StrFormat("values of %d bytes in the entries of %s: needs values of %d bytes, and an index "
                        "whose entries hold whole keys (xstore, blink, rolex)",
                        o.value_bytes, index::EntryOf(o.index).name, kWordBytes));
  }
  if (o.partitioned && o.keys < KeyPart::LeastKeys(o.servers, o.machines)) {
    return wrong(
        absl::StrFormat("%d keys in %d parts at each of %d servers: some have none", o.keys, o.machines, o.servers));
  }
  if (o.keeping != index::shared_leaf::Keeping::kNone &&
      !(o.partitioned && o.values_in_entries && index::EntryOf(o.index).traits.has_claims &&
        o.index_rights == IndexRights::kClients)) {
    return wrong(absl::StrCat("kept leaves: needs partitioned keys, values in the entries, and ",
                              index::KindsWith(&index::IndexTraits::has_claims), ", which clients change"));
  }
  if (o.durability != DurabilityMode::kNone && (o.values_in_entries || o.disk == nullptr)) {
    return wrong("durability: writes to records are logged, on a disk; values in entries have no version");
  }
  if (const auto own = index::ReadOwnOptions(index::EntryOf(o.index), o.index_options); !own.ok()) {
    return own.status();
  }
  if (!(o.fill > 0 && o.fill <= 1)) return wrong(absl::StrFormat("leaves filled to %g: above 0, at most 1", o.fill));
  return absl::OkStatus();
}

}  // namespace

ServerOptions ServerOptionsOf(const ClusterOptions& options, const KeySpace& keys, int server) {
  return {.index = options.index,
          .index_rights = options.index_rights,
          .expected_keys = keys.FirstRankOf(server + 1) - keys.FirstRankOf(server),
          .value_bytes = options.value_bytes,
          .values_in_entries = options.values_in_entries,
          .fill = options.fill,
          .sub_models = options.sub_models,
          .trainers = options.trainers,
          .index_options = options.index_options,
          .durability = options.durability,
          .disk = options.disk};
}

Machine::~Machine() {
  if (own_node != nullptr) own_node->Shutdown();
  if (own_epochs != nullptr) own_epochs->Stop();
}

Cluster::Cluster(rdma::Fabric* fabric, const ClusterOptions& options)
    : fabric_(fabric), options_(options), keys_(options.key_form, options.keys, options.servers) {}

Cluster::~Cluster() = default;

StatusOr<std::unique_ptr<Cluster>> Cluster::Create(rdma::Fabric* fabric, const ClusterOptions& options) {
  const int nodes = options.colocated ? options.servers : options.servers + options.machines;
  if (options.servers < 1 || options.machines < 1 || nodes != fabric->num_nodes() ||
      (options.colocated && options.machines != options.servers)) {
    return absl::InvalidArgumentError(absl::StrFormat("%d servers and %d machines%s on a fabric of %d nodes",
                                                      options.servers, options.machines,
                                                      options.colocated ? ", colocated," : "", fabric->num_nodes()));
  }
  GANNET_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<Cluster> cluster(new Cluster(fabric, options));
  GANNET_RETURN_IF_ERROR(cluster->OpenServers());
  for (int i = 0; i < options.machines; ++i) {
    Server* const server = options.colocated ? cluster->servers_[static_cast<size_t>(i)].get() : nullptr;
    if (server != nullptr) {
      cluster->AddMachine(server);
    } else {
      GANNET_RETURN_IF_ERROR(cluster->OpenMachine(static_cast<rdma::NodeId>(options.servers + i)));
    }
    Machine& machine = cluster->machine(i);
    GANNET_RETURN_IF_ERROR(cluster->GiveBoard(&machine, server != nullptr ? server->slab() : machine.own_slab.get()));
  }
  return cluster;
}

StatusOr<std::unique_ptr<Cluster>> Cluster::Attach(rdma::Fabric* fabric, rdma::NodeId node,
                                                   const ClusterOptions& options) {
  if (options.servers < 1 || node < options.servers || node >= fabric->num_nodes()) {
    return absl::InvalidArgumentError(absl::StrFormat("a machine at node %d with %d servers on a fabric of %d nodes",
                                                      node, options.servers, fabric->num_nodes()));
  }
  GANNET_RETURN_IF_ERROR(CheckOptions(options));
  if (options.partitioned) {
    return absl::InvalidArgumentError("partitioned keys: the machines and servers must be in this process");
  }
  if (options.durability == DurabilityMode::kSync) {
    return absl::InvalidArgumentError("durability: a client waits for the disks of servers of its process only");
  }
  ClusterOptions one_machine = options;
  one_machine.machines = 1;
  one_machine.colocated = false;
  std::unique_ptr<Cluster> cluster(new Cluster(fabric, one_machine));
  GANNET_RETURN_IF_ERROR(cluster->OpenMachine(node));
  return cluster;
}

Status Cluster::OpenServers() {
  for (int i = 0; i < options_.servers; ++i) {
    auto server = Server::Create(fabric_, static_cast<rdma::NodeId>(i), ServerOptionsOf(options_, keys_, i));
    if (!server.ok()) return server.status();
    servers_.push_back(*std::move(server));
  }
  return absl::OkStatus();
}

Status Cluster::OpenMachine(rdma::NodeId id) {
  auto machine = std::make_unique<Machine>();
  auto node = fabric_->Attach(id);
  if (!node.ok()) return node.status();
  machine->own_node = *std::move(node);
  machine->node = machine->own_node.get();
  machine->own_slab = std::make_unique<rdma::SlabAllocator>(machine->node);
  auto epochs = rdma::EpochManager::Create(fabric_, machine->node, machine->own_slab.get());
  if (!epochs.ok()) return epochs.status();
  machine->own_epochs = *std::move(epochs);
  machine->epochs = machine->own_epochs.get();
  machines_.push_back(std::move(machine));
  return absl::OkStatus();
}

void Cluster::AddMachine(Server* server) {
  auto machine = std::make_unique<Machine>();
  machine->node = &server->node();
  machine->epochs = &server->epochs();
  machines_.push_back(std::move(machine));
}

Status Cluster::GiveBoard(Machine* machine, rdma::SlabAllocator* slab) const {
  if (!options_.partitioned || !index::EntryOf(options_.index).traits.has_claims) return absl::OkStatus();
  const StatusOr<std::byte*> board = rdma::SlabCache(slab).Allocate(index::kBoardBytes);
  if (!board.ok()) return board.status();
  machine->claims = std::make_unique<index::shared_leaf::ClaimHolder>(machine->node, *board, /*process=*/1);
  machine->claims->set_keeping(options_.keeping);
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
  for (const auto& machine : machines_) {
    if (machine->own_epochs != nullptr) GANNET_RETURN_IF_ERROR(machine->own_epochs->Start());
  }
  if (!index::EntryOf(options_.index).traits.learned || !options_.train_models) return absl::OkStatus();
  // The training has a thread of its own, because a simulated thread permanently belongs to the node whose channel it
  // polls.
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
    while (true) {
      const StatusOr<index::XStore::ModelStatistics> model = (*connection)->ModelOf(static_cast<rdma::NodeId>(i));
      if (!model.ok()) return model.status();
      if (model->caught_up) break;
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

StatusOr<std::vector<ServerReport>> Cluster::Report() {
  std::vector<ServerReport> reports;
  if (has_servers()) {
    for (const auto& server : servers_) reports.push_back(server->Report());
    return reports;
  }
  auto connection = Connection::Open(this, 0, {});
  if (!connection.ok()) return connection.status();
  for (int i = 0; i < options_.servers; ++i) {
    rdma::Channel* const channel = &(*connection)->channel();
    StatusOr<ServerReport> report = (*connection)->worker().BlockOn(AskReport(channel, static_cast<rdma::NodeId>(i)));
    if (!report.ok()) return report.status();
    reports.push_back(*std::move(report));
  }
  return reports;
}

}  // namespace gannet::ycsb
