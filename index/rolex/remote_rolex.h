// RemoteRolex: a client of a ROLEX index, led by the models that it caches (model_cache.h).
//
// A lookup of a trained key READs one line of its leaf, if the model knows in which line the key would be and mostly is
// right about that; otherwise the whole leaf, which with byte keys is always so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "index/index.h"
#include "index/rolex/editor.h"
#include "index/rolex/model_cache.h"
#include "index/rolex/rolex.h"
#include "index/rolex/synonym_notices.h"
#include "index/shared_leaf/leaf_client.h"

namespace gannet::index::rolex {

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class RemoteRolex final : public shared_leaf::LeafClient<Keys> {
 public:
  using Base = shared_leaf::LeafClient<Keys>;
  using typename Base::Image;
  using typename Base::IndexEntry;
  using typename Base::Key;
  using typename Base::LeafCopy;
  using typename Base::Schema;

  RemoteRolex(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const RolexClientOptions& options)
      : RemoteRolex(channel, owner, id, options,
                    options.shared != nullptr ? options.shared : MakeRolexCache(options.cache_bytes)) {}

  coro::Task<Status> Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  ReadEstimate Estimate(std::span<const index::Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;
  // The next lookup of the key reads its whole leaf.
  void Forget(const index::Key& key) override { forgotten_ = Keys::KeyFrom(key); }
  bool NoteSplit(const IndexEntry& right) override {
    cache_.NoteLeaf(NewLeaf<Keys>::Of(right, owner_));
    return true;
  }
  coro::Task<StatusOr<shared_leaf::LeafLook>> ReadExpected(Key key, rdma::GlobalAddress leaf, bool is_first,
                                                           Image* image) override {
    return cache_.ReadLeaf(key, leaf, is_first, image);
  }

 private:
  using Base::channel_;
  using Base::fill_;
  using Base::kMostReads;
  using Base::kReadsOfProbe;
  using Base::leaves_;
  using Base::owner_;
  using Base::statistics_;
  using Base::values_in_entries_;
  using typename Base::Cut;
  using typename Base::Entry;
  using typename Base::Probe;
  using Prediction = typename ModelCache<Keys>::Prediction;

  RemoteRolex(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const RolexClientOptions& options,
              const std::shared_ptr<SharedModels>& cache)
      : Base(channel, owner, id, options, cache,
             {.expected_fill = kLoadedEntries<Keys> / 2.0, .probes_first = true, .trims_scans = true}),
        cache_(channel, &leaves_, id, options.call_timeout, cache),
        single_lines_(!values_in_entries_ || channel->capabilities().line_consistent) {}

  rdma::GlobalAddress ExpectLeaf(const Key& key) override {
    Prediction prediction;
    // Others may have filled the cache, and this client does not know the schema yet.
    return this->is_ready() && cache_.Find(Keys::At(key), &prediction) ? prediction.leaf : rdma::GlobalAddress();
  }
  size_t LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                    std::span<rdma::GlobalAddress, kMostReads> leaves) override;
  coro::Task<StatusOr<Schema>> Describe() override { return cache_.Describe(); }
  shared_leaf::LeafEditor<Keys>* MakeEditor() override {
    return &editor_.emplace(&leaves_, &this->schema(), &this->blocks(), &cache_);
  }
  std::unique_ptr<shared_leaf::SplitNotices<Keys>> NewSplitNotices() override {
    return std::make_unique<SynonymNotices<Keys>>(&editor_, &cache_, owner_);
  }

  // READs one line for a key, or a whole leaf. If entries have values, the line comes with line 0.
  size_t SetProbe(const Key& key, Probe* probe, std::span<rdma::Operation, kReadsOfProbe> reads) override {
    if (credit_ < 0) ++credit_;
    return ProbeLine(key, probe, reads);
  }
  // Does what SetProbe does, without a change of the credit.
  size_t ProbeLine(const Key& key, Probe* probe, std::span<rdma::Operation, kReadsOfProbe> reads);
  bool Judge(Probe* probe, FindResult* result) override;
  void NoteSearch(const Key& key) override {
    if (key == forgotten_) forgotten_.reset();
  }
  bool JudgeLine(const Probe& probe, FindResult* result) const;
  // The slot of the line that has the key; -1: what was READ does not tell. Integer keys.
  int SlotIn(const Probe& probe) const;
  // Replaces a value with a READ of its line and of line 0 only. False: the search must do it.
  coro::Task<StatusOr<bool>> ReplaceByLine(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to);

  ModelCache<Keys> cache_;
  std::optional<Editor<Keys>> editor_;
  const bool single_lines_;  // lookups may READ them
  // Single lines are READ as long as they mostly have their keys.
  int credit_ = 0;
  std::optional<Key> forgotten_;          // the key for which a line was wrong
  std::vector<rdma::GlobalAddress> run_;  // memory that LeavesFrom reuses
};

}  // namespace gannet::index::rolex
