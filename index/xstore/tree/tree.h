// XTree: the owner's B+tree. leaf.h and inner_node.h describe its nodes, and what a racing reader sees of them.
//
// Locks. A leaf's lock is its state word, an inner node's its version. A thread that needs several takes them from the
// top down. It may wait for a leaf's lock while it holds the parent's; all other second locks are only tried, so there
// is no deadlock. No lock is held across a call.
//
//   insert       locks the leaf. If it is full: descend again, splitting full inner nodes on the way (parent and node
//                locked), lock parent and leaf, split the leaf.
//   remove       locks the leaf. One that became empty is noted, and unlinked later (UnlinkEmpty).
//   find, scan   lock nothing.
//
// Fences make every step verifiable: after a descent, a hint or a right link, the leaf shows whether it covers the key;
// if not, the thread descends again.
//
// Thread-safe, except BulkLoad, BeginLoad and CheckStructure. Callers are inside the epoch.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/thread.h"
#include "index/block_pool.h"
#include "index/index.h"
#include "index/parted_load.h"
#include "index/service.h"
#include "index/xstore/tree/empty_leaves.h"
#include "index/xstore/tree/inner_node.h"
#include "index/xstore/tree/leaf.h"
#include "index/xstore/tree/leaf_hint.h"
#include "index/xstore/tree/leaf_pairs.h"
#include "index/xstore/tree/node_pool.h"
#include "index/xstore/tree/record_keys.h"
#include "index/xstore/tree/shadows.h"

namespace gannet::index::xstore {

template <int W>
class Tree {
 public:
  using Words = KeyWords<W>;
  using Node = InnerNode<W>;

  // A consistent copy of a leaf. `Content`: LeafPairs or LeafRecords.
  template <class Content>
  struct SnapshotOf {
    uint64_t state = 0;
    LeafMeta meta;
    Words low;
    Words high;
    Content pairs;  // within the requested range
  };
  using Snapshot = SnapshotOf<LeafPairs<W>>;

  // Called after a leaf split or died, or a load, with the range of keys that other leaves cover now. Must be quick.
  using Listener = std::function<void(const Words& low, const Words& high)>;

  static StatusOr<std::unique_ptr<Tree>> Create(IndexService* service, KeyKind kind);
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  FindResult Find(const Words& key, Leaf<W> hint = Leaf<W>());
  void FindMany(std::span<const Key> keys, std::span<FindResult> results);
  // `hint`: the leaf that may cover the key; null if unknown.
  StatusOr<Change> Insert(Context& context, const Words& key, rdma::GlobalAddress record, rdma::GlobalAddress* existing,
                          Leaf<W> hint = Leaf<W>());
  StatusOr<Change> Remove(Context& context, const Words& key, rdma::GlobalAddress record, Leaf<W> hint = Leaf<W>());
  Status Replace(const Words& key, rdma::GlobalAddress from, rdma::GlobalAddress to);
  // Appends at most `limit` (> 0) entries from at most `max_leaves` leaves. True: there may be more, from *next on in
  // the direction of the scan.
  bool ScanForward(const Words& from, const Words& to, size_t limit, size_t max_leaves, ScanResult* result,
                   Words* next) const;
  bool ScanReverse(const Words& from, const Words& to, size_t limit, size_t max_leaves, ScanResult* result,
                   Words* next) const;
  // Does what LocalIndex::ScanRecords does.
  void ScanRecords(const Words& from, const Words& to, bool reverse, size_t limit, LocalIndex::TakeRecords take) const;
  // Appends the records of at most `max_leaves` (> 0) leaves, in the order of their keys. True: there may be more, from
  // *next on.
  bool WalkRecords(const Words& from, size_t max_leaves, std::vector<rdma::GlobalAddress>* records, Words* next) const;
  Status BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill);
  StatusOr<std::unique_ptr<PartedLoad>> BeginLoad(Context& context, LoadRuns entries, double fill, size_t most_parts);
  Statistics statistics();
  Status CheckStructure();

  // The leaf that covered `key` at some moment of the call.
  Leaf<W> Locate(const Words& key) const;
  // A consistent copy of the leaf that covers `key`, with the pairs in [from, to].
  template <class Content>
  Leaf<W> Look(const Words& key, const Words& from, const Words& to, SnapshotOf<Content>* snapshot) const;

  // A copy, as by Look, of a given leaf that is, or was, this tree's; false if it is being written.
  template <class Content>
  bool TrySnapshot(Leaf<W> leaf, const Words& from, const Words& to, SnapshotOf<Content>* snapshot) const;

  // Sets the listener. May be called once.
  void SetListener(Listener listener);
  // Ends the calls of the listener: also those by the tree's own chore, which ends, too. No other thread may change the
  // tree from now on. Called before the listener's data is destroyed.
  void RemoveListener();

  // Unlinks some leaves that have been empty for a grace period. False: none, or none that can be unlinked now. Cheap
  // when there are none.
  bool UnlinkEmptyLeaves(Context& context);

