// CatfishTree: the owner's R-tree.
//
// Locks. Searches take none. A writer holds
//
//   1. the key's word (key_words.h), from the check that the key is absent until it is in the tree;
//   2. the structure lock: a plain insert, into a leaf that has room, shared; everything else exclusively;
//   3. a plain insert also the lock of its leaf, and while it writes an inner node, that one's lock.
//
// A thread that waits for (2) holds only (1), and one that holds the lock of an inner node waits for nothing, so there
// is no deadlock.
//
// Order of writes. Searches, by this node's CPU or one-sided, read nodes at different moments. A search whose words are
// all unchanged at one later moment has read the tree as it was at that moment, because of these rules. (They were
// found with a model of searches that race with all kinds of changes; each is needed.)
//
//   - The root stays where it is, and every search reads it.
//   - Every write changes the word of its node, and no word ever returns to a value, also when its block is reused.
//   - A change of structure (split, forced reinsertion, condensing) becomes visible by one write in place (draft.h).
//     Blocks that are no longer part of the tree are marked dead before they are retired.
//   - A plain insert lets the entries on its path grow from the root down to the leaf, each by union with the new
//     rectangle, and writes the leaf last. All levels are looked at: an upper one may be behind although a lower one
//     covers the rectangle already, while another insert is between the two. It owns the leaf's lock from the start, so
//     that there is still room at the end. A growth in the opposite order would let an insert that finishes first leave
//     its rectangle out of reach.
//     An insert writes several nodes, one after the other, and others may insert in between. A transaction that inserts
//     takes over the words that it has written (index.h), so it must not get the word of a node that another insert has
//     written after the first of them: the entry of that one in the root may be covered by what the transaction itself
//     has just added, so that nothing else would show the other's key to it. Such an insert lists no node, only its
//     key's word, which takes no key from a node. A transaction that had read one of the nodes then conflicts, and is
//     run again.
//   - A removal that leaves enough entries in its leaf writes the leaf first and lets the entries on the path shrink
//     after that, upwards. So every entry of an inner node contains what is below at any moment.
//
// A search that meets a dead node begins again. A traversal that met none has met each key that was in the tree during
// all of it, also if the words have changed: a change of structure that takes a key out of a node kills that node,
// unless it is the common ancestor, below which the key stays. So a traversal that comes to such a node late finds it
// dead, and one that came early has met the key.
//
// A search by this node's CPU that lost several attempts takes the structure lock, so that it ends.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/thread.h"
#include "index/catfish/catfish.h"
#include "index/catfish/draft.h"
#include "index/catfish/editor.h"
#include "index/catfish/key_words.h"
#include "index/catfish/node.h"
#include "index/catfish/variant.h"
#include "index/index.h"
#include "index/service.h"

namespace gannet::index::catfish {

// A lock that is held shared most of the time. A thread that wants it exclusively does not wait for threads that come
// after it.
class StructureLock {
 public:
  void lock_shared() {
    if (waiting_.load(std::memory_order_relaxed) > 0) {
      const std::lock_guard behind(gate_);
    }
    lock_.lock_shared();
  }
  void unlock_shared() { lock_.unlock_shared(); }
  void lock() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    gate_.lock();
    lock_.lock();
  }
  void unlock() {
    lock_.unlock();
    gate_.unlock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<int> waiting_{0};
  Mutex gate_;
  SharedMutex lock_;
};

class CatfishTree final : public LocalIndex {
 public:
  static StatusOr<std::unique_ptr<CatfishTree>> Create(IndexService* service, IndexId id, uint64_t expected_keys,
                                                       const CatfishOptions& options);
  ~CatfishTree() override;

