// RemoteDex: a client of a B-link tree whose inner nodes and leaves come from the page cache (dex.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "index/blink/tree_client.h"
#include "index/dex/dex.h"
#include "index/dex/fresh_separators.h"
#include "index/dex/kept_leaves.h"
#include "index/dex/paths.h"

namespace gannet::index::dex {

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class RemoteDex final : public blink::TreeClient<Keys>, private shared_leaf::LeafWatch {
 public:
  using Base = blink::TreeClient<Keys>;
  using typename Base::CopyState;
  using typename Base::Image;
  using typename Base::Key;
  using typename Base::LeafCopy;

  RemoteDex(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const DexClientOptions& options)
      : RemoteDex(channel, owner, id, options,
                  options.shared != nullptr ? options.shared : MakeDexCache(options.cache_bytes)) {}

  bool keeps_leaves() const override {
    return !Keys::kKeysElsewhere && claims_ != nullptr && claims_->keeping() != shared_leaf::Keeping::kNone;
  }
  coro::Task<Status> HandBackLeaves(Key from, Key to) override {
    if (!keeps_leaves()) co_return absl::OkStatus();
    Status handed = co_await kept_.HandBack(from, to);
    co_return handed;
  }
  void Forget(const index::Key& key) override;
  ReadEstimate Estimate(std::span<const index::Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;

 private:
  using Base::fill_;
  using Base::kMostReads;
  using Base::leaves_;
  using typename Base::Cut;

  RemoteDex(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const DexClientOptions& options,
            const std::shared_ptr<SharedPages>& pages);

  rdma::GlobalAddress ExpectLeaf(const Key& key) override;
  size_t LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                    std::span<rdma::GlobalAddress, kMostReads> leaves) override;
  rdma::MethodId describe_method() const override { return kDescribe; }
  blink::PathCache<Keys>* paths() override {
    paths_.set_root(this->root_);
    return &paths_;
  }
  std::unique_ptr<shared_leaf::SplitNotices<Keys>> NewSplitNotices() override {
    return std::make_unique<FreshSeparators<Keys>>(&leaves_, &this->editor_, &paths_);
  }

  std::optional<FindResult> FindInCopy(const Key& key, CopyState* state) override;
  bool FindCopy(const Key& key, LeafCopy* leaf, CopyState* state) override;
  bool CopyOf(rdma::GlobalAddress leaf, Image* image, CopyState* state) override;
  void KeepLeaf(const LeafCopy& leaf) override;
  bool has_claims_to_make() const override { return !to_claim_.empty() || asks_ranges_ || paths_.has_kept(); }
  coro::Task<void> MakeClaims(std::vector<WordChange>* made) override;
  coro::Task<StatusOr<bool>> ChangeKept(shared_leaf::KeptEdit<Keys> edit) override;
  void NoteCurrent(const LeafCopy& leaf, const CopyState& copy, uint64_t posted_nanos) override;
  void ForgetLeaf(rdma::GlobalAddress leaf) override { paths_.Forget(leaf); }

  std::optional<Note> NoteLock(rdma::GlobalAddress leaf, uint64_t state, uint64_t connection) override;
  void NoteChanged(rdma::GlobalAddress leaf) override { paths_.Forget(leaf); }
  void NoteRelease(const Release& release) override;

  rdma::NodeId self() const { return this->channel_->node(); }
  // Tells whether the copy of the leaf is good. It has this state word and grant, and was read
  // before.
  CopyState StateOf(rdma::GlobalAddress leaf, uint64_t word, shared_leaf::Grant grant);
  // Withdraws the announcements that were not settled, also if the coroutine is destroyed while it waits: otherwise no
  // thread of this process could change these leaves any more.
  struct Announced {
    ~Announced() {
      for (const LeafCopy& leaf : std::span(leaves).subspan(settled)) paths->Withdraw(leaf.address);
    }
    Paths<Keys>* paths;
    std::vector<LeafCopy> leaves;
    size_t settled = 0;
  };
  // The ranges may be old, and this client is to ask for them before it claims more leaves.
  bool MustAskForRanges();
  coro::Task<void> AskForRanges();
  // The node that is to claim, or keep, the leaf of this key, as far as this one knows. *until: where the next range
  // begins; nullopt: this is the last. Null: there are no ranges.
  std::optional<rdma::NodeId> ClaimerOf(const Key& key, std::optional<Key>* until);
  // This node is to claim, or keep, the leaf.
  bool IsToClaim(const LeafCopy& leaf);
  coro::Task<void> ClaimOrKeep(std::vector<WordChange>* made);
  // Has the owner end what other nodes have claimed of these leaves: their ranges are older. A leaf gets the word that
  // it has then, and the change is appended to *made. Leaves that stay claimed leave the vector.
  coro::Task<void> EndOthersClaims(std::vector<LeafCopy>* leaves, std::vector<WordChange>* made);

  mutable Paths<Keys> paths_;
  const std::shared_ptr<SharedPages> pages_;
  shared_leaf::ClaimHolder* const claims_;  // null: this client claims nothing
  KeptLeaves<Keys> kept_;
  // The ranges of pages_, by number.
  uint64_t ranges_number_ = 0;
  std::vector<std::pair<Key, rdma::NodeId>> ranges_;
  std::vector<LeafCopy> to_claim_;
  bool asks_ranges_ = false;
  uint64_t ask_again_nanos_ = 0;  // the owner has taken no board, or told no ranges
};

}  // namespace gannet::index::dex
