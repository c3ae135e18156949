// BlinkIndex: the owner's side of a B-link tree.
//
// The owner reads nodes by its CPU, and changes them by the same code as clients (remote/hand.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "index/blink/blink.h"
#include "index/blink/descent.h"
#include "index/blink/editor.h"
#include "index/index.h"
#include "index/remote/block_lending.h"
#include "index/remote/hand.h"
#include "index/remote/leaf_blocks.h"
#include "index/service.h"

namespace gannet::index::blink {

class BlinkIndex final : public LocalIndex, public remote::BlockLender {
 public:
  static StatusOr<std::unique_ptr<BlinkIndex>> Create(IndexService* service, const BlinkOptions& options);
  ~BlinkIndex() override;

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
  rdma::GlobalAddress root() const { return root_; }

 private:
  struct OwnEditor : Editor {
    OwnEditor(remote::Hand* hand, const BlinkIndex* index)
        : Editor(&hand->leaves, index->root_, &hand->blocks, nullptr) {}
  };
  using Hands = remote::HandPool<BlinkIndex, OwnEditor>;

  BlinkIndex(IndexService* service, const BlinkOptions& options);

  // Reads a node, also if it is locked. kDead also if there is no node at this address, or if it cannot be read for as
  // long as the patience lasts.
  remote::LeafLook Read(rdma::GlobalAddress address, LeafImage* image) const;
  // The node of `level` that covers the key. DataLoss: there is no way to it.
  Status Locate(uint64_t key, uint8_t level, Place* place) const;
  bool GoRight(uint64_t low, Place* place) const;
  // Part of a scan: from *next on, at most `limit` entries and `most_leaves` leaves. True: there may be more, from
  // *next.
  StatusOr<bool> ScanSome(uint64_t from, uint64_t to, bool reverse, size_t limit, size_t most_leaves,
                          ScanResult* result, uint64_t* next) const;
  // Calls `visit` for every node of every level that the index reaches, locked or not, from the top down and from left
  // to right. DataLoss: it cannot be walked. While others change the index it meets every node that is part of it
  // during the whole walk.
  Status ForEachLinked(const std::function<void(rdma::GlobalAddress, const LeafImage&)>& visit) const;

  IndexService* service_;
  remote::LeafBlocks blocks_;
  uint64_t patience_nanos_;
  rdma::GlobalAddress root_;
  Hands hands_;
};

}  // namespace gannet::index::blink
