// RemoteDex: a client of a B-link tree whose inner nodes and leaves come from the page cache (dex.h).
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "index/blink/separator_notices.h"
#include "index/blink/tree_client.h"
#include "index/dex/dex.h"
#include "index/dex/paths.h"

namespace gannet::index::dex {

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class RemoteDex final : public blink::TreeClient<Keys> {
 public:
  using Base = blink::TreeClient<Keys>;
  using typename Base::Image;
  using typename Base::Key;
  using typename Base::LeafCopy;

  RemoteDex(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const DexClientOptions& options)
      : RemoteDex(channel, owner, id, options,
                  options.shared != nullptr ? options.shared : MakeDexCache(options.cache_bytes)) {}

  void Forget(const index::Key& key) override;
  ReadEstimate Estimate(std::span<const index::Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;

 private:
  using Base::fill_;
  using Base::kMostReads;
  using Base::leaves_;
  using typename Base::Cut;

  RemoteDex(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const DexClientOptions& options,
            const std::shared_ptr<SharedPages>& pages)
      : Base(channel, owner, id, options, pages, {.expected_fill = Keys::kSlots / 2.0, .caches_leaves = true}),
        paths_(pages->cache(), pages->tree()) {}

  rdma::GlobalAddress ExpectLeaf(const Key& key) override;
  size_t LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                    std::span<rdma::GlobalAddress, kMostReads> leaves) override;
  rdma::MethodId describe_method() const override { return kDescribe; }
  blink::PathCache<Keys>* paths() override {
    paths_.set_root(this->root_);
    return &paths_;
  }
  // The copies of inner nodes have no slots, so a transaction that splits a leaf leaves that to the owner.
  std::unique_ptr<shared_leaf::SplitNotices<Keys>> NewSplitNotices() override {
    return std::make_unique<blink::SeparatorNotices<Keys>>(&leaves_, &this->editor_, nullptr);
  }
  bool CachedLeafOf(const Key& key, LeafCopy* leaf) override { return paths_.FindLeaf(Keys::At(key), leaf); }
  bool CachedLeaf(rdma::GlobalAddress leaf, Image* image) override { return paths_.LoadLeaf(leaf, image); }
  void KeepLeaf(const LeafCopy& leaf) override { paths_.KeepLeaf(leaf); }
  void ForgetLeaf(rdma::GlobalAddress leaf) override { paths_.Forget(leaf); }

  mutable Paths<Keys> paths_;
};

}  // namespace gannet::index::dex
