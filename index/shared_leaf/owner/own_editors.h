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
#include "index/shared_leaf/leaf/posting.h"

namespace gannet::index::shared_leaf {

// The owner's own blocks, with the context of a call.
class OwnBlocks final : public BlockSource {
 public:
  explicit OwnBlocks(LeafBlocks* blocks) : blocks_(blocks) {}
  coro::Task<StatusOr<FreeBlock>> Take(uint64_t /*connection*/) override {
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

// Thread-safe. OfKind: LeafEditor<Keys>, or what changes leaves of another format.
template <class OfKind>
class OwnEditors {
 public:
  using Editor = OfKind;
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
  // An idle editor, or a new one, for a call with `context`. If the node has no channel left for another one, this
  // waits for one of those that there are: a change of an index may be a part of a commit that must not fail any more.
  class Pooled {
   public:
    Pooled(OwnEditors* editors, Context* context) : editors_(editors) {
      own_ = editors->TakeIdle(/*wait=*/false);
      if (own_ == nullptr) status_ = editors->Make(&own_);
      if (own_ == nullptr) own_ = editors->TakeIdle(/*wait=*/true);
      if (own_ == nullptr) return;
      status_ = absl::OkStatus();
      own_->channel.blocks.set_context(context);
      // An editor may take other blocks, too.
      if constexpr (requires { own_->editor->set_context(context); }) own_->editor->set_context(context);
    }
    ~Pooled() {
      if (own_ == nullptr) return;
      {
        std::lock_guard lock(editors_->mutex_);
        editors_->idle_.push_back(std::move(own_));
      }
      editors_->is_idle_.notify_one();
    }
    Pooled(const Pooled&) = delete;
    Pooled& operator=(const Pooled&) = delete;

    // If this is not ok, there is no channel, and nothing else may be called.
    const Status& status() const { return status_; }
    Editor& operator*() { return *own_->editor; }
    Editor* operator->() { return own_->editor.get(); }
    LeafChannel& leaves() { return own_->channel.leaves; }
    coro::Worker& worker() { return own_->channel.worker; }
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
  // Null: there is none, or with `wait`, none was ever made.
  std::unique_ptr<Own> TakeIdle(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait && made_ > 0) {
      Sometimes<"leaf: a change by the owner waits for a channel">();
      is_idle_.wait(lock, [this] { return !idle_.empty(); });
    }
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Own> own = std::move(idle_.back());
    idle_.pop_back();
    return own;
  }
  Status Make(std::unique_ptr<Own>* own) {
    auto channel = service_->node().OpenChannel();
    if (!channel.ok()) return channel.status();
    own->reset(new Own{{*std::move(channel), blocks_, patience_, &service_->boards()}, nullptr});
    (*own)->editor = make_editor_(&(*own)->channel);
    std::lock_guard lock(mutex_);
    ++made_;
    return absl::OkStatus();
  }

  IndexService* service_;
  LeafBlocks* blocks_;
  absl::Duration patience_;
  MakeEditor make_editor_;
  Mutex mutex_;  // guards the members below
  CondVar is_idle_;
  std::vector<std::unique_ptr<Own>> idle_;
  size_t made_ = 0;
};

}  // namespace gannet::index::shared_leaf
