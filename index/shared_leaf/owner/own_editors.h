// OwnEditors: the editors by which the owner of an index changes its leaves, each over a channel of its own. A thread
// takes one for a call, because on some fabrics it has to use its own NIC, and waits until its verbs have completed.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/coro/worker.h"
#include "base/sometimes.h"
#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"
#include "index/service.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/change/leaf_editor.h"

namespace gannet::index::shared_leaf {

// The owner's own blocks, with the context of a call.
class OwnBlocks final : public BlockSource {
 public:
  explicit OwnBlocks(LeafBlocks* blocks) : blocks_(blocks) {}
  coro::Task<StatusOr<FreeBlock>> Take() override {
    if (context_ == nullptr) {
      Sometimes<"leaf: a call that takes no block meets a full inner node">();
      co_return absl::ResourceExhaustedError("this call takes no block");
    }
    co_return blocks_->Take(*context_);
  }
  void PutBack(const FreeBlock& block) override { blocks_->PutBack(block); }
  coro::Task<void> Return(FreeBlock block) override {
    blocks_->Return(block);
    co_return;
  }
  // Sets the context of the calls that follow. Null: these take no block. (A Replace needs none. But it may meet a
  // separator that is missing in a full inner node, which then stays missing.)
  void set_context(Context* context) { context_ = context; }

 private:
  LeafBlocks* blocks_;
  Context* context_ = nullptr;
};

// A channel with what an editor of leaves needs. Used by one thread at a time.
struct OwnChannel {
  OwnChannel(std::unique_ptr<rdma::Channel> own, LeafBlocks* of_index, absl::Duration patience, ClaimBoards* boards)
      : channel(std::move(own)),
        leaves(channel.get(), nullptr, channel->node(), patience, of_index->fence_lines(), of_index,
               LeafChannel::As::kOwner, boards),
        blocks(of_index) {
    worker.AddPoller([this] { return channel->Poll(); });
  }

  std::unique_ptr<rdma::Channel> channel;
  LeafChannel leaves;
  OwnBlocks blocks;
  coro::Worker worker;
  Posting posting;                // of a change that is made at once
  rdma::GlobalAddress last_leaf;  // that was changed so, or null
};

// Thread-safe.
template <class Keys>
class OwnEditors {
 public:
  using Editor = LeafEditor<Keys>;
  using MakeEditor = std::function<std::unique_ptr<Editor>(OwnChannel* channel)>;

  // Both pointers must outlive this.
  OwnEditors(IndexService* service, LeafBlocks* blocks, absl::Duration patience, MakeEditor make_editor)
      : service_(service), blocks_(blocks), patience_(patience), make_editor_(std::move(make_editor)) {}

 private:
  struct Own {
    OwnChannel channel;
    std::unique_ptr<Editor> editor;
  };

 public:
  // An idle editor, or a new one, for a call with `context`.
  class Pooled {
   public:
    Pooled(OwnEditors* editors, Context* context) : editors_(editors) {
      {
        std::lock_guard lock(editors->mutex_);
        if (!editors->idle_.empty()) {
          own_ = std::move(editors->idle_.back());
          editors->idle_.pop_back();
        }
      }
      if (own_ == nullptr) {
        auto channel = editors->service_->node().OpenChannel();
        if (!channel.ok()) {
          status_ = channel.status();
          return;
        }
        own_.reset(new Own{{*std::move(channel), editors->blocks_, editors->patience_, &editors->service_->boards()},
                           nullptr});
        own_->editor = editors->make_editor_(&own_->channel);
      }
      own_->channel.blocks.set_context(context);
    }
    ~Pooled() {
      if (own_ == nullptr) return;
      std::lock_guard lock(editors_->mutex_);
      editors_->idle_.push_back(std::move(own_));
    }
    Pooled(const Pooled&) = delete;
    Pooled& operator=(const Pooled&) = delete;

    // If this is not ok, there is no channel, and nothing else may be called.
    const Status& status() const { return status_; }
    Editor& operator*() { return *own_->editor; }
    Editor* operator->() { return own_->editor.get(); }
    LeafChannel& leaves() { return own_->channel.leaves; }
    Posting& posting() { return own_->channel.posting; }
    rdma::GlobalAddress& last_leaf() { return own_->channel.last_leaf; }
    template <class T>
    T Run(coro::Task<T> task) {
      return own_->channel.worker.BlockOn(std::move(task));
    }

   private:
    OwnEditors* editors_;
    std::unique_ptr<Own> own_;
    Status status_;
  };

 private:
  IndexService* service_;
  LeafBlocks* blocks_;
  absl::Duration patience_;
  MakeEditor make_editor_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Own>> idle_;
};

}  // namespace gannet::index::shared_leaf
