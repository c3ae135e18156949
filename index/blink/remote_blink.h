// RemoteBlink: a client of a B-link tree. It reads and changes the tree by verbs; it calls the owner for the place of
// the root, and for blocks. If only the owner may change the tree, it calls for changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "index/blink/blink.h"
#include "index/blink/editor.h"
#include "index/blink/separator_notices.h"
#include "index/blink/shared_cache.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/change/leaf_insert.h"
#include "index/shared_leaf/leaf/leaf_scan.h"
#include "rdma/rpc.h"

namespace gannet::index::blink {

// index (2) -> offset of the root (8), schema of the keys (shared_leaf/leaf/schema_wire.h)
inline constexpr rdma::MethodId kDescribe = kBlinkMethods;

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class RemoteBlink final : public RemoteIndex, public shared_leaf::CombinedLeaves<Keys> {
 public:
  RemoteBlink(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const BlinkClientOptions& options)
      : channel_(channel),
        owner_(owner),
        id_(id),
        options_(options),
        leaves_(channel, options.node, owner, options.patience,
                Keys::kKeysElsewhere ? shared_leaf::FenceLinesFor(options.max_key_bytes) : 0, nullptr,
                shared_leaf::LeafChannel::As::kClient),
        calls_(channel, owner, id, options.call_timeout),
        shares_cache_(options.shared != nullptr),
        cache_(shares_cache_ ? options.shared : MakeBlinkCache(options.cache_bytes)),
        blocks_(channel, options.node, owner, id, options.call_timeout, &cache_->blocks()),
        nodes_(cache_->template Of<Keys>()) {}

  coro::Async<StatusOr<FindResult>> Find(const index::Key& key) override { return FindOne(Keys::KeyFrom(key)); }
  coro::Task<Status> FindMany(std::span<const index::Key> keys, std::span<FindResult> results) override;
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override;
  coro::Task<StatusOr<Change>> Insert(index::Key key, rdma::GlobalAddress record) override;
  coro::Task<StatusOr<Change>> Remove(index::Key key, rdma::GlobalAddress record) override;
  std::unique_ptr<InsertBatch> NewInsertBatch() override {
    if (!changes_leaves()) return nullptr;
    return std::make_unique<shared_leaf::LeafInserts<Keys>>(
        &leaves_, &blocks_, this, std::make_unique<SeparatorNotices<Keys>>(&leaves_, &editor_, &nodes_));
  }
  coro::Task<Status> Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  ReadEstimate Estimate(std::span<const index::Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;
  void Forget(const index::Key&) override {}
  ClientStatistics statistics() const override;

 private:
  using Key = typename Keys::Key;
  using Cut = typename Keys::Cut;
  using Entry = typename Keys::Entry;
  using Keyed = typename Keys::Keyed;
  using Image = typename Keys::Image;
  using Place = shared_leaf::LeafPlaceOf<Keys>;
  using Schema = typename Keys::Schema;
  using Reading = typename SharedInnerCache<Keys>::Reading;

  static constexpr size_t kMostReads = 16;  // leaves of one posting

  // LeafFinder
  rdma::GlobalAddress ExpectLeaf(const Key& key) override {
    // Others may have filled the cache, and this client does not know the schema yet.
    return editor_.has_value() ? CachedLeaf(key) : rdma::GlobalAddress();
  }
  coro::Task<Status> LocateLeaf(Key key, Place* place) override;
  size_t RoomIn(const Place& place) const override { return static_cast<size_t>(editor_->RoomIn(place)); }
  const Schema& schema() const override { return *schema_; }

  // CombinedLeaves
  shared_leaf::LeafChannel& leaves() override { return leaves_; }
  shared_leaf::BlockSource& blocks() override { return blocks_; }
  bool changes_leaves() const override { return options_.rights == IndexRights::kClients; }
  bool MaySplit(const Place& place) const override { return !editor_->IsRoot(place); }
  // Its separator is in no node yet.
  bool NoteSplit(const Keyed&) override { return false; }
  shared_leaf::SplitHint HintOf(std::span<const Keyed>) override { return std::nullopt; }
  coro::Task<StatusOr<shared_leaf::LeafLook>> ReadExpected(Key, rdma::GlobalAddress leaf, bool /*is_first*/,
                                                           Image* image) override {
    StatusOr<shared_leaf::LeafLook> look = co_await leaves_.Read(leaf, image);
    co_return look;
  }
  coro::Task<void> PublishSplits(std::vector<Keyed> rights, shared_leaf::SplitHint) override {
    for (const Keyed& right : rights) co_await editor_->InsertSeparator(1, right);
  }

  // Makes the editor, which needs the place of the root. InvalidArgument: the owner's index has other keys than this
  // client was told.
  coro::Task<Status> Prepare();
  coro::Task<StatusOr<FindResult>> FindOne(Key key);
  // The child at the lowest level that is cached, and covers the key if the cache is right; null if that is no leaf.
  rdma::GlobalAddress CachedLeaf(const Key& key) const;
  rdma::GlobalAddress TargetOf(const Image& image, int slot) const {
    return Keys::TargetOf(image.template entry<Entry>(slot), owner_);
  }
  size_t LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                    std::span<rdma::Operation, kMostReads> reads) const;
  // Reads leaves that follow each other, as the cache knows them from *next on.
  coro::Task<StatusOr<bool>> ScanCached(Key from, Key to, bool reverse, size_t end, ScanResult* result, Cut* next);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  IndexId id_;
  BlinkClientOptions options_;
  shared_leaf::LeafChannel leaves_;
  shared_leaf::ChangeCalls calls_;
  const bool shares_cache_;
  const std::shared_ptr<SharedNodes> cache_;
  shared_leaf::BorrowedBlocks blocks_;
  mutable typename SharedInnerCache<Keys>::View nodes_;
  std::optional<Schema> schema_;
  std::optional<Editor<Keys>> editor_;
  ClientStatistics statistics_;
  shared_leaf::LeafFill fill_{Keys::kSlots / 2.0};
};

}  // namespace gannet::index::blink