  // A key that is no rectangle is absent; an insert of it is InvalidArgument.
  FindResult Find(const Key& key) override;
  void FindMany(std::span<const Key> keys, std::span<FindResult> results) override;
  StatusOr<Change> Insert(Context& context, const Key& key, rdma::GlobalAddress record,
                          rdma::GlobalAddress* existing) override;
  StatusOr<Change> Remove(Context& context, const Key& key, rdma::GlobalAddress record) override;
  Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) override;
  // Unimplemented: searches take the place of scans.
  Status Scan(const ScanRange& range, ScanResult* result) override;
  Status ScanStep(const ScanRange& range, size_t most_witnesses, std::optional<ScanPosition>* position,
                  ScanResult* result) override;
  ScanPosition PositionBehind(const Key& key, bool reverse) const override;
  Status Search(const WindowQuery& query, ScanResult* result) override;
  Status SearchStep(const WindowQuery& query, size_t limit, size_t most_witnesses,
                    std::optional<ScanPosition>* position, ScanResult* result) override;
  Status Nearest(const NearestQuery& query, ScanResult* result) override;
  // Visits the records in the order of the keys.
  bool Walk(WalkPosition* position, std::vector<rdma::GlobalAddress>* records) override;
  // Packs the leaves in Hilbert order, whatever the variant. The entries may come in any order. InvalidArgument if a
  // key is there twice or is no rectangle.
  Status BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) override;
  void ReleaseMemory() override;
  Statistics statistics() override;
  Status CheckStructure() override;

  const CatfishOptions& options() const { return options_; }
  const Arena& arena() const { return arena_; }
  rdma::Node& node() const { return service_->node(); }
  const KeyWords& key_words() const { return key_words_; }

 private:
  // A node on the way to a leaf: where it is, and which of its entries leads on. In the leaf: the key's entry.
  struct Place {
    uint64_t offset;
    size_t entry;
    uint64_t state = 0;  // as a plain insert came by
  };
  using Way = absl::InlinedVector<Place, 12>;

  CatfishTree(IndexService* service, const CatfishOptions& options, const Arena& arena, KeyWords key_words);

  uint64_t root_offset() const { return static_cast<uint64_t>(arena_.root - arena_.memory); }
  rdma::GlobalAddress AddressAt(uint64_t offset) const { return {arena_.owner, offset}; }
  // Copies a node, once it is not locked.
  void Copy(uint64_t offset, NodeCopy* copy) const;

  // Defined in search.cc.
  // Visits every node that `meets` leads to, and calls take(entry) for each entry of a leaf that meets. Appends the
  // nodes' words to *seen, if that is not null. Ends early if `take` returns false. False: met a node that is no longer
  // part of the tree.
  template <class Meets, class Take>
  bool Traverse(const Meets& meets, std::vector<Witness>* seen, const Take& take) const;
  bool Unchanged(std::span<const Witness> witnesses) const;
  // Runs `attempt` until it returns true: at first without a lock, then under the structure lock. `strict`: only an
  // exclusive lock makes the attempt succeed for sure.
  template <class Attempt>
  void Settle(bool strict, const Attempt& attempt);
  // The record of the key. Null: it is absent, or the traversal was not consistent.
  rdma::GlobalAddress Lookup(const RectangleKey& key, bool* consistent) const;
  Status TakeStep(const WindowQuery& query, size_t limit, size_t most_witnesses, std::optional<ScanPosition>* position,
                  ScanResult* result, bool* consistent) const;
  bool TryNearest(const NearestQuery& query, ScanResult* result) const;

  // Defined in change.cc. The structure lock is held, exclusively where it says so.
  std::optional<Way> FindWay(const RectangleKey& key) const;
  // False: the leaf is full, and nothing has changed.
  bool InsertPlainly(const Entry& entry, Change* change);
  // Makes an entry of an inner node contain a rectangle and reach a Hilbert value. False: the insert has written a node
  // above, and another insert has written this one since the insert came by.
  bool Grow(const Place& place, const Entry& added, uint64_t position, Change* change);
  Status InsertExclusively(Context& context, const Entry& entry, Change* change);
  void RemoveExclusively(Context& context, const Way& way, Change* change);
  void RemoveInPlace(const Way& way, Change* change);

  // Defined in bulk_load.cc.
  Status LoadLevels(Context& context, std::vector<Entry> entries, double fill);

  IndexService* service_;
  CatfishOptions options_;
  Shape shape_;
  Arena arena_;
  KeyWords key_words_;
  mutable StructureLock structure_;
};

}  // namespace gannet::index::catfish
