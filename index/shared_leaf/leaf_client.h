// LeafClient: a client of an index of shared leaves. It reads and changes leaves by verbs; it calls the owner for what
// it has to know first, and for blocks. If only the owner may change the index, it calls for changes.
//
// A kind of index derives its client from this class: it adds its editor, its cache of what leads to leaves, and what
// it estimates. Keys: IntegerKeys or ByteKeys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/time/time.h"
#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/backoff.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_lending.h"
#include "index/shared_leaf/change/change_calls.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/change/leaf_editor.h"
#include "index/shared_leaf/change/leaf_insert.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "index/shared_leaf/claim/kept_edit.h"
#include "index/shared_leaf/client_options.h"
#include "index/shared_leaf/leaf/leaf_scan.h"
#include "index/shared_leaf/shared_leaves.h"
#include "index/types.h"
#include "rdma/fabric.h"

namespace gannet::index::shared_leaf {

template <class Keys>
class LeafClient : public RemoteIndex, public LeafFinder<Keys> {
 public:
  using Key = typename Keys::Key;
  using IndexEntry = typename Keys::IndexEntry;
  using Image = typename Keys::Image;
  using LeafCopy = LeafCopyOf<Keys>;
  using Schema = typename Keys::Schema;

  coro::Async<StatusOr<FindResult>> Find(const index::Key& key) override { return FindOne(Keys::KeyFrom(key)); }
  coro::Task<Status> FindMany(std::span<const index::Key> keys, std::span<FindResult> results) override;
  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override;
  coro::Task<StatusOr<Change>> Insert(index::Key key, rdma::GlobalAddress record) override;
  coro::Task<StatusOr<Change>> Remove(index::Key key, rdma::GlobalAddress record) override;
  coro::Task<Status> Replace(index::Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  std::unique_ptr<InsertBatch> NewInsertBatch() override;
  void Forget(const index::Key&) override {}
  ClientStatistics statistics() const override;

  // The functions of LeafFinder.
  coro::Task<Status> LocateLeaf(Key key, LeafCopy* place) override;
  size_t RoomIn(const LeafCopy& place) const override { return static_cast<size_t>(editor_->RoomIn(place)); }
  bool MaySplit(const LeafCopy& place) const override { return editor_->MaySplit(place); }
  bool NoteSplit(const IndexEntry& /*right*/) override { return false; }
  const Schema& schema() const override { return *schema_; }

  // The following serve an engine of inserts outside of transactions (ycsb/leaf_combiner.h).
  //
  // True: the client changes leaves by verbs. False: by calls.
  bool changes_leaves() const { return rights_ == IndexRights::kClients; }
  LeafChannel& leaves() { return leaves_; }
  BlockSource& blocks() { return blocks_; }
  // This client keeps leaves (claim/claim.h).
  virtual bool keeps_leaves() const { return false; }
  // Writes back and unlocks the leaves that this node keeps by the cache of this client, and that may have keys from
  // `from` to `to`. No thread of this node begins to keep such a leaf meanwhile: none uses the cache, or these keys.
  virtual coro::Task<Status> HandBackLeaves(Key /*from*/, Key /*to*/) { co_return absl::OkStatus(); }
  // Valid once a leaf was expected or located.
  LeafEditor<Keys>& editor() { return *editor_; }
  // READs the leaf that the client's caches expect to cover `key`, as LeafChannel::Read does. Caches that are behind
  // the splits of other machines may be brought up to date in the same posting. `is_first`: they have not been wrong
  // about this key yet.
  virtual coro::Task<StatusOr<LeafLook>> ReadExpected(Key key, rdma::GlobalAddress leaf, bool is_first, Image* image);

 protected:
  using Cut = typename Keys::Cut;
  using Entry = typename Keys::Entry;

  static constexpr size_t kMostReads = 16;    // leaves, or lines, of one posting
  static constexpr size_t kReadsOfProbe = 2;  // at most
  static constexpr int kWholeLeaf = -1;
  static constexpr int kStateOnly = -2;
  static constexpr int kBusyLooks = 64;  // at a latched copy, before a READ

  struct Manner {
    // Number of entries of a leaf, before a scan has met one.
    double expected_fill;
    // A lookup READs what is expected before it searches. Otherwise the search itself begins at what is cached.
    bool probes_first = false;
    // Scans of integer keys READ the last line of a leaf later, where it is used (ScanTails).
    bool trims_scans = false;
    // The kind's cache has leaves: the functions below for copies of leaves do something.
    bool caches_leaves = false;
  };
  // `channel` must outlive this. `cache`: that of the options, or else one that is this client's alone.
  template <class Cache>
  LeafClient(rdma::Channel* channel, rdma::NodeId owner, IndexId id, const ClientOptions<Cache>& options,
             std::shared_ptr<SharedLeaves> cache, const Manner& manner)
      : channel_(channel),
        owner_(owner),
        id_(id),
        call_timeout_(options.call_timeout),
        max_key_bytes_(options.max_key_bytes),
        leaves_(channel, options.node, owner, options.patience,
                Keys::kKeysElsewhere ? FenceLinesFor(options.max_key_bytes) : 0, nullptr, LeafChannel::As::kClient),
        fill_(manner.expected_fill),
        calls_(channel, owner, id, options.call_timeout),
        values_in_entries_(options.values_in_entries && !Keys::kKeysElsewhere),
        rights_(options.rights),
        shares_cache_(options.shared != nullptr),
        cache_(std::move(cache)),
        probes_first_(manner.probes_first),
        trims_scans_(manner.trims_scans && !Keys::kKeysElsewhere && channel->capabilities().line_consistent),
        caches_leaves_(manner.caches_leaves),
        blocks_(channel, options.node, owner, id, options.call_timeout, &cache_->blocks()) {}

  // What is known of a copy of a leaf in the kind's cache. The copy is whole, but may be behind, unless it is good.
  struct CopyState {
    // This node has claimed the leaf, and the copy is what it is now (claim/claim.h).
    bool is_good = false;
    // The lease of the claim has ended. If a READ over this connection succeeds, that renews it. 0: it does not.
    uint64_t connection = 0;
    uint16_t lease = 0;
    uint64_t word = 0;  // of a kept leaf: the state word; its copy has another
    // There is no copy to read now: another thread of this node is changing that of a kept leaf.
    bool is_busy = false;
  };

  // A lookup READs this by what is cached: a whole leaf, a line of one, or the state word alone, because `image` is a
  // copy of the leaf. The kind defines what else comes with it.
  struct Probe {
    Key key{};
    rdma::GlobalAddress leaf;
    int line = kWholeLeaf;
    std::optional<FindResult> found;  // the answer, if it takes no READ
    Image image;
    // For kStateOnly:
    uint64_t state = 0;  // READ
    uint64_t posted_nanos = 0;
    CopyState copy;
  };
  // Sets the READs of a probe, and returns their number; 0: no leaf is expected, or the answer is known.
  virtual size_t SetProbe(const Key& key, Probe* probe, std::span<rdma::Operation, kReadsOfProbe> reads);
  // False: what was READ does not decide.
  virtual bool Judge(Probe* probe, FindResult* result);
  // The probe was of no use, and a search has found the key's leaf.
  virtual void NoteSearch(const Key& /*key*/) {}
  // Of a kind that caches leaves:
  //
  // The result for the key by the copy of its leaf, without copying the leaf. Null: there is no copy. Integer keys.
  virtual std::optional<FindResult> FindInCopy(const Key& /*key*/, CopyState* /*state*/) { return std::nullopt; }
  // The copy of the leaf that covers the key; of this leaf. False: there is none.
  virtual bool FindCopy(const Key& /*key*/, LeafCopy* /*leaf*/, CopyState* /*state*/) { return false; }
  virtual bool CopyOf(rdma::GlobalAddress /*leaf*/, Image* /*image*/, CopyState* /*state*/) { return false; }
  // A whole leaf that was READ just now.
  virtual void KeepLeaf(const LeafCopy& /*leaf*/) {}
  // KeepLeaf has left leaves that are to be claimed before they are kept; or kept leaves are to be written back.
  virtual bool has_claims_to_make() const { return false; }
  // Appends the claims that it has made.
  virtual coro::Task<void> MakeClaims(std::vector<WordChange>* /*made*/) { co_return; }
  // The state word was READ, and is that of the copy, which is not good. `posted_nanos`: before the READ.
  virtual void NoteCurrent(const LeafCopy& /*leaf*/, const CopyState& /*copy*/, uint64_t /*posted_nanos*/) {}
  // A client that keeps leaves changes the copy of one. True: it has, and the change counts. False: the leaf is not
  // kept. Errors: as those of the change by verbs.
  virtual coro::Task<StatusOr<bool>> ChangeKept(KeptEdit<Keys> /*edit*/) { co_return false; }
  // The copy is behind.
  virtual void ForgetLeaf(rdma::GlobalAddress /*leaf*/) {}

  // The leaves that are known to follow each other from `next` on, for a scan up to `to` that takes `entries` more. At
  // most kMostReads. Returns their number.
  virtual size_t LeavesFrom(const Cut& next, const Key& to, bool reverse, size_t entries,
                            std::span<rdma::GlobalAddress, kMostReads> leaves) = 0;
  // Asks the owner for what all users of the index have to know.
  virtual coro::Task<StatusOr<Schema>> Describe() = 0;
  // Called once, when the schema is known.
  virtual LeafEditor<Keys>* MakeEditor() = 0;
  virtual std::unique_ptr<SplitNotices<Keys>> NewSplitNotices() = 0;

  // Makes the editor. InvalidArgument: the owner's index has other keys than this client was told.
  coro::Task<Status> Prepare();
  bool is_ready() const { return editor_ != nullptr; }
  rdma::GlobalAddress TargetOf(const Image& image, int slot) const {
    return Keys::TargetOf(image.template entry<Entry>(slot), owner_);
  }
  rdma::Operation ReadOf(rdma::GlobalAddress leaf, Image* image) const {
    return rdma::Operation::Read(leaf, image, static_cast<uint32_t>(leaves_.leaf_bytes()));
  }
  // The cost of a scan of leaves with `entries` entries each, if the cache leads to them.
  ReadEstimate EstimateScan(const ScanRange& range, double entries, double keys_per_leaf) const;

  rdma::Channel* const channel_;
  const rdma::NodeId owner_;
  const IndexId id_;
  const absl::Duration call_timeout_;
  const size_t max_key_bytes_;
  LeafChannel leaves_;
  ClientStatistics statistics_;
  LeafFill fill_;
  ChangeCalls calls_;
  const bool values_in_entries_;  // there are no records

 private:
  coro::Task<StatusOr<FindResult>> FindOne(Key key);
  // After an operation of a client that keeps leaves. True: it is to begin again, because another thread of this node
  // keeps the leaf by now.
  coro::Task<bool> IsToBeginAgain(Status status, Patience* patience);
  // A search has found that this node keeps the leaf. True: its copy is right, and in `place` now. What the cache knows
  // of the way to the leaf may be behind, and not lead to the copy.
  coro::Task<bool> FindKept(typename Keys::Point point, LeafCopy* place);
  // A change of a leaf by this client. `to`: of kReplace. ClaimedElsewhere.
  using EditKind = typename KeptEdit<Keys>::Kind;
  coro::Task<StatusOr<Change>> Make(EditKind kind, Key key, rdma::GlobalAddress record, rdma::GlobalAddress to);
  Entry EntryOf(const Key& key, rdma::GlobalAddress record) const {
    return Keys::EntryOf(Keys::RecordEntry(*schema_, key, record));
  }
  // KeepLeaf, and the claims. The image gets the word of its claim.
  coro::Task<void> KeepOrClaim(LeafCopy* leaf);
  // The word of a leaf that was READ, and was claimed with `made`: a claim changes no set of keys, and the reader must
  // not take it for another's change.
  static void TakeClaims(std::span<const WordChange> made, rdma::GlobalAddress leaf, uint64_t* seen) {
    for (const WordChange& claim : made) {
      if (claim.word == leaf && claim.before == *seen) *seen = claim.after;
    }
  }
  // Reads leaves that follow each other, as the cache knows them from *next on. True: the scan is at its end.
  coro::Task<StatusOr<bool>> ScanCached(Key from, Key to, bool reverse, size_t end, ScanResult* result, Cut* next);
  // READs the leaves, of which the last line comes later where that pays. Of those that are cached it READs the state
  // word, and of good copies nothing. A copy that is behind is forgotten, and its image is dead.
  coro::Task<Status> ReadLeaves(std::span<const rdma::GlobalAddress> leaves, std::span<Image, kMostReads> images);
  // A copy whose state word is READ.
  struct CopyCheck {
    size_t at = 0;
    CopyState copy;
    uint64_t state = 0;
    uint64_t posted_nanos = 0;
  };
  // The READ of a copy's state word. *posted_nanos: the time, if NoteCurrent needs it.
  static rdma::Operation ReadStateOf(rdma::GlobalAddress leaf, const CopyState& copy, uint64_t* state,
                                     uint64_t* posted_nanos);
  // The state word proves the copy of a leaf: no state word returns (leaf.h). False: the copy is forgotten.
  bool IsCurrent(rdma::GlobalAddress leaf, const Image& image, const CopyState& copy, uint64_t state,
                 uint64_t posted_nanos);

  const IndexRights rights_;
  const bool shares_cache_;
  const std::shared_ptr<SharedLeaves> cache_;
  const bool probes_first_;
  const bool trims_scans_;
  const bool caches_leaves_;
  BorrowedBlocks blocks_;
  std::optional<Schema> schema_;
  LeafEditor<Keys>* editor_ = nullptr;  // the kind's; null until Prepare
  ScanTails tails_;
};

// A client of the index that is told the kind of keys, of `Client<Keys>`.
template <template <class> class Client, class Options>
StatusOr<std::unique_ptr<RemoteIndex>> Connect(rdma::Channel* channel, rdma::NodeId owner, IndexId id,
                                               const Options& options) {
  if (options.key_kind == KeyKind::kInteger) {
    return std::make_unique<Client<IntegerKeys>>(channel, owner, id, options);
  }
  GANNET_RETURN_IF_ERROR(CheckMaxKeyBytes(options.max_key_bytes, kShortKeyBytes));
  return std::make_unique<Client<ByteKeys>>(channel, owner, id, options);
}

}  // namespace gannet::index::shared_leaf
