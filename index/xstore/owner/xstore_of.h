// XStoreOf: the index for keys of W words: a tree, the owner of its model, and the handlers of peers' requests.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "index/parted_load.h"
#include "index/xstore/model/model_owner.h"
#include "index/xstore/rpc/messages.h"
#include "index/xstore/rpc/rpc_target.h"
#include "index/xstore/tree/tree.h"
#include "index/xstore/xstore.h"

namespace gannet::index::xstore {

template <int W>
class XStoreOf final : public XStore, public RpcTarget, public PartedLoader {
 public:
  XStoreOf(std::unique_ptr<Tree<W>> tree, const XStoreOptions& options)
      : tree_(std::move(tree)), models_(tree_.get(), options) {}

  FindResult Find(const Key& key) override { return tree_->Find(Encode<W>(key)); }
  void FindMany(std::span<const Key> keys, std::span<FindResult> results) override { tree_->FindMany(keys, results); }
  StatusOr<Change> Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override {
    return tree_->Insert(context, Encode<W>(key), record, existing);
  }
  StatusOr<Change> Remove(Context& context, const Key& key, rdma::GlobalAddress record) override {
    return tree_->Remove(context, Encode<W>(key), record);
  }
  Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override {
    return tree_->Replace(Encode<W>(key), from, to);
  }
  Status Scan(const ScanRange& range, ScanResult* result) override {
    const KeyWords<W> from = EncodeFrom<W>(range.from);
    const KeyWords<W> to = EncodeTo<W>(range.to);
    if (range.limit == 0 || to < from) return absl::OkStatus();
    KeyWords<W> next;
    if (range.reverse) {
      tree_->ScanReverse(from, to, range.limit, SIZE_MAX, result, &next);
    } else {
      tree_->ScanForward(from, to, range.limit, SIZE_MAX, result, &next);
    }
    return absl::OkStatus();
  }
  Status ScanRecords(const ScanRange& range, TakeRecords take) override {
    const KeyWords<W> from = EncodeFrom<W>(range.from);
    const KeyWords<W> to = EncodeTo<W>(range.to);
    if (range.limit > 0 && from <= to) tree_->ScanRecords(from, to, range.reverse, range.limit, take);
    return absl::OkStatus();
  }
  Status ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                  ScanResult* result) override {
    KeyWords<W> from = EncodeFrom<W>(range.from);
    KeyWords<W> to = EncodeTo<W>(range.to);
    if (position->has_value()) {
      const KeyWords<W> at = WordsAt((*position)->words);
      if (range.reverse) {
        to = std::min(to, at);
      } else {
        from = std::max(from, at);
      }
    }
    position->reset();
    if (range.limit == 0 || to < from) return absl::OkStatus();
    KeyWords<W> next;
    if (ScanSome(from, to, range.reverse, range.limit, most_witnesses, result, &next)) *position = PositionOf(next);
    return absl::OkStatus();
  }
  ScanPosition PositionBehind(const Key& key, bool reverse) const override {
    const KeyWords<W> at = Encode<W>(key);
    return PositionOf(reverse ? at.Previous() : at.Next());
  }
  bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) override {
    constexpr size_t kLeavesPerStep = 16;
    KeyWords<W> next;
    const bool more = tree_->WalkRecords(WordsAt(position->next), kLeavesPerStep, records, &next);
    if (more) position->next = PositionOf(next).words;
    return more;
  }
  Status BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) override {
    return tree_->BulkLoad(context, entries, fill);
  }
  StatusOr<std::unique_ptr<PartedLoad>> BeginLoad(Context& context, LoadRuns entries, double fill,
                                                  size_t most_parts) override {
    return tree_->BeginLoad(context, std::move(entries), fill, most_parts);
  }
  Statistics statistics() override {
    Statistics statistics = tree_->statistics();
    statistics.registered_bytes += models_.bytes();
    return statistics;
  }
  Status CheckStructure() override { return tree_->CheckStructure(); }
  ModelStatistics model_statistics() override { return models_.statistics(); }

  // Defined in rpc/server.cc.
  Status ServeDescribe(rdma::WireReader& request, rdma::WireWriter& response,
                       const std::shared_ptr<Trainer>& trainer) override;
  Status ServeFind(rdma::WireReader& request, rdma::WireWriter& response) override;
  Status ServeInsert(Context& context, rdma::WireReader& request, rdma::WireWriter& response) override;
  Status ServeRemove(Context& context, rdma::WireReader& request, rdma::WireWriter& response) override;
  Status ServeScan(rdma::WireReader& request, rdma::WireWriter& response) override;

 private:
  Leaf<W> LeafOf(const Model<W>* model, const PositionHint& hint) const;
  // True: there may be more, from *next on in the direction of the scan.
  bool ScanSome(const KeyWords<W>& from, const KeyWords<W>& to, bool reverse, size_t limit, size_t most_leaves,
                ScanResult* result, KeyWords<W>* next) const {
    const size_t before = result->entries.size();
    const bool more = reverse ? tree_->ScanReverse(from, to, limit, most_leaves, result, next)
                              : tree_->ScanForward(from, to, limit, most_leaves, result, next);
    if (more || result->entries.size() - before < limit) return more;
    const KeyWords<W> last = Encode<W>(result->entries.back().key.view());
    if (reverse ? last <= from : to <= last) return false;
    *next = reverse ? last.Previous() : last.Next();
    return true;
  }
  static ScanPosition PositionOf(const KeyWords<W>& words) {
    ScanPosition position;
    position.words.resize(std::max(position.words.size(), size_t{W}));
    std::copy_n(words.words.begin(), W, position.words.begin());
    return position;
  }
  // A position from a peer may have fewer words.
  static KeyWords<W> WordsAt(const PositionWords& words) {
    KeyWords<W> at = KeyWords<W>::Lowest();
    std::copy_n(words.begin(), std::min(words.size(), size_t{W}), at.words.begin());
    return at;
  }
  void PutRefresh(rdma::WireWriter& writer, const Model<W>* model, const KeyWords<W>& key) const;

  std::unique_ptr<Tree<W>> tree_;
  ModelOwner<W> models_;  // destroyed before the tree
};

}  // namespace gannet::index::xstore
