// LeafInserts: inserts of a transaction into the shared leaves of one index, by verbs (InsertBatch). Keys of one leaf
// share its READ, its lock and its change, which may bring the records along. What takes more than that is left to the
// owner: a leaf without room, whose split is not part of this; and a byte key whose tag the leaf has already, since
// only that record could tell whether it is the same key (about one insert of 1,500).
//
// Why the image is current when the lock is taken: the CAS expects the state word of the image, and no state word
// returns (leaf.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/remote/byte_keys.h"
#include "index/remote/integer_keys.h"
#include "index/remote/leaf_channel.h"
#include "index/remote/posting.h"

namespace gannet::index::remote {

// What LeafInserts needs to know of an index.
template <class Keys>
class LeafFinder {
 public:
  // The leaf that the client's caches expect to cover `key`; null if they expect none.
  virtual rdma::GlobalAddress ExpectLeaf(const typename Keys::Key& key) = 0;
  // The leaf that covers `key`.
  virtual coro::Task<Status> LocateLeaf(typename Keys::Key key, LeafPlaceOf<Keys>* place) = 0;
  // Number of entries for which a leaf has room.
  virtual size_t RoomIn(const LeafPlaceOf<Keys>& place) const = 0;
  // Of the index. Valid once a leaf was expected or located.
  virtual const typename Keys::Schema& schema() const = 0;

 protected:
  ~LeafFinder() = default;
};

template <class Keys>
class LeafInserts final : public InsertBatch {
 public:
  // Both must outlive this.
  LeafInserts(LeafChannel* leaves, LeafFinder<Keys>* finder) : leaves_(leaves), finder_(finder) {}

  void Begin(std::span<Insertion> insertions, uint64_t connection, std::vector<rdma::Operation>* reads) override;
  coro::Task<Status> Find() override;
  void AppendLocks(std::vector<rdma::Operation>* operations) override;
  coro::Task<Status> TakeLocks(Status posted, std::span<const rdma::Operation> operations) override;
  void AppendChanges(std::vector<rdma::Operation>* operations) override;
  coro::Task<Status> TakeChanges(Status posted) override;
  size_t pending() const override { return pending_; }
  size_t locked() const override { return locked_; }

 private:
  using Place = LeafPlaceOf<Keys>;
  using Draft = typename Keys::Draft;
  // A leaf that was READ, or is to be READ.
  struct Leaf {
    Place place;
    std::optional<Draft> draft;  // it is the leaf of some keys
    bool is_read = false;        // by the caller's posting
    bool is_noted = false;       // as one to lock
    bool is_locked = false;
    size_t keys = 0;          // to add
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
  bool IsUsable(Leaf* leaf, const typename Keys::Key& key);
  // Adds a key to the leaf, which covers it.
  void Add(Leaf* leaf, Item* item);
  void SetOutcome(const Leaf& leaf, Insertion::Outcome outcome);

  LeafChannel* leaves_;
  LeafFinder<Keys>* finder_;
  uint64_t connection_ = 0;
  std::vector<Item> items_;  // by key
  size_t pending_ = 0;
  size_t locked_ = 0;
  // The first `used_` are in use. Their images stay where they are.
  std::vector<std::unique_ptr<Leaf>> leaf_pool_;
  size_t used_ = 0;
  Posting changes_;
};

}  // namespace gannet::index::remote
