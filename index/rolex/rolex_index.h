// RolexIndex: the owner's side. It reads leaves by its CPU, led by its models, and changes them by the same code as
// clients (remote/hand.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "index/index.h"
#include "index/model/trainer.h"
#include "index/remote/block_lending.h"
#include "index/remote/hand.h"
#include "index/remote/leaf_blocks.h"
#include "index/rolex/directory.h"
#include "index/rolex/editor.h"
#include "index/rolex/retraining.h"
#include "index/rolex/rolex.h"
#include "index/service.h"

namespace gannet::index::rolex {

class RolexIndex final : public LocalIndex, public remote::BlockLender, public LeafSource {
 public:
  static StatusOr<std::unique_ptr<RolexIndex>> Create(IndexService* service, const RolexOptions& options);
  ~RolexIndex() override;

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

  // LeafSource: the leaf that covers the key, and the next one.
  Status Locate(uint64_t key, LeafPlace* place) const override;
  bool GoRight(LeafPlace* place) const override;

  remote::LeafBlocks& blocks() override { return blocks_; }
  const Directory& directory() const { return directory_; }
  uint64_t queue_offset() const { return static_cast<uint64_t>(queue_ - memory_); }
  // Trains what clients have queued, now and in this thread. For tests: a trainer's thread does it otherwise.
  void TrainNow() { retraining_->TrainNow(); }

 private:
  class OwnGuide final : public Guide {
   public:
    explicit OwnGuide(const RolexIndex* index) : index_(index) {}
    coro::Task<StatusOr<rdma::GlobalAddress>> LeadTo(uint64_t key, int attempt) override;
    void NoteLeaf(const Synonym&) override {}
    coro::Task<StatusOr<rdma::GlobalAddress>> SynonymsFor(uint64_t key) override;
    rdma::GlobalAddress queue() const override;

   private:
    const RolexIndex* index_;
  };
  struct OwnEditor {
    OwnEditor(remote::Hand* hand, const RolexIndex* index)
        : guide(index), editor(&hand->leaves, &hand->blocks, &guide) {}

    OwnGuide guide;
    Editor editor;
  };
  using Hands = remote::HandPool<RolexIndex, OwnEditor>;

  RolexIndex(IndexService* service, const RolexOptions& options);

  // Where a search begins (Guide::LeadTo).
  rdma::GlobalAddress LeadTo(uint64_t key, int attempt) const;
  // The leaf that the synonym table knows furthest right for `key`, if it begins right of `low`.
  rdma::GlobalAddress SynonymFor(uint64_t key, uint64_t low) const;
  // Reads a leaf, also if it is locked. kDead also if there is no leaf at this address, or if it cannot be read for as
  // long as the patience lasts.
  remote::LeafLook Read(rdma::GlobalAddress address, LeafImage* image) const;
  StatusOr<bool> ScanSome(uint64_t from, uint64_t to, bool reverse, size_t limit, size_t most_leaves,
                          ScanResult* result, uint64_t* next) const;
  // Calls `visit` for every leaf of the chain. DataLoss: it cannot be walked.
  Status ForEachLinked(const std::function<void(rdma::GlobalAddress, const LeafImage&)>& visit) const;

  IndexService* service_;
  std::byte* memory_;
  remote::LeafBlocks blocks_;
  Directory directory_;
  std::unique_ptr<Retraining> retraining_;
  uint64_t patience_nanos_;
  rdma::GlobalAddress first_leaf_;  // never dies
  std::byte* queue_ = nullptr;
  Hands hands_;
};

}  // namespace gannet::index::rolex