  KeyKind kind() const { return kind_; }
  IndexService& service() const { return *service_; }
  // The leaf at a block number (LeafMeta::right); and the reverse.
  Leaf<W> LeafAt(uint32_t number) const { return Leaf<W>(memory_ + uint64_t{number} * kLineBytes); }
  uint32_t NumberOf(Leaf<W> leaf) const { return static_cast<uint32_t>((leaf.at() - memory_) / kLineBytes); }
  rdma::GlobalAddress AddressOf(Leaf<W> leaf) const {
    return rdma::GlobalAddress(node_id_, static_cast<uint64_t>(leaf.at() - memory_));
  }

 private:
  // The end of a descent that will change the parent.
  struct Place {
    Node* parent;
    uint64_t version;
    int index;
    Leaf<W> leaf;
  };
  enum class Outcome { kDone, kRetry, kFull };
  static constexpr int kMaxHeight = 16;
  struct Path;

  Tree(IndexService* service, KeyKind kind);

  Node* root() const { return root_.load(std::memory_order_acquire); }
  void Tell(const Words& low, const Words& high) const {
    if (const Listener* listener = listener_.load(std::memory_order_acquire)) (*listener)(low, high);
  }
  // Defined in scan.cc. Take(leaf, snapshot) is called for each leaf of the range; false ends the walk. At most
  // `max_leaves` (> 0). True: there may be more, from *next on.
  template <class Content, class Take>
  bool WalkForward(const Words& from, const Words& to, size_t max_leaves, Words* next, const Take& take) const;
  template <class Content, class Take>
  bool WalkReverse(const Words& from, const Words& to, size_t max_leaves, Words* next, const Take& take) const;
  bool TryFind(Leaf<W> leaf, const Words& key, FindResult* result) const;
  bool TryLocate(const Words& key, Leaf<W>* leaf) const;
  void FindGroup(std::span<const Words> keys, std::span<FindResult> results);

  // Defined in insert.cc.
  Outcome TryInsert(Leaf<W> leaf, const Words& key, uint64_t record, StatusOr<Change>* result,
                    rdma::GlobalAddress* existing);
  // `slot`: from PlaceFor.
  StatusOr<Change> InsertLocked(Leaf<W> leaf, uint64_t state, const LeafMeta& meta, int slot, const Words& key,
                                uint64_t record);
  StatusOr<Change> SplitAndInsert(Context& context, const Words& key, uint64_t record, rdma::GlobalAddress* existing);
  bool DescendSplitting(const Words& key, Place* place);
  bool SplitNode(Node* parent, uint64_t parent_version, int index_in_parent, Node* node, uint64_t version,
                 const Words& key);
  struct SplitPlan;
  std::optional<SplitPlan> PlanSplit(Leaf<W> leaf, const Words& key, uint64_t record) const;
  Change SplitLeaf(const Place& place, uint64_t state, std::byte* block, const SplitPlan& plan, const Words& key);
  StatusOr<Leaf<W>> NewLeaf(Context& context);
  // Unlocks a leaf whose set of keys has changed. `state`: before it was locked.
  Change PublishSet(Leaf<W> leaf, uint64_t state);

  // Defined in unlink.cc.
  void NoteEmpty(Context& context, const Words& low);
  void RetireLeaf(Context& context, Leaf<W> dead);
  // Runs after each round of the epochs: unlinks a batch of empty leaves.
  void UnlinkInQuiet();
  bool UnlinkOne(Context& context, const Words& low);
  bool DescendPath(const Words& key, Path* path) const;
  bool LockPath(const Path& path);
  bool Bypass(Context& context, const Path& path, Leaf<W> predecessor);
  bool RelinkLeaves(Leaf<W> dead, Leaf<W> predecessor, bool right_absorbs);
  void CollapseRoot(Context& context);

  Status CheckNode(Node* node, const Words& low, const Words& high, Leaf<W>* previous, uint64_t* keys) const;
  Status CheckLeaf(Leaf<W> leaf, const Words& low, const Words& high) const;
  // Defined in bulk_load.cc.
  class Load;
  struct LoadedNode {
    uint64_t address = 0;
    Words high{};
  };
  void BuildInnerLevels(Context& context, std::vector<LoadedNode> leaves, double fill);

  IndexService* service_;
  KeyKind kind_;
  std::byte* memory_;
  rdma::NodeId node_id_;
  RecordKeys records_;
  uint64_t number_;  // of this tree, in leaf hints
  std::shared_ptr<BlockPool> leaves_ = std::make_shared<BlockPool>();
  std::shared_ptr<NodePool<W>> nodes_ = std::make_shared<NodePool<W>>();

  alignas(kLineBytes) std::atomic<Node*> root_{nullptr};
  std::atomic<const Listener*> listener_{nullptr};
  alignas(kLineBytes) Mutex unlink_mutex_;  // one thread unlinks at a time, and none while a load ends
  std::shared_ptr<EmptyLeaves<W>> empties_ = std::make_shared<EmptyLeaves<W>>();
  std::shared_ptr<Shadows<W>> shadows_ = std::make_shared<Shadows<W>>();
  std::unique_ptr<Listener> owned_listener_;
  uint64_t chore_ = 0;  // of the epochs; 0: none yet
};

}  // namespace gannet::index::xstore
