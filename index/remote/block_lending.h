// The calls by which clients borrow blocks of an index (leaf_blocks.h) from its owner.
//
//   kExchange   index (2), wanted (2), number of returned blocks (2), each: address (8), word (8)
//            -> number of lent blocks (2), each: address (8), word (8)
//
// An index that only its owner changes (IndexRights::kOwnerOnly) lends none: PermissionDenied. Its clients call
// (change_calls.h).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "index/index.h"
#include "index/remote/block_source.h"
#include "index/service.h"
#include "rdma/fabric.h"

namespace gannet::index::remote {

inline constexpr rdma::MethodId kExchange = kBlockMethods;

// An index of shared leaves.
class BlockLender {
 public:
  virtual ~BlockLender() = default;
  virtual LeafBlocks& blocks() = 0;
};

// Serves the borrowers of all indexes of `service` that are BlockLenders. Before Node::Serve; once is enough.
void RegisterBlockLending(IndexService* service);

// The blocks that a client has borrowed and not used yet, and those that it has to give back.
class BorrowedBlocks final : public BlockSource {
 public:
  BorrowedBlocks(rdma::Channel* channel, rdma::NodeId owner, IndexId index, absl::Duration timeout)
      : channel_(channel), owner_(owner), index_(index), timeout_(timeout) {}

  coro::Task<StatusOr<FreeBlock>> Take() override;
  void PutBack(const FreeBlock& block) override { free_.push_back(block); }
  coro::Task<void> Return(FreeBlock block) override;

 private:
  // Of one call. A split needs one; an order of leaves that fill up needs the next ones soon.
  static constexpr size_t kAtOnce = 16;

  coro::Task<Status> Exchange(size_t wanted);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId index_;
  absl::Duration timeout_;
  std::vector<FreeBlock> free_;
  std::vector<FreeBlock> dead_;
};

}  // namespace gannet::index::remote
