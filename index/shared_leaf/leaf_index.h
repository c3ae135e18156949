// LeafIndex: the owner's side of an index of shared leaves. It reads leaves by its CPU (own_leaves.h). It changes them
// by the same code as clients (own_editors.h), or, where that is a change of one leaf which nobody else uses, at once.
//
// A kind of index derives its owner's side from this class: it adds the way to a leaf, its editor, and the parts of
// repair, load and check that concern what leads to leaves. Keys: IntegerKeys or ByteKeys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "index/index.h"
#include "index/parted_load.h"
#include "index/service.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "index/shared_leaf/claim/claim_ranges.h"
#include "index/shared_leaf/leaf/schema_wire.h"
#include "index/shared_leaf/owner/own_editors.h"
#include "index/shared_leaf/owner/own_leaves.h"
#include "index/types.h"
#include "rdma/rpc.h"

namespace gannet::index::shared_leaf {

// The part that does not depend on the kind of keys.
class AnyLeafIndex : public LocalIndex, public BlockLender {
 public:
  // The call by which a client asks for what it has to know first, and the response to it.
  virtual rdma::MethodId describe_method() const = 0;
  virtual void Describe(rdma::WireWriter& writer) const = 0;
  // Bytes of the longest key that the index takes.
  virtual size_t max_key_bytes() const = 0;
  // Before the first change: so that finds an editor, however many channels sessions open. ResourceExhausted: there is
  // no channel left now.
  virtual Status MakeEditor() = 0;
  // The ranges by which nodes claim.
  ClaimRanges& claim_ranges() { return claim_ranges_; }
  // Sets them, and tells the nodes that claim. CheckRanges has found nothing. ResourceExhausted: they were not told;
  // set them again.
  virtual Status SetClaimRanges(std::vector<ClaimRange> ranges) = 0;

 private:
  ClaimRanges claim_ranges_;
};

// Serves the clients of all indexes of `service` of one kind: `describe`, and the calls for blocks, changes and ranges.
// Before Node::Serve.
void RegisterLeafMethods(IndexService* service, rdma::MethodId describe, const char* kind);

template <class Keys>
class LeafIndex : public AnyLeafIndex, public PartedLoader, protected OwnLeafFinder<Keys> {
 public:
  using Schema = typename Keys::Schema;

  ~LeafIndex() override;

  size_t max_key_bytes() const override { return MaxKeyBytesOf<Keys>(schema_); }
  FindResult Find(const index::Key& key) override { return leaves_.Find(key); }
  void FindMany(std::span<const index::Key> keys, std::span<FindResult> results) override {
    leaves_.FindMany(keys, results);
  }
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
  Status MakeEditor() final { return typename Editors::Pooled(&editors_, nullptr).status(); }
  void RepairAfter(rdma::NodeId node) override;
  Status EndClaimsOf(rdma::NodeId node) override;

  LeafBlocks& blocks() override { return blocks_; }
  Status EndClaims(std::span<WordChange> claims) override;
  Status SetClaimRanges(std::vector<ClaimRange> ranges) override;

 protected:
  using Key = typename Keys::Key;
  using IndexEntry = typename Keys::IndexEntry;
  using Point = typename Keys::Point;
  using Entry = typename Keys::Entry;
  using Image = typename Keys::Image;
  using LeafCopy = LeafCopyOf<Keys>;
  using Leaves = OwnLeaves<Keys>;
  using Visit = typename Leaves::Visit;
  using Editors = OwnEditors<Keys>;

  // A bulk load makes the leaves from the second one on. What remains to be done is the kind's.
  class Load : public PartedLoad {
   public:
    ~Load() override;
    Status Begin(Context& context);
    size_t parts() const override { return shape_.parts(); }
    Status Build(Context& context, size_t part) override;

   protected:
    // `per_leaf`: entries of a leaf with a fill of 1. `first_leaf` null: Build makes the first leaf, too. Otherwise the
    // index has it already, and the kind fills it.
    Load(LeafIndex* index, LoadRuns entries, double fill, int per_leaf, size_t most_parts,
         rdma::GlobalAddress first_leaf)
        : index_(index),
          entries_(std::move(entries)),
          shape_(entries_, fill, per_leaf, most_parts),
          has_first_(!first_leaf.is_null()),
          blocks_(std::max<size_t>(shape_.leaves(), has_first_ ? 1 : 0)) {
      if (has_first_) blocks_[0].address = first_leaf;
    }

