// RolexIndex: the owner's side. It reads leaves by its CPU, led by its models, and changes them by the same code as
// clients (shared_leaf/owner/hand.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "index/index.h"
#include "index/model/trainer.h"
#include "index/parted_load.h"
#include "index/rolex/directory.h"
#include "index/rolex/editor.h"
#include "index/rolex/retraining.h"
#include "index/rolex/rolex.h"
#include "index/service.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/owner/hand.h"
#include "index/shared_leaf/owner/own_leaves.h"
#include "rdma/rpc.h"

namespace gannet::index::rolex {

// What does not depend on the kind of keys.
class RolexIndex : public LocalIndex, public shared_leaf::BlockLender {
 public:
  // What a client asks for first (kDescribe).
  virtual void Describe(rdma::WireWriter& writer) const = 0;

  // For tests. Trains what clients have queued, now and in this thread: a trainer's thread does it otherwise.
  virtual void TrainNow() = 0;
  // For tests: in the owner's memory, one per model; as long as the index does not train.
  virtual std::vector<std::byte*> synonym_tables() const = 0;
  virtual uint64_t queue_offset() const = 0;
};

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class BasicRolexIndex final : public RolexIndex, public PartedLoader, private shared_leaf::OwnLeafFinder<Keys> {
 public:
  using Schema = typename Keys::Schema;

  static StatusOr<std::unique_ptr<BasicRolexIndex>> Create(IndexService* service, const Schema& schema,
                                                           const RolexOptions& options);
  ~BasicRolexIndex() override;

  FindResult Find(const index::Key& key) override { return leaves_.Find(key); }
  void FindMany(std::span<const index::Key> keys, std::span<FindResult> results) override;
  StatusOr<Change> Insert(Context& context, const index::Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override;
  StatusOr<Change> Remove(Context& context, const index::Key& key, rdma::GlobalAddress record) override;
  Status Replace(const index::Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
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
  void TrainNow() override { retraining_->TrainNow(); }
  std::vector<std::byte*> synonym_tables() const override;
  uint64_t queue_offset() const override { return static_cast<uint64_t>(queue_ - memory_); }
  const Directory<Keys>& directory() const { return directory_; }

 private:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using Entry = typename Keys::Entry;
  using Image = typename Keys::Image;
  class Load;
  using Leaves = shared_leaf::OwnLeaves<Keys>;
  using Place = shared_leaf::LeafPlaceOf<Keys>;

  class OwnGuide final : public Guide<Keys> {
   public:
    explicit OwnGuide(const BasicRolexIndex* index) : index_(index) {}
    coro::Task<StatusOr<rdma::GlobalAddress>> LeadTo(Point point, int attempt) override;
    void NoteLeaf(const NewLeaf<Keys>&) override {}
    coro::Task<StatusOr<typename Guide<Keys>::Synonyms>> SynonymsFor(Key key) override {
      co_return *KnownSynonyms(key);
    }
    std::optional<typename Guide<Keys>::Synonyms> KnownSynonyms(const Key& key) const override;
    rdma::GlobalAddress queue() const override { return {index_->first_leaf_.node(), index_->queue_offset()}; }

   private:
    const BasicRolexIndex* index_;
  };
  struct OwnEditor {
    OwnEditor(shared_leaf::Hand* hand, const BasicRolexIndex* index)
        : guide(index), editor(&hand->leaves, &index->schema_, &hand->blocks, &guide) {}

    OwnGuide guide;
    Editor<Keys> editor;
  };
  using Hands = shared_leaf::HandPool<BasicRolexIndex, OwnEditor>;

  BasicRolexIndex(IndexService* service, const Schema& schema, const RolexOptions& options);

  Status Locate(const Point& point, Place* place) const override;
  // For a bulk load: the only leaf. FailedPrecondition: the index is not empty.
  Status LocateEmpty(Place* first) const;
  // Where a search begins (Guide::LeadTo).
  rdma::GlobalAddress LeadTo(Point point, int attempt) const;
  // The leaf that the synonym table knows furthest right for the point; null if it knows none. Where it begins is known
  // only approximately.
  rdma::GlobalAddress SynonymFor(const Point& point) const;

  IndexService* service_;
  Schema schema_;
  std::byte* memory_;
  shared_leaf::LeafBlocks blocks_;
  Directory<Keys> directory_;
  Leaves leaves_;
  std::unique_ptr<Retraining<Keys>> retraining_;
  rdma::GlobalAddress first_leaf_;  // never dies
  std::byte* queue_ = nullptr;
  Hands hands_;
};

}  // namespace gannet::index::rolex
