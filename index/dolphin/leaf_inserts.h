// LeafInserts: inserts of a transaction into an index of Dolphin, by verbs (InsertBatch). Keys of one leaf share its
// lock and its change, which bring the records along, and split the leaf if it has no room.
//
//   Begin          READ of the head of each expected leaf: is it the one of the key, and which state word does it have?
//   AppendLocks    [CAS of the state word, FAA of 0 on the holders, READ of the leaf]
//   AppendChanges  [records; words or lines of the leaf; CAS that releases it]
//
// This is the exclusive side, also where single words change (leaf.h). The READs of the validation share a posting with
// the changes, and verbs to different owners are not ordered. An insert on the shared side marks no word before that
// posting, so two transactions could both commit although each has filled the gap that the other has seen. The lock bit
// is set one posting earlier.
//
// If the FAA finds somebody inside, the lock is given back, and the caller tries again. To wait until they have left
// would not do: among them may be a removal by the owner, which notes its version after this client has READ that
// (txn/commit/one_sided_inserts.h). Of removals that came before the CAS, the FAA behind it finds nothing any more, and
// the READ of the versions, behind the FAA, finds all.
//
// What takes more is left to the owner: a split of a leaf of byte keys, which takes READs of all its keys; and a byte
// key whose tag the leaf has already, since only that record could tell whether it is the same key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/dolphin/client_way.h"
#include "index/dolphin/keys.h"
#include "index/dolphin/leaf_draft.h"
#include "index/dolphin/ternary_lock.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/leaf/posting.h"

namespace gannet::index::dolphin {

// What the batches of a client need of it.
template <class Keys>
class InsertParts {
 public:
  // Asks the owner about the index, if that was not done yet.
  virtual coro::Task<Status> Prepare() = 0;
  virtual bool is_ready() const = 0;
  // The following: when it is ready.
  virtual TernaryLock<Keys>* lock() = 0;
  virtual ClientWay<Keys>* way() = 0;
  virtual const typename Keys::Schema& schema() const = 0;
  virtual shared_leaf::BlockSource* blocks() = 0;

 protected:
  ~InsertParts() = default;
};

template <class Keys>
class LeafInserts final : public InsertBatch {
 public:
  // `parts` must outlive this.
  explicit LeafInserts(InsertParts<Keys>* parts) : parts_(parts) {}

  void Begin(std::span<Insertion> insertions, uint64_t connection, std::vector<rdma::Operation>* reads) override;
  void AppendReads(std::vector<rdma::Operation>* /*reads*/) override {}
  coro::Task<Status> Find() override;
  void Abandon() override;
  void AppendLocks(std::vector<rdma::Operation>* operations) override;
  coro::Task<Status> TakeLocks(Status posted, std::span<const rdma::Operation> operations) override;
  void AppendChanges(std::vector<rdma::Operation>* operations) override;
  coro::Task<Status> TakeChanges(Status posted) override;
  coro::Task<void> Publish() override;
  size_t pending() const override { return pending_; }
  size_t refused() const override { return refused_; }
  size_t locked() const override { return locked_; }

 private:
  using Key = typename Keys::Key;
  using RawLeaf = typename Keys::Leaf;
  using IndexEntry = typename Keys::IndexEntry;

  struct Item {
    Insertion* insertion = nullptr;
    Key key{};
    bool is_refused = false;
  };
  // A leaf with the keys that go there.
  struct Leaf {
    shared_leaf::LeafCopyOf<Keys> place;
    RawLeaf image;          // its head, READ by the caller's posting; then the leaf, as its lock has found it
    bool was_read = false;  // `place` is valid
    std::vector<Item*> items;
    std::optional<shared_leaf::FreeBlock> block;  // for a split
    std::optional<shared_leaf::LeafLock> lock;    // noted
    size_t lock_at = 0;                           // place of its CAS in the caller's posting
    bool is_locked = false;
    std::optional<LeafDraft<Keys>> draft;
    // Of a split: the new leaf, and what comes into both.
    std::optional<LeafDraft<Keys>> fresh;
    std::optional<SplitPlan<Keys>> plan;
    std::vector<IndexEntry> added;
    std::optional<EntryHint> hint;
    size_t first_change = 0;  // in changes_
    size_t changes = 0;       // without the hint
  };
  struct NewLeaf {
    Key border{};
    rdma::GlobalAddress right;
  };

  Leaf* Add(rdma::GlobalAddress address);
  // The head that was READ is that of the leaf of this key, and nobody has its exclusive side.
  bool IsLeafOf(const Leaf& leaf, const Key& key) const;
  // Gives back the blocks of splits, and forgets all leaves.
  void DropLeaves();
  // Puts the entries into a draft of the locked leaf. False: nothing is to be changed there.
  bool Draft(Leaf* leaf);
  bool DraftSplit(Leaf* leaf, std::span<const IndexEntry> entries);
  void SetOutcome(const Leaf& leaf, Insertion::Outcome outcome);

  InsertParts<Keys>* parts_;
  uint64_t connection_ = 0;
  std::vector<Item> items_;  // by key
  size_t pending_ = 0;
  size_t refused_ = 0;
  size_t locked_ = 0;
  // The first `used_` are in use. Their images stay where they are.
  std::vector<std::unique_ptr<Leaf>> leaves_;
  size_t used_ = 0;
  shared_leaf::Posting changes_;
  std::vector<NewLeaf> made_;
};

}  // namespace gannet::index::dolphin
