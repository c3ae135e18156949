// RemoteDolphin: a client of an index of Dolphin. It caches inner nodes, READs leaves, and changes them by verbs; if
// only the owner may change the index, it calls for changes.
//
//   lookup            READ of the leaf. For a key that is absent, and for its witness, also [FAA of 0, READ]
//   scan              [FAA of 0, READ] of all leaves that the cache knows; then of the others, one by one
//   insert, ...       LeafChanger
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "index/dolphin/client_way.h"
#include "index/dolphin/dolphin.h"
#include "index/dolphin/editor.h"
#include "index/dolphin/holder_book.h"
#include "index/dolphin/keys.h"
#include "index/dolphin/leaf_inserts.h"
#include "index/dolphin/shared_inner.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/leaf/leaf_scan.h"

namespace gannet::index::dolphin {

template <class Keys>
class RemoteDolphin final : public RemoteIndex, private InsertParts<Keys> {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using Schema = typename Keys::Schema;
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;

  RemoteDolphin(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const DolphinClientOptions& options);

  coro::Async<StatusOr<FindResult>> Find(const index::Key& key) override { return FindOne(Keys::KeyFrom(key)); }
  coro::Task<Status> FindMany(std::span<const index::Key> keys, std::span<FindResult> results) override;
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override;
  coro::Task<StatusOr<Change>> Insert(index::Key key, rdma::GlobalAddress record) override;
  coro::Task<StatusOr<Change>> Remove(index::Key key, rdma::GlobalAddress record) override;
  coro::Task<Status> Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  std::unique_ptr<InsertBatch> NewInsertBatch() override;
  ReadEstimate Estimate(std::span<const index::Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;
  void Forget(const index::Key& key) override { doubtful_ = Keys::KeyFrom(key); }
  ClientStatistics statistics() const override;

  // The following serve engines outside of transactions (ycsb/write_combiner.h, ycsb/read_delegation.h).
  bool changes_leaves() const { return rights_ == IndexRights::kClients; }
  // Makes the editor. InvalidArgument: the owner's index has other keys than this client was told.
  coro::Task<Status> Prepare() override;
  Editor<Keys>& editor() { return *editor_; }
  // The leaf of the key by the cache of inner nodes; null: it has no way to it.
  rdma::GlobalAddress ExpectLeaf(const Key& key) { return way_->Expect(key); }
  // Does what FindMany does, for keys that are expected in this leaf: by one READ, as far as it has them.
  coro::Task<Status> FindIn(rdma::GlobalAddress leaf, std::span<const index::Key> keys, std::span<FindResult> results);

 private:
  using Lock = TernaryLock<Keys>;
  using For = typename Lock::For;
  using Leaf = typename Keys::Leaf;
  using Entry = typename Keys::Entry;
  static constexpr size_t kMostReads = Lock::kMostReads;
  static constexpr size_t kMostKeys = 64;  // of one posting of READs

  // What all clients have to know about the index.
  struct Described {
    Schema schema;
    rdma::GlobalAddress root;
    rdma::GlobalAddress first;  // leaf
  };

  // The functions of InsertParts.
  bool is_ready() const override { return editor_.has_value(); }
  Lock* lock() override { return &editor_->lock(); }
  ClientWay<Keys>* way() override { return &*way_; }
  const Schema& schema() const override { return described_->schema; }
  shared_leaf::BlockSource* blocks() override { return &blocks_; }

  coro::Task<StatusOr<Described>> Describe();
  coro::Task<StatusOr<FindResult>> FindOne(Key key);
  // The result by a leaf that was READ for `use`; nullopt: it takes more.
  std::optional<FindResult> ResultIn(const LeafCopy& leaf, const Key& key, For use) const;
  // Finds keys by one posting for their expected leaves, and notes which it has found. For kWitness: those that were
  // found absent.
  coro::Task<Status> FindExpected(std::span<const index::Key> keys, For use, std::span<rdma::GlobalAddress> leaves,
                                  std::span<FindResult> results, std::span<bool> done);
  // READs leaves that follow each other, as copies lead to them, from *next on. True: the scan is at its end.
  coro::Task<StatusOr<bool>> ScanExpected(Key from, Key to, bool reverse, size_t end, ScanResult* result,
                                          typename Keys::Cut* next);
  // Takes what a scan wants of a leaf. True: the scan is at its end.
  coro::Task<StatusOr<bool>> Take(LeafCopy* leaf, Key from, Key to, bool reverse, size_t end, ScanResult* result,
                                  typename Keys::Cut* next);
  double leaf_bytes() const;
  // The result for a key that a lookup could not decide by one READ.
  coro::Task<StatusOr<FindResult>> FindExactly(Key key);

  rdma::Channel* const channel_;
  const rdma::NodeId owner_;
  const IndexId id_;
  const absl::Duration call_timeout_;
  const size_t max_key_bytes_;
  const IndexRights rights_;
  const bool values_in_entries_;
  const bool shares_cache_;
  const std::shared_ptr<SharedInner> cache_;
  const std::shared_ptr<HolderBook> book_;
  rdma::Node* const node_;
  shared_leaf::LeafChannel leaves_;
  shared_leaf::BorrowedBlocks blocks_;
  shared_leaf::ChangeCalls calls_;
  shared_leaf::LeafFill fill_;
  ClientStatistics statistics_;
  std::optional<Described> described_;
  mutable std::optional<ClientWay<Keys>> way_;
  std::optional<Editor<Keys>> editor_;
  // The record to which the tag of this key has led was another's: its next lookup compares keys.
  std::optional<Key> doubtful_;
  std::vector<rdma::GlobalAddress> expected_;  // of a scan; not across a suspension
};

}  // namespace gannet::index::dolphin
