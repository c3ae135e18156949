// BasicLeafIndex: what the owner's side of every index of leaves has, however its leaves are changed. It reads leaves
// by its CPU (own_leaves.h), and fills an empty index.
//
// LeafIndex (leaf_index.h) adds the changes of shared leaves; Dolphin has leaves of its own, and changes them
// otherwise. Keys: those of shared leaves, IntegerKeys or ByteKeys, or of Dolphin.
#pragma once

#include <algorithm>
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
  // set them again. Unimplemented: nobody claims leaves of this kind.
  virtual Status SetClaimRanges(std::vector<ClaimRange> /*ranges*/) {
    return absl::UnimplementedError("leaves of this kind are not claimed");
  }
  Status EndClaims(std::span<WordChange> /*claims*/) override {
    return absl::InvalidArgumentError("leaves of this kind are not claimed");
  }

 private:
  ClaimRanges claim_ranges_;
};

// Serves the clients of all indexes of `service` of one kind: `describe`, and the calls for blocks, changes and ranges.
// Before Node::Serve.
void RegisterLeafMethods(IndexService* service, rdma::MethodId describe, const char* kind);

template <class Keys>
class BasicLeafIndex : public AnyLeafIndex, public PartedLoader, protected OwnLeafFinder<Keys> {
 public:
  using Schema = typename Keys::Schema;

  ~BasicLeafIndex() override;

  size_t max_key_bytes() const override { return MaxKeyBytesOf<Keys>(schema_); }
  FindResult Find(const index::Key& key) override { return leaves_.Find(key); }
  void FindMany(std::span<const index::Key> keys, std::span<FindResult> results) override {
    leaves_.FindMany(keys, results);
  }
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

  LeafBlocks& blocks() override { return blocks_; }

 protected:
  using Key = typename Keys::Key;
  using IndexEntry = typename Keys::IndexEntry;
  using Point = typename Keys::Point;
  using Entry = typename Keys::Entry;
  using Image = typename Keys::Image;
  using LeafCopy = LeafCopyOf<Keys>;
  using Leaves = OwnLeaves<Keys>;
  using Visit = typename Leaves::Visit;

  // A leaf that the index has from the beginning, and that never dies. Those are empty before a load, and filled by the
  // kind.
  struct FirstLeaf {
    Key low;
    rdma::GlobalAddress address;
  };

  // A bulk load makes all leaves but the first ones. What remains to be done is the kind's.
  class Load : public PartedLoad {
   public:
    ~Load() override;
    Status Begin(Context& context);
    size_t parts() const override { return shape_.parts(); }
    Status Build(Context& context, size_t part) override;

   protected:
    // `per_leaf`: entries of a leaf with a fill of 1. `firsts` empty: Build makes all leaves.
    Load(BasicLeafIndex* index, LoadRuns entries, double fill, int per_leaf, size_t most_parts,
         std::span<const FirstLeaf> firsts = {})
        : index_(index),
          entries_(std::move(entries)),
          firsts_(firsts.begin(), firsts.end()),
          shape_(entries_, fill, per_leaf, most_parts, RunsOf(entries_, firsts)),
          blocks_(shape_.leaves()) {
      for (size_t run = 0; run < firsts_.size(); ++run)
        blocks_[shape_.FirstLeafOfRun(run)].address = firsts_[run].address;
    }

    Status Take(Context& context, FreeBlock* block);
    IndexEntry IndexEntryOf(const LoadEntry& entry) const {
      return Keys::RecordEntry(index_->schema_, Keys::KeyFrom(entry.key), entry.record);
    }
    // The leaf was there before.
    bool IsFirst(size_t n) const { return RunAt(n).has_value(); }
    rdma::GlobalAddress RightOf(size_t n) const {
      return n + 1 < shape_.leaves() ? blocks_[n + 1].address : rdma::GlobalAddress();
    }
    Key LowOfLeaf(size_t n, LoadRuns::Reader* entries) const {
      if (const std::optional<size_t> run = RunAt(n); run.has_value()) return firsts_[*run].low;
      return LowAt(0, shape_.Begin(n), [&](size_t i) { return IndexEntryOf((*entries)[i]); });
    }
    std::optional<Key> NextLowOfLeaf(size_t n, LoadRuns::Reader* entries) const {
      if (n + 1 == shape_.leaves()) return std::nullopt;
      return LowOfLeaf(n + 1, entries);
    }
    std::span<const Entry> EntriesOf(size_t n, LoadRuns::Reader* entries,
                                     std::array<Entry, static_cast<size_t>(Keys::kSlots)>* own) const {
      const size_t begin = shape_.Begin(n);
      const size_t count = shape_.End(n) - begin;
      for (size_t i = 0; i < count; ++i) (*own)[i] = Keys::EntryOf(IndexEntryOf((*entries)[begin + i]));
      return std::span(*own).first(count);
    }
    void StoreLeaf(size_t n, LoadRuns::Reader* entries) {
      std::array<Entry, static_cast<size_t>(Keys::kSlots)> own;
      index_->StoreNode(blocks_[n], 0, EntriesOf(n, entries, &own), LowOfLeaf(n, entries), NextLowOfLeaf(n, entries),
                        RightOf(n));
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
      index_->StoreNode(block, level, std::span(own).first(end - begin), LowAt(level, begin, keyed), next_low, right);
    }

    BasicLeafIndex* const index_;
    const LoadRuns entries_;
    const std::vector<FirstLeaf> firsts_;
    const LoadShape shape_;
    std::vector<FreeBlock> blocks_;  // first those of the leaves, which are written by the threads of their parts only
    bool makes_leaves_ = true;       // false: there are few entries, and the kind puts them elsewhere
    bool finished_ = false;

   private:
    // The entries with which the runs of the first leaves begin.
    static std::vector<size_t> RunsOf(const LoadRuns& entries, std::span<const FirstLeaf> firsts);
    // The run that begins with this leaf, whose first leaf was there before.
    std::optional<size_t> RunAt(size_t n) const {
      for (size_t run = 0; run < firsts_.size(); ++run) {
        if (shape_.FirstLeafOfRun(run) == n) return run;
      }
      return std::nullopt;
    }
  };

  // `format` nullopt: shared leaves. `name` says in errors what kind of index it is.
  BasicLeafIndex(IndexService* service, const Schema& schema, const std::optional<LeafFormat>& format,
                 IndexRights rights, absl::Duration patience, const char* name);

  // Makes the first node, an empty leaf.
  Status MakeFirst(Context& context);
  // FailedPrecondition: the index is not empty.
  virtual Status CheckEmpty() const;

  // Makes an unlocked node in a block that is dead. `next_low`: low fence of the node to its right, if there is one.
  virtual void StoreNode(const FreeBlock& block, uint8_t level, std::span<const Entry> entries, const Key& low,
                         const std::optional<Key>& next_low, rdma::GlobalAddress right) = 0;
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
};

}  // namespace gannet::index::shared_leaf
