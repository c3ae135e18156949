// Connection: the resources of one client thread: a channel, an index client for every server, an epoch participant,
// and the worker that runs its coroutines.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/coro/worker.h"
#include "base/random.h"
#include "base/status.h"
#include "index/dex/cache/page_cache.h"
#include "index/index.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "txn/path/measured_access.h"
#include "txn/path/offload_chooser.h"
#include "ycsb/cluster.h"
#include "ycsb/leaf_combiner.h"
#include "ycsb/leaf_queues.h"
#include "ycsb/location_cache.h"
#include "ycsb/read_delegation.h"
#include "ycsb/write_combiner.h"

namespace gannet::ycsb {

struct CacheOptions {
  size_t location_bytes = 1 << 20;  // hash: bytes of the location cache, per thread and server
  index::XCacheOptions xcache;      // xstore: per machine (or thread) and server
  // blink (inner nodes) and rolex (models): bytes of the cache per machine (or thread) and server; 0: the kind's
  // default.
  size_t index_bytes = 0;
  index::dex::PageCacheOptions pages;  // dex; but index_bytes of each server, if they are not 0
  // xstore: bytes of a LocationCache in front of the model, per thread (or machine); 0: none.
  size_t xstore_location_bytes = 0;
  bool share = true;  // xstore, blink, rolex: the threads of a machine share their caches
  // xstore: they also share their LocationCache. In simulations only: it is not thread-safe.
  bool share_locations = false;
};

// May be used only by the thread that opened it.
class Connection {
 public:
  // Opens a connection on `machine` of `cluster`, which must outlive it.
  static StatusOr<std::unique_ptr<Connection>> Open(Cluster* cluster, int machine, const CacheOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  rdma::Channel& channel() { return *channel_; }
  coro::Worker& worker() { return worker_; }
  // Worker::Yield for operations, which may be measured.
  txn::MeasuredYield Yield() { return {channel_.get(), &worker_}; }
  // Chooses paths for one table, and counts them.
  txn::OffloadChooser& chooser() { return chooser_; }
  const txn::OffloadChooser& chooser() const { return chooser_; }
  rdma::NodeLoad LoadOf(rdma::NodeId server) const { return epochs_->LoadOf(server); }
  Random& random() { return random_; }
  rdma::EpochManager::Participant& epoch() { return *epoch_; }
  const KeySpace& keys() const { return cluster_->keys(); }
  bool values_in_entries() const { return cluster_->options().values_in_entries; }
  bool keeps_leaves() const { return cluster_->options().keeping != index::shared_leaf::Keeping::kNone; }
  bool awaits_durability() const { return cluster_->options().durability == DurabilityMode::kSync; }
  size_t value_bytes() const { return cluster_->options().value_bytes; }
  index::RemoteIndex& index(rdma::NodeId server) { return *indexes_[server]; }
  // Finds a key in the index of its server. Lookups in leaves of Dolphin are combined with those of the other threads
  // of the machine.
  coro::Task<StatusOr<index::FindResult>> FindEntry(uint64_t key);
  // Inserts an entry into the index of the key's server, or replaces the key's. Changes of leaves by verbs are combined
  // with those of the other threads of the machine.
  coro::Task<Status> Insert(uint64_t key, rdma::GlobalAddress entry);
  coro::Task<Status> Replace(uint64_t key, rdma::GlobalAddress entry);
  // Hands back the leaves of a server that this machine keeps (shared_leaf/leaf_client.h).
  coro::Task<Status> HandBackLeaves(rdma::NodeId server, uint64_t from, uint64_t to);
  // A thread of the connection's machine uses its caches no more. The last one hands back all leaves.
  Status HandBackIfLast(Machine* machine);
  // Null if there is none.
  LocationCache* locations() { return locations_.get(); }
  // Sum over all its index clients, without shared caches.
  index::ClientStatistics statistics() const;

  // Returns when `epoch` of the server's log is durable.
  coro::Task<Status> AwaitDurable(rdma::NodeId server, uint64_t epoch);

  // The learned model of a server. Asked by a call if the server is another process.
  StatusOr<index::XStore::ModelStatistics> ModelOf(rdma::NodeId server);

  // Looks the key up and waits for the result. For the first operation of a client.
  Status FindOnce(uint64_t key);
  // Does what FindOnce does, for many keys of one server. Cancelled soon after *stop (may be null) has become true.
  Status FindAll(rdma::NodeId server, std::span<const index::Key> keys, const std::atomic<bool>* stop);

 private:
  explicit Connection(Cluster* cluster) : cluster_(cluster) {}
  // The machine's cache, or one of this connection. Null for kinds that have no such caches, or (xstore) their own.
  std::shared_ptr<index::SharedCache> CacheFor(const Machine& machine, size_t server, size_t max_bytes);

  // The next ones are of the next server.
  void AddCombiners(index::RemoteIndex* index);

  // What its clients know of a server's log, and when one of them READs it again.
  struct DurableEpoch {
    uint64_t epoch = 0;
    uint64_t next_look_nanos = 0;
  };

  Cluster* cluster_;
  const rdma::EpochManager* epochs_ = nullptr;
  txn::OffloadChooser chooser_;
  Random random_{1};
  std::unique_ptr<rdma::Channel> channel_;
  std::unique_ptr<rdma::EpochManager::Participant> epoch_;
  std::vector<std::shared_ptr<index::SharedCache>> own_caches_;  // those that other threads do not share
  std::vector<std::unique_ptr<index::RemoteIndex>> indexes_;
  std::shared_ptr<LeafQueues> queues_;       // of changes
  std::shared_ptr<LeafQueues> read_queues_;  // of lookups
  // By server; null for other kinds of leaves, or where clients do not change them.
  std::vector<std::unique_ptr<LeafCombiner>> combiners_;
  std::vector<std::unique_ptr<WriteCombiner>> write_combiners_;
  std::vector<std::unique_ptr<ReadDelegation>> delegations_;
  std::shared_ptr<LocationCache> locations_;
  std::vector<DurableEpoch> durable_;  // by server
  coro::Worker worker_;                // destroyed first: its coroutines use the other members
};

}  // namespace gannet::ycsb
