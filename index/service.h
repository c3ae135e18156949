// IndexService: a node's indexes by number, and the contexts in which RPC handlers use them. One per node.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/slab.h"

namespace gannet::index {

class ClaimBoards;
class Trainer;

// Thread-safe.
class IndexService {
 public:
  // All three must outlive this.
  IndexService(rdma::Node* node, rdma::SlabAllocator* slab, rdma::EpochManager* epochs);
  ~IndexService();
  IndexService(const IndexService&) = delete;
  IndexService& operator=(const IndexService&) = delete;

  // `index` must outlive this service's RPCs, or be removed before. AlreadyExists if the number is taken.
  Status Add(IndexId id, LocalIndex* index);
  // The number may be given to another index. A call for the index may be in progress until AwaitGuards returns.
  void Remove(IndexId id);
  // Null if there is none: an id from a peer may be wrong. A handler that uses the index takes a Guard first.
  LocalIndex* Find(IndexId id) const;

  // A Context for the duration of one handler call, inside the epoch (Enter was called). Cheap: contexts are reused.
  class Guard {
   public:
    explicit Guard(IndexService* service);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    Context& context() { return *context_; }

   private:
    IndexService* service_;
    Context* context_;
  };

  // Waits for the end of all guards that there are at the call. A handler that takes its guard later finds nothing that
  // was removed before the call. The caller has no guard.
  void AwaitGuards();

  rdma::Node& node() { return *node_; }
  const rdma::Fabric& fabric() const { return epochs_->fabric(); }
  // Called for methods that several kinds share, and each registers. True for the first caller. Call it before
  // Node::Serve.
  bool MayRegister(rdma::MethodId method) { return registered_.insert(method).second; }
  // The boards of the nodes that claim leaves here.
  ClaimBoards& boards() { return *boards_; }
  // Trains the models of the node's learned indexes, one at a time.
  const std::shared_ptr<Trainer>& trainer() { return trainer_; }
  rdma::SlabAllocator& slab() { return *slab_; }
  rdma::EpochManager& epochs() { return *epochs_; }

 private:
  struct OwnedContext;

  rdma::Node* node_;
  std::shared_ptr<Trainer> trainer_;
  const std::unique_ptr<ClaimBoards> boards_;
  rdma::SlabAllocator* slab_;
  rdma::EpochManager* epochs_;
  std::set<rdma::MethodId> registered_;
  mutable SharedMutex indexes_mutex_;
  std::vector<LocalIndex*> indexes_;
  Mutex contexts_mutex_;  // guards the members below
  std::vector<std::unique_ptr<OwnedContext>> contexts_;
  std::vector<Context*> idle_contexts_;
};

}  // namespace gannet::index
