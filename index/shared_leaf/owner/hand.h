// HandPool: by what the owner of an index changes its leaves: channels, with an editor each. A thread takes one for a
// call, because on some fabrics it has to use its own NIC, and waits until its verbs have completed.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"
#include "index/service.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/change/leaf_channel.h"

namespace gannet::index::shared_leaf {

// The owner's own blocks, with the context of a call.
class OwnBlocks final : public BlockSource {
 public:
  explicit OwnBlocks(LeafBlocks* blocks) : blocks_(blocks) {}
  coro::Task<StatusOr<FreeBlock>> Take() override { co_return blocks_->Take(*context_); }
  void PutBack(const FreeBlock& block) override { blocks_->PutBack(block); }
  coro::Task<void> Return(FreeBlock block) override {
    blocks_->Return(block);
    co_return;
  }
  // For the calls that follow. Null: they take no block.
  void set_context(Context* context) { context_ = context; }

 private:
  LeafBlocks* blocks_;
  Context* context_ = nullptr;
};

// A channel with what an editor of leaves needs. Used by one thread at a time.
struct Hand {
  Hand(std::unique_ptr<rdma::Channel> own, LeafBlocks* of_index, absl::Duration patience)
      : channel(std::move(own)),
        leaves(channel.get(), nullptr, channel->node(), patience, of_index->fence_lines(), of_index),
        blocks(of_index) {
    worker.AddPoller([this] { return channel->Poll(); });
  }

  std::unique_ptr<rdma::Channel> channel;
  LeafChannel leaves;
  OwnBlocks blocks;
  coro::Worker worker;
};

// Thread-safe. Editor: made of a Hand and `Index`, which must outlive the pool.
template <class Index, class Editor>
class HandPool {
 public:
  HandPool(IndexService* service, LeafBlocks* blocks, absl::Duration patience, const Index* index)
      : service_(service), blocks_(blocks), patience_(patience), index_(index) {}

 private:
  struct Own {
    Own(std::unique_ptr<rdma::Channel> channel, LeafBlocks* blocks, absl::Duration patience, const Index* index)
        : hand(std::move(channel), blocks, patience), editor(&hand, index) {}

    Hand hand;
    Editor editor;
  };

 public:
  // One of the pool's hands, or a new one, for a call with `context`.
  class Lease {
   public:
    Lease(HandPool* pool, Context* context) : pool_(pool) {
      {
        std::lock_guard lock(pool->mutex_);
        if (!pool->idle_.empty()) {
          own_ = std::move(pool->idle_.back());
          pool->idle_.pop_back();
        }
      }
      if (own_ == nullptr) {
        auto channel = pool->service_->node().OpenChannel();
        if (!channel.ok()) {
          status_ = channel.status();
          return;
        }
        own_ = std::make_unique<Own>(*std::move(channel), pool->blocks_, pool->patience_, pool->index_);
      }
      own_->hand.blocks.set_context(context);
    }
    ~Lease() {
      if (own_ == nullptr) return;
      std::lock_guard lock(pool_->mutex_);
      pool_->idle_.push_back(std::move(own_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    // Not ok: there is no channel, and nothing else may be called.
    const Status& status() const { return status_; }
    Editor& editor() { return own_->editor; }
    template <class T>
    T Run(coro::Task<T> task) {
      return own_->hand.worker.BlockOn(std::move(task));
    }

   private:
    HandPool* pool_;
    std::unique_ptr<Own> own_;
    Status status_;
  };

 private:
  IndexService* service_;
  LeafBlocks* blocks_;
  absl::Duration patience_;
  const Index* index_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Own>> idle_;
};

}  // namespace gannet::index::shared_leaf
