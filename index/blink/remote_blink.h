// RemoteBlink: a client of a B-link tree. Its cache has inner nodes (inner_cache.h).
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "index/blink/blink.h"
#include "index/blink/separator_notices.h"
#include "index/blink/shared_cache.h"
#include "index/blink/tree_client.h"

namespace gannet::index::blink {

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class RemoteBlink final : public TreeClient<Keys> {
 public:
  using Base = TreeClient<Keys>;
  using typename Base::Key;

  RemoteBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const BlinkClientOptions& options)
      : RemoteBlink(channel, owner, id, options,
                    options.shared != nullptr ? options.shared : MakeBlinkCache(options.cache_bytes)) {}

  ReadEstimate Estimate(std::span<const index::Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;

 private:
  using Base::editor_;
  using Base::fill_;
  using Base::kMostReads;
  using Base::leaves_;
  using Base::owner_;
  using typename Base::Cut;
  using typename Base::Entry;
  using Reading = SharedNodes::Reading<Keys>;

  RemoteBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const BlinkClientOptions& options,
              const std::shared_ptr<SharedNodes>& cache)
      : Base(channel, owner, id, options, cache, {.expected_fill = Keys::kSlots / 2.0}), paths_(cache.get()) {}

  rdma::GlobalAddress ExpectLeaf(const Key& key) override {
    // Others may have filled the cache, and this client does not know the schema yet.
    return this->is_ready() ? ChildFor(key) : rdma::GlobalAddress();
  }
  size_t LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                    std::span<rdma::GlobalAddress, kMostReads> leaves) override;
  rdma::MethodId describe_method() const override { return kBlinkMethods; }
  PathCache<Keys>* paths() override { return &paths_; }
  std::unique_ptr<shared_leaf::SplitNotices<Keys>> NewSplitNotices() override {
    return std::make_unique<SeparatorNotices<Keys>>(&leaves_, &editor_, &paths_.nodes());
  }
  // The child at the lowest level that is cached, and covers the key if the cache is right; null if that is no leaf.
  rdma::GlobalAddress ChildFor(const Key& key) const;

  mutable SharedPaths<Keys> paths_;
};

}  // namespace gannet::index::blink
