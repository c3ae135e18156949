// LeafInserts: inserts of a transaction into the shared leaves of one index, by verbs (InsertBatch). Keys of one leaf
// share its READ, its lock and its change, which may bring the records along. If they have no room, the change splits
// the leaf, which takes no further posting: the block of the new leaf is there before the lock is taken, and it is made
// known to others by the same postings (split_notices.h).
//
// What takes more than that is left to the owner: a split of a leaf of byte keys, which takes READs of all its keys, or
// of the root of a tree; one that cannot be made known; a leaf that another node has claimed (claim/claim.h); and a
// byte key whose tag the leaf has already, since only that record could tell whether it is the same key (about one
// insert of 1,500).
//
// Why the image is current when the lock is taken: the CAS expects the state word of the image, and no state word
// returns (leaf.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/change/split_notices.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"
#include "index/shared_leaf/leaf/leaf_split.h"
#include "index/shared_leaf/leaf/posting.h"

namespace gannet::index::shared_leaf {

// What LeafInserts needs to know of an index.
template <class Keys>
class LeafFinder {
 public:
  // The leaf that the client's caches expect to cover `key`; null if they expect none.
  virtual rdma::GlobalAddress ExpectLeaf(const typename Keys::Key& key) = 0;
  // The leaf that covers `key`.
  virtual coro::Task<Status> LocateLeaf(typename Keys::Key key, LeafCopyOf<Keys>* place) = 0;
  // Number of entries for which a leaf has room.
  virtual size_t RoomIn(const LeafCopyOf<Keys>& place) const = 0;
  // Whether a split of this leaf is one of leaf_split.h. All of its keys are known.
  virtual bool MaySplit(const LeafCopyOf<Keys>& place) const = 0;
  // A split has made this leaf, with its low fence as key. For the client's caches; returns whether they lead to it
  // now.
  virtual bool NoteSplit(const typename Keys::IndexEntry& right) = 0;
  // The schema of the index. Valid once a leaf was expected or located.
  virtual const typename Keys::Schema& schema() const = 0;

 protected:
  ~LeafFinder() = default;
};

template <class Keys>
class LeafInserts final : public InsertBatch {
 public:
  // All must outlive this.
  LeafInserts(LeafChannel* leaves, BlockSource* blocks, LeafFinder<Keys>* finder,
              std::unique_ptr<SplitNotices<Keys>> notices)
      : leaves_(leaves), blocks_(blocks), finder_(finder), notices_(std::move(notices)) {}

  void Begin(std::span<Insertion> insertions, uint64_t connection, std::vector<rdma::Operation>* reads) override;
  void AppendReads(std::vector<rdma::Operation>* reads) override;
  coro::Task<Status> Find() override;
  void Abandon() override;
  void AppendLocks(std::vector<rdma::Operation>* operations) override;
  coro::Task<Status> TakeLocks(Status posted, std::span<const rdma::Operation> operations) override;
  void AppendChanges(std::vector<rdma::Operation>* operations) override;
  coro::Task<Status> TakeChanges(Status posted) override;
  coro::Task<void> Publish() override { return notices_->Finish(); }
  size_t pending() const override { return pending_; }
  size_t refused() const override { return refused_; }
  size_t locked() const override { return locked_; }

 private:
  using LeafCopy = LeafCopyOf<Keys>;
  using Draft = typename Keys::Draft;
  using IndexEntry = typename Keys::IndexEntry;
  // A leaf that gets another one to its right.
  struct Split {
    FreeBlock block;
    Draft fresh;
    SplitPlanOf<Keys> plan;
    IndexEntry right;  // with the low fence as key
  };
  // A leaf that was READ, or is to be READ.
  struct Leaf {
    LeafCopy place;
    int rights = 0;                   // right links that led there
    std::optional<Draft> draft;       // it is the leaf of some keys
    std::vector<IndexEntry> entries;  // to add
    std::optional<Split> split;
    bool is_read = false;   // by the caller's posting
    bool is_noted = false;  // as one to lock
    bool is_locked = false;
    size_t lock_at = 0;       // place of its CAS in the caller's posting
    size_t first_change = 0;  // in changes_
    size_t changes = 0;
  };
  struct Item {
    Insertion* insertion;
    typename Keys::Key key;
    Leaf* leaf;  // expected; then the one to which the key is added; null: none
    bool is_added = false;
  };

  Leaf* NewLeaf();
  // The image of the leaf can be used.
  bool IsWhole(Leaf* leaf) const;
  bool IsUsable(Leaf* leaf, const typename Keys::Key& key) const;
  // The image shows that the key belongs to a leaf further right, to which it leads.
  bool LeadsRight(Leaf* leaf, const typename Keys::Key& key) const;
  // Adds a key to the entries of the leaf, which covers it.
  void Add(Leaf* leaf, Item* item);
  // Puts the entries into the draft, or plans a split. False: the owner is to add them.
  coro::Task<bool> Prepare(Leaf* leaf);
  coro::Task<bool> PrepareSplit(Leaf* leaf);
  // Gives back the block of a split that is not made.
  void DropSplit(Leaf* leaf);
  // Forgets all leaves.
  void DropLeaves();
  void SetOutcome(const Leaf& leaf, Insertion::Outcome outcome);

  LeafChannel* leaves_;
  BlockSource* blocks_;
  LeafFinder<Keys>* finder_;
  const std::unique_ptr<SplitNotices<Keys>> notices_;
  uint64_t connection_ = 0;
  std::vector<Item> items_;  // by key
  size_t pending_ = 0;
  size_t refused_ = 0;
  size_t locked_ = 0;
  // The first `used_` are in use. Their images stay where they are.
  std::vector<std::unique_ptr<Leaf>> leaf_pool_;
  size_t used_ = 0;
  Posting changes_;
};

}  // namespace gannet::index::shared_leaf
