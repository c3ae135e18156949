// BlinkIndex: the owner's side of a B-link tree.
//
// The owner reads nodes by its CPU, and changes them by the same code as clients (shared_leaf/owner/hand.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "index/blink/blink.h"
#include "index/blink/descent.h"
#include "index/blink/editor.h"
#include "index/blink/separator_table.h"
#include "index/index.h"
#include "index/parted_load.h"
#include "index/service.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/owner/hand.h"
#include "index/shared_leaf/owner/own_leaves.h"
#include "rdma/rpc.h"

namespace gannet::index::blink {

class BlinkTree : public LocalIndex, public shared_leaf::BlockLender {
 public:
  // What a client asks for first (kDescribe).
  virtual void Describe(rdma::WireWriter& writer) const = 0;
};

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class BasicBlinkIndex final : public BlinkTree, public PartedLoader, private shared_leaf::OwnLeafFinder<Keys> {
 public:
  using Schema = typename Keys::Schema;

  static StatusOr<std::unique_ptr<BasicBlinkIndex>> Create(IndexService* service, const Schema& schema,
                                                           const BlinkOptions& options);
  ~BasicBlinkIndex() override;

  FindResult Find(const index::Key& key) override { return leaves_.Find(key); }
  void FindMany(std::span<const Key> keys, std::span<FindResult> results) override;
  StatusOr<Change> Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override;
  StatusOr<Change> Remove(Context& context, const Key& key, rdma::GlobalAddress record) override;
  Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  Status Scan(const ScanRange& range, ScanResult* result) override { return leaves_.Scan(range, result); }
  Status ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                  ScanResult* result) override {
    return leaves_.ScanStep(range, most_witnesses, position, result);
  }
  ScanPosition PositionBehind(const index::Key& key, bool reverse) const override {
    return Leaves::PositionBehind(key, reverse);
  }
  bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) override {
    return leaves_.Walk(position, records);
  }
  Status BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) override;
  StatusOr<std::unique_ptr<PartedLoad>> BeginLoad(Context& context, LoadRuns entries, double fill,
                                                  size_t most_parts) override;
  Statistics statistics() override;
  Status CheckStructure() override;
  void RepairAfter(rdma::NodeId node) override;

  shared_leaf::LeafBlocks& blocks() override { return blocks_; }
  void Describe(rdma::WireWriter& writer) const override;
  rdma::GlobalAddress root() const { return root_; }

 private:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using Entry = typename Keys::Entry;
  using Image = typename Keys::Image;
  using Leaves = shared_leaf::OwnLeaves<Keys>;
  using Place = shared_leaf::LeafPlaceOf<Keys>;

  struct OwnEditor : Editor<Keys> {
    OwnEditor(shared_leaf::Hand* hand, const BasicBlinkIndex* index)
        : Editor<Keys>(&hand->leaves, &index->schema_, index->root_, &hand->blocks, nullptr) {}
  };
  using Hands = shared_leaf::HandPool<BasicBlinkIndex, OwnEditor>;

  BasicBlinkIndex(IndexService* service, const Schema& schema, const BlinkOptions& options);

  // The node of `level` that covers the point. DataLoss: there is no way to it.
  Status LocateAt(uint8_t level, const Point& point, Place* place) const;
  Status Locate(const Point& point, Place* leaf) const override { return LocateAt(0, point, leaf); }
  // The same by hints, for level 0. False: they lead to no leaf that covers the point.
  bool LocateByHints(const Point& point, Place* leaf) const;
  // Calls `visit` for every node of every level that the index reaches, locked or not, from the top down and from left
  // to right. DataLoss: it cannot be walked. While others change the index it meets every node that is part of it
  // during the whole walk.
  Status ForEachLinked(const typename Leaves::Visit& visit) const;
  class Load;

  IndexService* service_;
  Schema schema_;
  shared_leaf::LeafBlocks blocks_;
  Leaves leaves_;
  rdma::GlobalAddress root_;
  // Null for integer keys: their inner nodes hold the separators.
  std::unique_ptr<SeparatorTable> separators_;
  Hands hands_;
};

using BlinkIndex = BasicBlinkIndex<IntegerKeys>;

}  // namespace gannet::index::blink
