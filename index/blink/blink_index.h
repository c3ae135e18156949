// BlinkIndex: the owner's side of a B-link tree.
//
// The owner reads nodes by its CPU, and changes them by the same code as clients (remote/hand.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "index/backoff.h"
#include "index/blink/blink.h"
#include "index/blink/descent.h"
#include "index/blink/editor.h"
#include "index/blink/separator_table.h"
#include "index/index.h"
#include "index/remote/block_lending.h"
#include "index/remote/hand.h"
#include "index/remote/leaf_blocks.h"
#include "index/service.h"
#include "rdma/rpc.h"

namespace gannet::index::blink {

class BlinkTree : public LocalIndex, public remote::BlockLender {
 public:
  // What a client asks for first (kDescribe).
  virtual void Describe(rdma::WireWriter& writer) const = 0;
};

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class BasicBlinkIndex final : public BlinkTree {
 public:
  using Schema = typename Keys::Schema;

  static StatusOr<std::unique_ptr<BasicBlinkIndex>> Create(IndexService* service, const Schema& schema,
                                                           const BlinkOptions& options);
  ~BasicBlinkIndex() override;

  FindResult Find(const Key& key) override;
  void FindMany(std::span<const Key> keys, std::span<FindResult> results) override;
  StatusOr<Change> Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override;
  StatusOr<Change> Remove(Context& context, const Key& key, rdma::GlobalAddress record) override;
  Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  Status Scan(const ScanRange& range, ScanResult* result) override;
  Status ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                  ScanResult* result) override;
  ScanPosition PositionBehind(const Key& key, bool reverse) const override;
  bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) override;
  Status BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) override;
  Statistics statistics() override;
  Status CheckStructure() override;
  void RepairAfter(rdma::NodeId node) override;

  remote::LeafBlocks& blocks() override { return blocks_; }
  void Describe(rdma::WireWriter& writer) const override;
  rdma::GlobalAddress root() const { return root_; }

 private:
  using Key = typename Keys::Key;
  using Cut = typename Keys::Cut;
  using Point = typename Keys::Point;
  using Entry = typename Keys::Entry;
  using Image = typename Keys::Image;
  using Place = remote::LeafPlaceOf<Keys>;

  struct OwnEditor : Editor<Keys> {
    OwnEditor(remote::Hand* hand, const BasicBlinkIndex* index)
        : Editor<Keys>(&hand->leaves, &index->schema_, index->root_, &hand->blocks, nullptr) {}
  };
  using Hands = remote::HandPool<BasicBlinkIndex, OwnEditor>;

  BasicBlinkIndex(IndexService* service, const Schema& schema, const BlinkOptions& options);

  // Reads a node, also if it is locked. kDead also if there is no node at this address, or if it cannot be read for as
  // long as the patience lasts. A search has one patience for all of its nodes.
  remote::LeafLook Read(rdma::GlobalAddress address, Image* image, Patience* patience) const;
  remote::LeafLook Read(rdma::GlobalAddress address, Image* image) const {
    Patience patience(patience_nanos_);
    return Read(address, image, &patience);
  }
  // The node of `level` that covers the point. DataLoss: there is no way to it.
  Status Locate(const Point& point, uint8_t level, Place* place) const;
  // The same by hints, for level 0. False: they lead to no leaf that covers the point.
  bool LocateByHints(const Point& point, Place* leaf) const;
  // To the right sibling of a leaf. False: the right link leads elsewhere by now.
  bool GoRight(Place* place) const;
  // Part of a scan: from *next on, at most `limit` entries and `most_leaves` leaves. True: there may be more, from
  // *next.
  StatusOr<bool> ScanSome(const Key& from, const Key& to, bool reverse, size_t limit, size_t most_leaves,
                          ScanResult* result, Cut* next) const;
  // Calls `visit` for every node of every level that the index reaches, locked or not, from the top down and from left
  // to right. DataLoss: it cannot be walked. While others change the index it meets every node that is part of it
  // during the whole walk.
  Status ForEachLinked(const std::function<void(const Place&)>& visit) const;
  // For BulkLoad: makes an unlocked node of `entries`. `next_low`: low fence of the node to its right, if there is one.
  StatusOr<rdma::GlobalAddress> MakeNode(Context& context, uint8_t level, std::span<const Entry> entries,
                                         const Key& low, const std::optional<Key>& next_low, rdma::GlobalAddress right);

  IndexService* service_;
  Schema schema_;
  remote::LeafBlocks blocks_;
  uint64_t patience_nanos_;
  rdma::GlobalAddress root_;
  // Null for integer keys: their inner nodes hold the separators.
  std::unique_ptr<SeparatorTable> separators_;
  Hands hands_;
};

using BlinkIndex = BasicBlinkIndex<IntegerKeys>;

}  // namespace gannet::index::blink
