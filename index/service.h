// IndexService: a node's indexes by number, and the contexts in which RPC handlers use them. One per node.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"

namespace gannet::index {

// Thread-safe.
class IndexService {
 public:
  // All three must outlive this.
  IndexService(rdma::Node* node, rdma::SlabAllocator* slab, rdma::EpochManager* epochs);
  ~IndexService();
  IndexService(const IndexService&) = delete;
  IndexService& operator=(const IndexService&) = delete;

  // `index` must outlive this service's RPCs. AlreadyExists if the number is taken.
  Status Add(IndexId id, LocalIndex* index);
  // Null if there is none: an id from a peer may be wrong.
  LocalIndex* Find(IndexId id) const;

  // A Context for the duration of one handler call, inside the epoch (Enter was called). Cheap: contexts are reused.
  class Lease {
   public:
    explicit Lease(IndexService* service);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Context& context() { return *context_; }

   private:
    IndexService* service_;
    Context* context_;
  };

  rdma::Node& node() { return *node_; }
  rdma::SlabAllocator& slab() { return *slab_; }
  rdma::EpochManager& epochs() { return *epochs_; }

 private:
  struct OwnedContext;

  rdma::Node* node_;
  rdma::SlabAllocator* slab_;
  rdma::EpochManager* epochs_;
  mutable SharedMutex indexes_mutex_;
  std::vector<LocalIndex*> indexes_;
  Mutex contexts_mutex_;
  std::vector<std::unique_ptr<OwnedContext>> contexts_;
  std::vector<Context*> idle_contexts_;
};

}  // namespace gannet::index
