// The environment of an index test: two nodes, threads of the owner and of a client, and records that hold their keys.
// Both nodes are in this process; or, if the program's main says so, the client is in a process of its own
// (client_process.h).
//
//   IndexCluster cluster({});
//   auto index = HashIndex::Create(cluster.owner().service.get(), 1, options);
//   RegisterHashMethods(cluster.owner().service.get());
//   cluster.Serve();
//   OwnerThread owner(&cluster);
//   EpochGuard guard(owner.epoch());
//   (*index)->Insert(owner.context(), key, owner.NewRecord(key), nullptr);
//
// A record here is alive while its state word is even, in place of what transactions do with it: a client with the
// cached address of a removed record can detect that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/coro/async.h"
#include "base/coro/worker.h"
#include "index/index.h"
#include "index/record_header.h"
#include "index/service.h"
#include "index/witness_word.h"
#include "rdma/epoch.h"
#include "rdma/slab.h"
#include "tests/index/client_process.h"
#include "tests/rdma/test_fabric.h"

namespace gannet::index {

// An address in place of a record's, for tests that read no records.
inline rdma::GlobalAddress FakeRecord(uint64_t key) {
  return rdma::GlobalAddress(0, 64 * (key % 100000 + 1));
}

// Node 0 owns the index, node 1 is its client.
class IndexCluster {
 public:
  struct Options {
    bool adversarial = false;
    uint64_t bytes_per_node = uint64_t{256} << 20;
    uint64_t seed = 1;
    Connector connect = nullptr;  // for ClientThread::Connect
    // Makes a fabric in front of that of the cluster. Null: there is none. Only with the client in this process.
    std::function<std::unique_ptr<rdma::Fabric>(rdma::Fabric* inner)> wrap = nullptr;
  };
  struct Member {
    std::unique_ptr<rdma::Node> node;
    std::unique_ptr<rdma::SlabAllocator> slab;
    std::unique_ptr<rdma::EpochManager> epochs;
    std::unique_ptr<IndexService> service;
  };

  // Any failure is a failed check, because these are tests.
  explicit IndexCluster(const Options& options);
  // The client's part of a cluster, in its own process.
  IndexCluster(std::unique_ptr<rdma::Fabric> fabric, Connector connect);
  ~IndexCluster();
  IndexCluster(const IndexCluster&) = delete;
  IndexCluster& operator=(const IndexCluster&) = delete;

  // Starts the owner's server thread; handlers must be registered before. Indexes may be added later.
  void Serve();
  // Starts threads that advance the epoch periodically.
  void StartEpochs();
  // Advances the epoch until everything retired before is free (if no participant is inside an old epoch).
  void PassGracePeriod();

  // The node, or the owner, dies at once.
  void Kill(rdma::NodeId node);
  void KillOwner() { Kill(0); }

  Member& owner() { return members_[0]; }
  Member& client() { return members_[1]; }
  const Connector& connector() const { return connect_; }
  // Null: the client is in this process.
  ClientProcess* client_process() { return client_process_.get(); }
  // The owner's memory at `address`.
  std::byte* At(rdma::GlobalAddress address) { return owner().node->memory().data() + address.offset(); }
  // True if the word still has the set of keys seen.
  bool Valid(const Witness& witness) { return IsSameSet(LoadWord(At(witness.word)), witness.seen); }

 private:
  // Attaches the members of this process.
  void Open(const std::vector<rdma::NodeId>& here);

  rdma::TestFabric made_;
  std::unique_ptr<rdma::Fabric> outer_;
  rdma::Fabric* fabric_;
  Connector connect_;
  std::unique_ptr<ClientProcess> client_process_;
  std::vector<rdma::NodeId> here_;
  Member members_[2];
  std::unique_ptr<rdma::Channel> epoch_channels_[2];
};

// Holds a participant or a ClientThread inside the epoch.
template <class T>
class EpochGuard {
 public:
  explicit EpochGuard(T* participant) : participant_(participant) { participant_->Enter(); }
  ~EpochGuard() { participant_->Leave(); }
  EpochGuard(const EpochGuard&) = delete;
  EpochGuard& operator=(const EpochGuard&) = delete;

 private:
  T* participant_;
};

// The resources of one thread at the owner. Not thread-safe.
class OwnerThread {
 public:
  explicit OwnerThread(IndexCluster* cluster);

  Context& context() { return context_; }
  rdma::EpochManager::Participant* epoch() { return epoch_.get(); }

  // Makes a live record that holds `key`.
  rdma::GlobalAddress NewRecord(const Key& key, uint32_t payload_bytes = 8);
  // Marks a record that is in no index as dead; its memory is reused after the grace period.
  void RetireRecord(rdma::GlobalAddress record);

 private:
  IndexCluster* cluster_;
  std::unique_ptr<rdma::SlabCache> slab_;
  std::unique_ptr<rdma::EpochManager::Participant> epoch_;
  Context context_;
};

// The resources of one thread of the client or, if the client is another process, of a thread there. Not thread-safe.
class ClientThread {
 public:
  explicit ClientThread(IndexCluster* cluster);

  // These are available only if the client is in this process:
  rdma::Channel* channel() { return channel_.get(); }
  rdma::EpochManager::Participant* epoch() { return epoch_.get(); }
  coro::Worker* worker() { return &worker_; }

  // Connects with Options::connect; one index client per thread. It must not outlive this.
  StatusOr<std::unique_ptr<RemoteIndex>> Connect(IndexId id);
  void Enter();
  void Leave();

  template <class T>
  T Await(coro::Task<T> task) {
    return worker_.BlockOn(std::move(task));
  }
  template <class T>
  T Await(coro::Async<T> async) {
    return worker_.BlockOn(ToTask(std::move(async)));
  }

  // Looks a key up as a transaction does: an address that the index did not verify is verified by the record's header.
  StatusOr<FindResult> Find(RemoteIndex* index, const Key& key);
  // Settles one result of a FindMany in the same way.
  StatusOr<FindResult> Settle(RemoteIndex* index, const Key& key, FindResult result);
  // True if the word, READ now, still has the value seen.
  bool Valid(const Witness& witness);

 private:
  template <class T>
  static coro::Task<T> ToTask(coro::Async<T> async) {
    co_return co_await async;
  }

  // Asks the client's process.
  StatusOr<FindResult> AskForResult(Ask what, const Key& key, const FindResult* settle);

  IndexCluster* cluster_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<rdma::Channel> channel_;
  std::unique_ptr<rdma::EpochManager::Participant> epoch_;
  coro::Worker worker_;
};

}  // namespace gannet::index
