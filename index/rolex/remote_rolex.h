// RemoteRolex: a client of a ROLEX index. It reads and changes leaves by verbs, led by the models that it caches; it
// calls the owner for the places of the directory and the queues, and for blocks. If only the owner may change the
// index, it calls for changes.
//
// A lookup of a trained key READs one line of its leaf, if the model knows in which line the key would be and mostly is
// right about that; otherwise the whole leaf, which with byte keys is always so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "index/index.h"
#include "index/rolex/editor.h"
#include "index/rolex/model_cache.h"
#include "index/rolex/rolex.h"
#include "index/rolex/synonym_notices.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/change/leaf_insert.h"
#include "index/shared_leaf/leaf/leaf_scan.h"

namespace gannet::index::rolex {

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class RemoteRolex final : public RemoteIndex, public shared_leaf::CombinedLeaves<Keys> {
 public:
  RemoteRolex(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const RolexClientOptions& options)
      : channel_(channel),
        owner_(owner),
        max_key_bytes_(options.max_key_bytes),
        leaves_(channel, options.node, owner, options.patience,
                Keys::kKeysElsewhere ? shared_leaf::FenceLinesFor(options.max_key_bytes) : 0, nullptr,
                shared_leaf::LeafChannel::As::kClient),
        calls_(channel, owner, id, options.call_timeout),
        changes_leaves_(options.rights == IndexRights::kClients),
        shares_cache_(options.shared != nullptr),
        cache_(channel, &leaves_, id, options.call_timeout,
               shares_cache_ ? options.shared : MakeRolexCache(options.max_cache_bytes)),
        blocks_(channel, options.node, owner, id, options.call_timeout, cache_.blocks()),
        values_in_entries_(options.values_in_entries && !Keys::kKeysElsewhere),
        single_lines_(!values_in_entries_ || channel->capabilities().line_consistent) {}

  coro::Async<StatusOr<FindResult>> Find(const index::Key& key) override { return FindOne(Keys::KeyFrom(key)); }
  coro::Task<Status> FindMany(std::span<const index::Key> keys, std::span<FindResult> results) override;
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override;
  coro::Task<StatusOr<Change>> Insert(index::Key key, rdma::GlobalAddress record) override;
  coro::Task<StatusOr<Change>> Remove(index::Key key, rdma::GlobalAddress record) override;
  std::unique_ptr<InsertBatch> NewInsertBatch() override {
    if (!changes_leaves_) return nullptr;
    return std::make_unique<shared_leaf::LeafInserts<Keys>>(
        &leaves_, &blocks_, this, std::make_unique<SynonymNotices<Keys>>(&editor_, &cache_, owner_));
  }
  coro::Task<Status> Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  ReadEstimate Estimate(std::span<const index::Key> keys) const override;
  ReadEstimate Estimate(const ScanRange& range) const override;
  void Forget(const index::Key& key) override;
  ClientStatistics statistics() const override;

 private:
  using Key = typename Keys::Key;
  using Cut = typename Keys::Cut;
  using Entry = typename Keys::Entry;
  using Keyed = typename Keys::Keyed;
  using Image = typename Keys::Image;
  using Place = shared_leaf::LeafPlaceOf<Keys>;
  using Schema = typename Keys::Schema;
  using Lead = typename ModelCache<Keys>::Lead;

  static constexpr size_t kMostReads = 16;    // leaves, or lines, of one posting
  static constexpr size_t kReadsOfProbe = 2;  // at most

  // LeafFinder
  rdma::GlobalAddress ExpectLeaf(const Key& key) override {
    Lead lead;
    // Others may have filled the cache, and this client does not know the schema yet.
    return editor_.has_value() && cache_.Find(Keys::At(key), &lead) ? lead.leaf : rdma::GlobalAddress();
  }
  coro::Task<Status> LocateLeaf(Key key, Place* place) override;
  size_t RoomIn(const Place& place) const override {
    return static_cast<size_t>(Keys::kSlots - place.image.template count<Entry>());
  }
  const Schema& schema() const override { return *schema_; }

  // Makes the editor, which needs the schema. InvalidArgument: the owner's index has other keys than this client was
  // told.
  coro::Task<Status> Start();

  // CombinedLeaves
  shared_leaf::LeafChannel& leaves() override { return leaves_; }
  shared_leaf::BlockSource& blocks() override { return blocks_; }
  bool changes_leaves() const override { return changes_leaves_; }
  bool MaySplit(const Place&) const override { return true; }
  bool NoteSplit(const Keyed& right) override {
    cache_.NoteLeaf(NewLeaf<Keys>::Of(right, owner_));
    return true;
  }
  coro::Task<StatusOr<shared_leaf::LeafLook>> ReadExpected(Key key, rdma::GlobalAddress leaf, bool is_first,
                                                           Image* image) override {
    StatusOr<shared_leaf::LeafLook> look = co_await cache_.ReadLeaf(key, leaf, is_first, image);
    co_return look;
  }
  shared_leaf::SplitHint HintOf(std::span<const Keyed> rights) override { return editor_->HintOf(rights); }
  coro::Task<void> PublishSplits(std::vector<Keyed> rights, shared_leaf::SplitHint hint) override;

  // READs one line for a key, or a whole leaf. If entries have values, the line comes with line 0.
  struct Probe {
    Key key{};
    rdma::GlobalAddress leaf;
    int line = LineHint::kUnknown;
    Image image;
  };
  // Returns the number of `reads` that it has set; 0: the model for the key is not cached.
  size_t Prepare(const Key& key, Probe* probe, std::span<rdma::Operation, kReadsOfProbe> reads);
  // False: what was READ does not decide.
  bool Judge(Probe* probe, FindResult* result);
  bool JudgeLine(const Probe& probe, FindResult* result) const;
  // The slot of the line that has the key; -1: what was READ does not tell. Integer keys.
  int SlotIn(const Probe& probe) const;
  // Replaces a value with a READ of its line and of line 0 only. False: the search must do it.
  coro::Task<StatusOr<bool>> ReplaceByLine(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to);
  coro::Task<StatusOr<FindResult>> FindOne(Key key);
  rdma::GlobalAddress TargetOf(const Image& image, int slot) const {
    return Keys::TargetOf(image.template entry<Entry>(slot), owner_);
  }
  coro::Task<StatusOr<bool>> ScanCached(Key from, Key to, bool reverse, size_t end, ScanResult* result, Cut* next);

  rdma::Channel* channel_;
  rdma::NodeId owner_;
  size_t max_key_bytes_;
  shared_leaf::LeafChannel leaves_;
  shared_leaf::ChangeCalls calls_;
  const bool changes_leaves_;  // by verbs; else by calls
  bool shares_cache_;
  ModelCache<Keys> cache_;
  shared_leaf::BorrowedBlocks blocks_;
  std::optional<Schema> schema_;
  std::optional<Editor<Keys>> editor_;
  const bool values_in_entries_;
  const bool single_lines_;  // lookups may READ them
  ClientStatistics statistics_;
  shared_leaf::LeafFill fill_{kLoadedEntries<Keys> / 2.0};
  shared_leaf::ScanTails tails_;
  // Single lines are READ as long as they mostly have their keys.
  int credit_ = 0;
  std::optional<Key> forgotten_;  // the key for which a line was wrong
};

}  // namespace gannet::index::rolex
