// The calls by which clients borrow blocks of an index (leaf_blocks.h) from its owner.
//
//   kExchange   index (2), pool (2), wanted (2), blocks that died, blocks that were not used
//            -> lent blocks
//
// Blocks: their number (2), and each one's address (8) and word (8). Pool: which blocks of the index (BlockLender).
//
// An index that only its owner changes (IndexRights::kOwnerOnly) lends none: PermissionDenied. Its clients call
// (change_calls.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "index/index.h"
#include "index/service.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/blocks/block_stock.h"
#include "rdma/fabric.h"

namespace gannet::index::shared_leaf {

inline constexpr rdma::MethodId kExchange = kBlockMethods;

// An index of shared leaves.
class BlockLender {
 public:
  virtual ~BlockLender() = default;
  virtual LeafBlocks& blocks() = 0;
  // The blocks of this number: 0 are those of the leaves, others may be those of inner nodes, each of another size;
  // less than kMostPools. Null: the index has no such pool.
  virtual LeafBlocks* pool(size_t number) { return number == 0 ? &blocks() : nullptr; }
  // Ends claims of leaves (claim/claim.h), which have these words `before`. `after`: the word that a leaf has then; the
  // same word: it keeps its claim, or has changed. InvalidArgument: there is no such leaf, or the word is no claim.
  virtual Status EndClaims(std::span<WordChange> claims) = 0;
};

// Serves the borrowers of all indexes of `service` that are BlockLenders. Before Node::Serve; once is enough.
void RegisterBlockLending(IndexService* service);

// A client's way to the blocks that the clients of its process have borrowed (block_stock.h). What is more than they
// soon need goes back to the owner with the next call. Not thread-safe; coroutines of the channel's worker may use it
// at once.
class BorrowedBlocks final : public BlockSource {
 public:
  // `node`: of the channel; null if connections are never lost. `stock`: of the pool; must outlive this.
  BorrowedBlocks(rdma::Channel* channel, rdma::Node* node, rdma::NodeId owner, IndexId index, absl::Duration timeout,
                 BlockStock* stock, size_t pool = 0)
      : channel_(channel),
        node_(owner == channel->node() ? nullptr : node),
        owner_(owner),
        index_(index),
        timeout_(timeout),
        stock_(stock),
        pool_(pool) {}

  coro::Task<StatusOr<FreeBlock>> Take(uint64_t connection) override;
  void PutBack(const FreeBlock& block) override { stock_->Add(block.connection, {&block, 1}); }
  coro::Task<void> Return(FreeBlock block) override;
  coro::Task<void> Refill() override;

 private:
  uint64_t Connection() const { return node_ == nullptr ? 0 : node_->ConnectionTo(owner_); }
  // Borrows `wanted` blocks, and gives back the surplus. *lent: as many as there were.
  coro::Task<Status> Exchange(uint64_t connection, size_t wanted, std::vector<FreeBlock>* lent);

  rdma::Channel* channel_;
  rdma::Node* node_;
  rdma::NodeId owner_;
  IndexId index_;
  absl::Duration timeout_;
  BlockStock* stock_;
  size_t pool_;
};

}  // namespace gannet::index::shared_leaf
