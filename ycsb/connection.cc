#include "ycsb/connection.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/stop.h"
#include "index/registry.h"
#include "index/xstore/xstore.h"
#include "ycsb/record.h"

namespace gannet::ycsb {
namespace {

// A group commit takes several times as long, and one READ is for all coroutines of the thread.
constexpr uint64_t kLookAtEpochEveryNanos = 50'000;
constexpr uint64_t kDurableWithinNanos = 10'000'000'000;

coro::Task<Status> Find(index::RemoteIndex* index, uint64_t key) {
  coro::Async<StatusOr<index::FindResult>> find = index->Find(key);
  const StatusOr<index::FindResult> found = co_await find;
  co_return found.status();
}

coro::Task<Status> FindMany(index::RemoteIndex* index, std::span<const index::Key> keys,
                            std::span<index::FindResult> results) {
  Status found = co_await index->FindMany(keys, results);
  co_return found;
}

index::XCacheOptions XCacheFor(const Machine& machine, size_t server, const CacheOptions& options) {
  index::XCacheOptions xcache = options.xcache;
  if (!machine.xcaches.empty()) xcache.shared = machine.xcaches[server];
  return xcache;
}

// Null if no such cache is configured.
std::shared_ptr<LocationCache> LocationsFor(Machine* machine, const CacheOptions& options) {
  if (options.xstore_location_bytes == 0) return nullptr;
  if (!options.share_locations) return std::make_shared<LocationCache>(options.xstore_location_bytes);
  if (machine->locations == nullptr) {
    machine->locations = std::make_shared<LocationCache>(options.xstore_location_bytes);
  }
  return machine->locations;
}

}  // namespace

StatusOr<std::unique_ptr<Connection>> Connection::Open(Cluster* cluster, int machine, const CacheOptions& options) {
  std::unique_ptr<Connection> connection(new Connection(cluster));
  Machine& home = cluster->machine(machine);
  auto channel = home.node->OpenChannel();
  if (!channel.ok()) return channel.status();
  connection->channel_ = *std::move(channel);
  connection->epochs_ = home.epochs;
  connection->chooser_.Resize(1, static_cast<size_t>(cluster->options().servers), txn::ReadPathPolicy::kAdaptive);
  connection->random_ = Random(Mix64(uint64_t{connection->channel_->node()} << 16 | connection->channel_->index()));
  connection->queues_ = home.queues != nullptr ? home.queues : std::make_shared<LeafQueues>();
  connection->read_queues_ =
      home.read_queues != nullptr ? home.read_queues : std::make_shared<LeafQueues>(ReadDelegation::kMostReads);
  auto epoch = rdma::EpochManager::Participant::Join(home.epochs);
  if (!epoch.ok()) return epoch.status();
  connection->epoch_ = *std::move(epoch);
  const index::IndexKindEntry& kind = index::EntryOf(cluster->options().index);
  for (int i = 0; i < cluster->options().servers; ++i) {
    const auto server = static_cast<rdma::NodeId>(i);
    rdma::Channel* const through = connection->channel_.get();
    auto index = kind.connect(through, server, kIndex,
                              {.rights = cluster->options().index_rights,
                               .location_cache_bytes = options.location_bytes,
                               .values_in_entries = connection->values_in_entries(),
                               .node = home.node,
                               .shared_cache = connection->CacheFor(home, static_cast<size_t>(i), options.index_bytes),
                               .claims = home.claims.get(),
                               .own = XCacheFor(home, static_cast<size_t>(i), options)});
    if (!index.ok()) return index.status();
    connection->indexes_.push_back(*std::move(index));
    connection->AddCombiners(connection->indexes_.back().get());
  }
  connection->durable_.resize(static_cast<size_t>(cluster->options().servers));
  if (kind.traits.learned) connection->locations_ = LocationsFor(&home, options);
  connection->worker_.AddPoller([through = connection->channel_.get()] { return through->Poll(); });
  return connection;
}

Connection::~Connection() = default;

std::shared_ptr<index::SharedCache> Connection::CacheFor(const Machine& machine, size_t server, size_t max_bytes) {
  if (!machine.caches.empty()) return machine.caches[server];
  const index::IndexKindEntry& kind = index::EntryOf(cluster_->options().index);
  if (kind.traits.learned || kind.make_cache == nullptr) return nullptr;
  return own_caches_.emplace_back(kind.make_cache(max_bytes));
}

void Connection::AddCombiners(index::RemoteIndex* index) {
  auto* const leaves = dynamic_cast<LeafCombiner::Leaves*>(index);
  const bool combines = leaves != nullptr && leaves->changes_leaves() && !leaves->keeps_leaves();
  combiners_.push_back(combines ? std::make_unique<LeafCombiner>(leaves, queues_.get(), &worker_) : nullptr);
  auto* const dolphin = dynamic_cast<WriteCombiner::Index*>(index);
  const bool is_changed = dolphin != nullptr && dolphin->changes_leaves();
  write_combiners_.push_back(is_changed ? std::make_unique<WriteCombiner>(dolphin, queues_.get(), &worker_) : nullptr);
  delegations_.push_back(dolphin != nullptr ? std::make_unique<ReadDelegation>(dolphin, read_queues_.get(), &worker_)
                                            : nullptr);
}

coro::Task<StatusOr<index::FindResult>> Connection::FindEntry(uint64_t key) {
  const rdma::NodeId server = keys().OwnerOf(key);
  if (delegations_[server] != nullptr) {
    StatusOr<index::FindResult> found = co_await delegations_[server]->Find(key);
    co_return found;
  }
  coro::Async<StatusOr<index::FindResult>> find = indexes_[server]->Find(index::Key(key));
  StatusOr<index::FindResult> found = co_await find;
  co_return found;
}

coro::Task<Status> Connection::Insert(uint64_t key, rdma::GlobalAddress entry) {
  const rdma::NodeId server = keys().OwnerOf(key);
  if (combiners_[server] != nullptr) {
    const StatusOr<std::optional<index::Change>> combined = co_await combiners_[server]->Insert({key, entry.bits()});
    if (!combined.ok()) co_return combined.status();
    if (combined->has_value()) co_return absl::OkStatus();
  }
  if (write_combiners_[server] != nullptr) {
    const StatusOr<bool> combined = co_await write_combiners_[server]->Insert(key, entry.bits());
    if (!combined.ok() || *combined) co_return combined.status();
  }
  const StatusOr<index::Change> inserted = co_await indexes_[server]->Insert(key, entry);
  co_return inserted.status();
}

coro::Task<Status> Connection::Replace(uint64_t key, rdma::GlobalAddress entry) {
  const rdma::NodeId server = keys().OwnerOf(key);
  if (combiners_[server] != nullptr) {
    const StatusOr<std::optional<index::Change>> combined = co_await combiners_[server]->Update({key, entry.bits()});
    if (!combined.ok()) co_return combined.status();
    if (combined->has_value()) co_return absl::OkStatus();
  }
  if (write_combiners_[server] != nullptr) {
    const StatusOr<bool> combined = co_await write_combiners_[server]->Update(key, entry.bits());
    if (!combined.ok() || *combined) co_return combined.status();
  }
  Status replaced = co_await indexes_[server]->Replace(key, {}, entry);
  co_return replaced;
}

coro::Task<Status> Connection::HandBackLeaves(rdma::NodeId server, uint64_t from, uint64_t to) {
  auto* const leaves = dynamic_cast<LeafCombiner::Leaves*>(indexes_[server].get());
  if (leaves == nullptr) co_return absl::OkStatus();
  Status handed = co_await leaves->HandBackLeaves(from, to);
  co_return handed;
}

Status Connection::HandBackIfLast(Machine* machine) {
  if (machine->running.fetch_sub(1) > 1) return absl::OkStatus();
  for (size_t server = 0; server < indexes_.size(); ++server) {
    GANNET_RETURN_IF_ERROR(worker_.BlockOn(HandBackLeaves(static_cast<rdma::NodeId>(server), 0, UINT64_MAX)));
  }
  return absl::OkStatus();
}

index::ClientStatistics Connection::statistics() const {
  index::ClientStatistics sum;
  for (const auto& index : indexes_) sum += index->statistics();
  for (const auto& cache : own_caches_) sum.cache_bytes += cache->bytes();
  if (locations_ != nullptr && locations_.use_count() == 1) sum.cache_bytes += locations_->bytes();
  return sum;
}

coro::Task<Status> Connection::AwaitDurable(rdma::NodeId server, uint64_t epoch) {
  DurableEpoch& known = durable_[server];
  const uint64_t end = NowNanos() + kDurableWithinNanos;
  while (known.epoch < epoch) {
    const uint64_t now = NowNanos();
    if (now > end) co_return absl::DeadlineExceededError("a write was not durable within 10 s: the disk fails");
    if (now < known.next_look_nanos) {
      co_await worker_.SleepUntil(known.next_look_nanos);
      continue;
    }
    known.next_look_nanos = now + kLookAtEpochEveryNanos;
    uint64_t durable = 0;
    const Status read = co_await channel_->Read(cluster_->server(server).durable_epoch(), &durable, kWordBytes);
    if (!read.ok()) co_return read;
    known.epoch = std::max(known.epoch, durable);
  }
  co_return absl::OkStatus();
}

StatusOr<index::XStore::ModelStatistics> Connection::ModelOf(rdma::NodeId server) {
  if (cluster_->has_servers()) return cluster_->server(server).xstore()->model_statistics();
  return worker_.BlockOn(AskModel(channel_.get(), server));
}

Status Connection::FindOnce(uint64_t key) {
  const uint64_t entered = epoch_->Enter();
  Status found = worker_.BlockOn(Find(indexes_[keys().OwnerOf(key)].get(), key));
  epoch_->Leave(entered);
  return found;
}

Status Connection::FindAll(rdma::NodeId server, std::span<const index::Key> keys, const std::atomic<bool>* stop) {
  constexpr size_t kAtOnce = 1024;
  std::vector<index::FindResult> results(std::min(keys.size(), kAtOnce));
  for (; !keys.empty(); keys = keys.subspan(std::min(keys.size(), kAtOnce))) {
    GANNET_RETURN_IF_ERROR(CheckStop(stop, "caches were filled"));
    const size_t n = std::min(keys.size(), kAtOnce);
    const uint64_t entered = epoch_->Enter();
    Status found = worker_.BlockOn(FindMany(indexes_[server].get(), keys.first(n), std::span(results).first(n)));
    epoch_->Leave(entered);
    GANNET_RETURN_IF_ERROR(found);
  }
  return absl::OkStatus();
}

}  // namespace gannet::ycsb
