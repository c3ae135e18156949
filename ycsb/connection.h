// Connection: what one client thread has: a channel, its own index client for every server, a place in the grace
// period, and the worker that runs its coroutines.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/coro/worker.h"
#include "base/status.h"
#include "index/index.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "ycsb/cluster.h"
#include "ycsb/location_cache.h"

namespace gannet::ycsb {

struct CacheOptions {
  size_t location_bytes = 1 << 20;  // hash: of the location cache, of each thread and server
  index::XCacheOptions xcache;      // xstore: of each thread (or machine) and server
  // xstore: of a LocationCache before the model, of each thread (or machine); 0: none.
  size_t xstore_location_bytes = 0;
  // xstore: the threads of a machine share their caches. In simulations only: the cache is not thread-safe.
  bool share_xcache = false;
};

// Belongs to the thread that uses it, which must be the one that opened it.
class Connection {
 public:
  // On `machine` of `cluster`, which must outlive it.
  static StatusOr<std::unique_ptr<Connection>> Open(Cluster* cluster, int machine, const CacheOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  rdma::Channel& channel() { return *channel_; }
  coro::Worker& worker() { return worker_; }
  rdma::EpochManager::Participant& epoch() { return *epoch_; }
  const KeySpace& keys() const { return cluster_->keys(); }
  size_t value_bytes() const { return cluster_->options().value_bytes; }
  index::RemoteIndex& index(rdma::NodeId server) { return *indexes_[server]; }
  // Null: none.
  LocationCache* locations() { return locations_.get(); }
  // Of all its index clients; without caches that are shared.
  index::ClientStatistics statistics() const;

  // Looks the key up and waits for it. For the first thing that a client asks.
  Status FindOnce(uint64_t key);
  // The same for many keys of one server. Cancelled soon after *stop (may be null) has become true.
  Status FindAll(rdma::NodeId server, std::span<const index::Key> keys, const std::atomic<bool>* stop);

 private:
  explicit Connection(Cluster* cluster) : cluster_(cluster) {}

  Cluster* cluster_;
  std::unique_ptr<rdma::Channel> channel_;
  std::unique_ptr<rdma::EpochManager::Participant> epoch_;
  std::vector<std::unique_ptr<index::RemoteIndex>> indexes_;
  std::shared_ptr<LocationCache> locations_;
  coro::Worker worker_;  // its coroutines go before what they use
};

}  // namespace gannet::ycsb
