// RemoteBlink: a client of a B-link tree. Its cache has inner nodes (inner_cache.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "index/blink/blink.h"
#include "index/blink/editor.h"
#include "index/blink/separator_notices.h"
#include "index/blink/shared_cache.h"
#include "index/shared_leaf/leaf_client.h"

namespace gannet::index::blink {

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class RemoteBlink final : public shared_leaf::LeafClient<Keys> {
 public:
  using Base = shared_leaf::LeafClient<Keys>;
  using typename Base::Key;
  using typename Base::Schema;

  RemoteBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const BlinkClientOptions& options)
      : RemoteBlink(channel, owner, id, options,
                    options.shared != nullptr ? options.shared : MakeBlinkCache(options.cache_bytes)) {}

  ReadEstimate Estimate(std::span<const index::Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;

 private:
  using Base::channel_;
  using Base::fill_;
  using Base::kMostReads;
  using Base::leaves_;
  using Base::owner_;
  using typename Base::Cut;
  using typename Base::Entry;
  using Reading = SharedNodes::Reading<Keys>;

  RemoteBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const BlinkClientOptions& options,
              const std::shared_ptr<SharedNodes>& cache)
      : Base(channel, owner, id, options, cache, {.expected_fill = Keys::kSlots / 2.0}), nodes_(cache.get()) {}

  rdma::GlobalAddress ExpectLeaf(const Key& key) override {
    // Others may have filled the cache, and this client does not know the schema yet.
    return this->is_ready() ? CachedLeaf(key) : rdma::GlobalAddress();
  }
  size_t LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                    std::span<rdma::GlobalAddress, kMostReads> leaves) override;
  coro::Task<StatusOr<Schema>> Describe() override;
  shared_leaf::LeafEditor<Keys>* MakeEditor() override {
    return &editor_.emplace(&leaves_, &this->schema(), root_, &this->blocks(), &nodes_);
  }
  std::unique_ptr<shared_leaf::SplitNotices<Keys>> NewSplitNotices() override {
    return std::make_unique<SeparatorNotices<Keys>>(&leaves_, &editor_, &nodes_);
  }
  // The child at the lowest level that is cached, and covers the key if the cache is right; null if that is no leaf.
  rdma::GlobalAddress CachedLeaf(const Key& key) const;

  mutable SharedNodes::View<Keys> nodes_;
  rdma::GlobalAddress root_;
  std::optional<Editor<Keys>> editor_;
};

}  // namespace gannet::index::blink
