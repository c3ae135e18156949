// RemoteRolex: a client of a ROLEX index. It reads and changes leaves by verbs, led by the models that it caches; it
// calls the owner for the places of the directory and the queues, and for blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/index.h"
#include "index/remote/block_lending.h"
#include "index/remote/leaf_channel.h"
#include "index/remote/leaf_insert.h"
#include "index/remote/leaf_scan.h"
#include "index/rolex/editor.h"
#include "index/rolex/model_cache.h"
#include "index/rolex/rolex.h"

namespace gannet::index::rolex {

class RemoteRolex final : public RemoteIndex, public remote::LeafFinder<remote::IntegerKeys> {
 public:
  RemoteRolex(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const RolexClientOptions& options)
      : channel_(channel),
        owner_(owner),
        leaves_(channel, options.node, owner, options.patience, 0, nullptr, remote::LeafChannel::As::kClient),
        blocks_(channel, owner, id, options.call_timeout),
        shares_cache_(options.shared != nullptr),
        cache_(channel, owner, id, options.call_timeout,
               shares_cache_ ? options.shared : MakeRolexCache(options.max_cache_bytes)),
        editor_(&leaves_, &blocks_, &cache_),
        values_in_entries_(options.values_in_entries),
        single_lines_(!values_in_entries_ || channel->capabilities().line_consistent) {}

  coro::Async<StatusOr<FindResult>> Find(const Key& key) override { return FindOne(key.integer()); }
  coro::Task<Status> FindMany(std::span<const Key> keys, std::span<FindResult> results) override;
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override;
  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) override;
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) override;
  std::unique_ptr<InsertBatch> NewInsertBatch() override {
    return std::make_unique<remote::LeafInserts<remote::IntegerKeys>>(&leaves_, this);
  }
  coro::Task<Status> Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  ReadEstimate Estimate(std::span<const Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;
  void Forget(const Key& key) override;
  ClientStatistics statistics() const override;

 private:
  static constexpr size_t kMostReads = 16;    // leaves, or lines, of one posting
  static constexpr size_t kReadsOfProbe = 2;  // at most

  // LeafFinder
  rdma::GlobalAddress ExpectLeaf(const uint64_t& key) override {
    ModelCache::Lead lead;
    return cache_.Find(key, &lead) ? lead.leaf : rdma::GlobalAddress();
  }
  coro::Task<Status> LocateLeaf(uint64_t key, LeafPlace* place) override { return editor_.Locate(key, place); }
  size_t RoomIn(const LeafPlace&) const override { return IntegerEntry::kSlots; }
  const remote::IntegerKeys::Schema& schema() const override { return schema_; }

  // READs one line for a key, or a whole leaf. If entries have values, the line comes with line 0.
  struct Probe {
    uint64_t key = 0;
    rdma::GlobalAddress leaf;
    int line = LineHint::kUnknown;
    LeafImage image;
  };
  // Returns the number of `reads` that it has set; 0: the model for the key is not cached.
  size_t Prepare(uint64_t key, Probe* probe, std::span<rdma::Operation, kReadsOfProbe> reads);
  // False: what was READ does not decide.
  bool Judge(const Probe& probe, FindResult* result);
  bool JudgeLine(const Probe& probe, FindResult* result) const;
  // The slot of the line that has the key; -1: what was READ does not tell.
  int SlotIn(const Probe& probe) const;
  // Replaces a value with a READ of its line and of line 0 only. False: the search must do it.
  coro::Task<StatusOr<bool>> ReplaceByLine(uint64_t key, rdma::GlobalAddress from, rdma::GlobalAddress to);
  coro::Task<StatusOr<FindResult>> FindOne(uint64_t key);
  static FindResult ResultOf(const LeafPlace& place, uint64_t key);
  coro::Task<StatusOr<bool>> ScanCached(const ScanRange& range, size_t end, ScanResult* result, uint64_t* next);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  remote::LeafChannel leaves_;
  remote::BorrowedBlocks blocks_;
  bool shares_cache_;
  ModelCache cache_;
  [[no_unique_address]] remote::IntegerKeys::Schema schema_;
  Editor editor_;
  const bool values_in_entries_;
  const bool single_lines_;  // lookups may READ them
  ClientStatistics statistics_;
  remote::LeafFill fill_{kPositions / 2};
  // Single lines are READ as long as they mostly have their keys.
  int credit_ = 0;
  uint64_t forgotten_ = UINT64_MAX;  // the key for which a line was wrong
};

}  // namespace gannet::index::rolex