    Status Take(Context& context, FreeBlock* block);
    IndexEntry IndexEntryOf(const LoadEntry& entry) const {
      return Keys::RecordEntry(index_->schema_, Keys::KeyFrom(entry.key), entry.record);
    }
    void StoreLeaf(size_t n, LoadRuns::Reader* entries) {
      const rdma::GlobalAddress right = n + 1 < shape_.leaves() ? blocks_[n + 1].address : rdma::GlobalAddress();
      Store(blocks_[n], 0, shape_.Begin(n), shape_.End(n), entries_.size(), right,
            [&](size_t i) { return IndexEntryOf((*entries)[i]); });
    }
    // The low fence of the node that begins with entry i of its level.
    template <class IndexEntryAt>
    static Key LowAt(uint8_t level, size_t i, const IndexEntryAt& keyed) {
      if (i == 0) return Keys::kLeast;
      return Keys::Border(Keys::KeyOf(keyed(i - 1)), Keys::KeyOf(keyed(i)), level, false);
    }
    // Makes an unlocked node of a level of the entries [begin, end), of `size`.
    template <class IndexEntryAt>
    void Store(const FreeBlock& block, uint8_t level, size_t begin, size_t end, size_t size, rdma::GlobalAddress right,
               const IndexEntryAt& keyed) {
      std::optional<Key> next_low;
      if (end < size) next_low = LowAt(level, end, keyed);
      std::array<Entry, static_cast<size_t>(Keys::kSlots)> own;
      for (size_t i = begin; i < end; ++i) own[i - begin] = Keys::EntryOf(keyed(i));
      index_->leaves_.Store(block, level, std::span(own).first(end - begin), LowAt(level, begin, keyed), next_low,
                            right);
    }

    LeafIndex* const index_;
    const LoadRuns entries_;
    const LoadShape shape_;
    const bool has_first_;
    std::vector<FreeBlock> blocks_;  // first those of the leaves, which are written by the threads of their parts only
    bool makes_leaves_ = true;       // false: there are few entries, and the kind puts them elsewhere
    bool finished_ = false;
  };

  // `name` says in errors what kind of index it is.
  LeafIndex(IndexService* service, const Schema& schema, IndexRights rights, absl::Duration patience, const char* name);

  // Changes the leaf of the key, as `edit` changes its draft, by this thread and without a coroutine, where that is all
  // it takes. nullopt: it takes more, such as a split or the end of a claim; or `edit` has returned false.
  // The leaf that `editor` changed last often covers the key, too: then it is not searched for.
  template <class Edit>
  std::optional<Change> ChangeAtOnce(typename Editors::Pooled* editor, const Key& key, const Edit& edit);

  // Makes the first node, an empty leaf.
  Status MakeFirst(Context& context);
  // FailedPrecondition: the index is not empty.
  Status CheckEmpty() const;

  virtual std::unique_ptr<LeafEditor<Keys>> NewEditor(OwnChannel* channel) = 0;
  virtual std::unique_ptr<Load> NewLoad(LoadRuns entries, double fill, size_t most_parts) = 0;
  // Visits every node that the index reaches, locked or not. DataLoss: it cannot be walked. While others change the
  // index it meets every node that is part of it during the whole walk.
  virtual Status ForEachNode(const Visit& visit) const { return leaves_.ForEach(visit); }

  IndexService* service_;
  Schema schema_;
  LeafBlocks blocks_;
  Leaves leaves_;
  // The node where searches can always begin: it stays there, and never dies.
  rdma::GlobalAddress first_;
  Editors editors_;
};

// The owner's side of `Index<Keys>`, added to `service`.
template <template <class> class Index, class Options>
StatusOr<std::unique_ptr<LocalIndex>> Create(IndexService* service, IndexId id, KeyKind key_kind,
                                             const Options& options) {
  StatusOr<std::unique_ptr<LocalIndex>> index;
  if (key_kind == KeyKind::kInteger) {
    index = Index<IntegerKeys>::Create(service, {}, options);
  } else {
    GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kShortKeyBytes));
    index = Index<ByteKeys>::Create(service, {KeyedHash::DrawSeed(), options.max_key_bytes}, options);
  }
  // A node of very many tables has no channel for each.
  if (index.ok()) dynamic_cast<AnyLeafIndex&>(**index).MakeEditor().IgnoreError();
  if (index.ok()) GANNET_RETURN_IF_ERROR(service->Add(id, index->get()));
  return index;
}

}  // namespace gannet::index::shared_leaf
