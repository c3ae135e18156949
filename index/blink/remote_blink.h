// RemoteBlink: a client of a B-link tree. It reads and changes the tree by verbs; it calls the owner for the place of
// the root, and for blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "index/blink/blink.h"
#include "index/blink/editor.h"
#include "index/blink/inner_cache.h"
#include "index/index.h"
#include "index/remote/block_lending.h"
#include "index/remote/leaf_channel.h"

namespace gannet::index::blink {

inline constexpr rdma::MethodId kDescribe = kBlinkMethods;  // index (2) -> offset of the root (8)

class RemoteBlink final : public RemoteIndex {
 public:
  RemoteBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const BlinkClientOptions& options)
      : channel_(channel),
        owner_(owner),
        id_(id),
        options_(options),
        leaves_(channel, options.node, owner, options.patience),
        blocks_(channel, owner, id, options.call_timeout),
        cache_(options.cache_bytes) {}

  coro::Async<StatusOr<FindResult>> Find(const Key& key) override { return FindOne(key.integer()); }
  coro::Task<Status> FindMany(std::span<const Key> keys, std::span<FindResult> results) override;
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override;
  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) override;
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) override;
  coro::Task<Status> InsertMany(std::span<Insertion> insertions, uint64_t connection) override;
  ReadEstimate Estimate(std::span<const Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;
  void Forget(const Key&) override {}
  ClientStatistics statistics() const override;

 private:
  static constexpr size_t kMostReads = 16;  // leaves of one posting

  // Makes the editor, which needs the place of the root.
  coro::Task<Status> Prepare();
  coro::Task<StatusOr<FindResult>> FindOne(uint64_t key);
  static FindResult ResultOf(const Place& place, uint64_t key);
  // The child at the lowest level that is cached, and covers the key if the cache is right; null if that is no leaf.
  rdma::GlobalAddress CachedLeaf(uint64_t key) const;
  // Reads leaves that follow each other, as the cache knows them from *next on.
  coro::Task<StatusOr<bool>> ScanCached(const ScanRange& range, size_t end, ScanResult* result, uint64_t* next);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId id_;
  BlinkClientOptions options_;
  remote::LeafChannel leaves_;
  remote::BorrowedBlocks blocks_;
  InnerCache cache_;
  std::optional<Editor> editor_;
  ClientStatistics statistics_;
};

}  // namespace gannet::index::blink
