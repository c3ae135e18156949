// SeparatorNotices: adds the separators of new leaves to the inner nodes above them, in the postings of a transaction's
// inserts (shared_leaf/change/split_notices.h). An inner node is not READ: the lock's CAS expects the state word of its
// copy, and no state word returns (shared_leaf/leaf/leaf.h), so the copy is current if the CAS succeeds. If it does
// not, the copy is dropped, and the separator stays missing until another change mends that (editor.h). The copy is
// that of the cache; a derived class may have others (dex/fresh_separators.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/blink/editor.h"
#include "index/blink/shared_cache.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/change/split_notices.h"
#include "index/shared_leaf/leaf/posting.h"

namespace gannet::index::blink {

// Byte keys: knows no node, so it makes nothing known.
template <class Keys>
class SeparatorNotices : public shared_leaf::SplitNotices<Keys> {
 public:
  using IndexEntry = typename Keys::IndexEntry;
  using View = SharedNodes::View<Keys>;

  // All must outlive this. `cache`: null, if nothing is to be made known. The editor is there once a leaf is added.
  SeparatorNotices(shared_leaf::LeafChannel* leaves, const std::optional<Editor<Keys>>* editor, View* cache)
      : leaves_(leaves), editor_(editor), cache_(cache) {}

  void Begin(uint64_t connection) override;
  bool Add(const IndexEntry& leaf) override;
  void AppendLocks(std::vector<rdma::Operation>* operations) override;
  coro::Task<void> TakeLocks(Status posted, std::span<const rdma::Operation> operations) override;
  void AppendChanges(absl::FunctionRef<bool(const IndexEntry&)> is_made,
                     std::vector<rdma::Operation>* operations) override;
  coro::Task<void> TakeChanges(Status posted) override;

 protected:
  using Key = typename Keys::Key;
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;

  struct Node {
    shared_leaf::LeafCopyOf<Keys> place;
    std::vector<IndexEntry> separators;  // to add
    std::optional<typename Keys::Draft> draft;
    bool is_noted = false;  // as one to lock
    bool is_locked = false;
    bool is_changed = false;
    size_t lock_at = 0;       // place of its CAS in the caller's posting
    size_t first_change = 0;  // in changes_
    size_t changes = 0;
  };
  // The inner node above a leaf with this low fence; null: there is no copy.
  virtual Node* NodeAbove(const Key& low);
  // The copy of the node above a leaf with this low fence is too old, or of no use any more.
  virtual void Drop(const Key& low);
  virtual void Keep(const LeafCopy& node);

  shared_leaf::LeafChannel* leaves_;
  std::vector<Node> nodes_;

 private:
  const std::optional<Editor<Keys>>* editor_;
  View* cache_;
  uint64_t connection_ = 0;
  shared_leaf::Posting changes_;
};

}  // namespace gannet::index::blink
